/*
 * The mount plan: which mounts make a jail, as text that a person can read.
 *
 * The plan is computed elsewhere (in pods by `render/jail/mount_plan.py`, on other installations by whoever writes the file), so
 * that what a jail consists of can be tested and explained without running it, and so that this C code has no opinion.
 * One mount per line, five fields separated by a tab: `kind source target options why`; `-` is an empty field; empty
 * lines and lines that begin with `#` are skipped. The first mount is the root. The format is strict: a word that is
 * not known is an error with its line, never a guess, because a silently skipped `ro` would be a hole.
 */
#ifndef JAIL_PLAN_H
#define JAIL_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report.h"

#define PLAN_DEFAULT_PATH "/etc/soperator/jail/plan"

enum {
	PLAN_LINES_MAX = 256,
	PLAN_BYTES_MAX = 256 * 1024,
};

enum plan_kind { PLAN_ROOT, PLAN_BIND, PLAN_RBIND, PLAN_TMPFS, PLAN_PROC, PLAN_DEV, PLAN_SYS, PLAN_SCRATCH, PLAN_GPUS, PLAN_PATH };

struct plan_mount {
	enum plan_kind kind;
	int line;		/* in the plan's file, from 1 */
	const char *source;	/* "" where the kind needs none; path: the variable */
	const char *target;
	const char *why;
	bool read_only, no_suid, no_dev, no_exec;
	bool optional;		/* skip the mount when its source is missing */
	bool unmasked;		/* proc: leave out the masks over the machine's own files */
	bool last;		/* path: behind what the variable has */
	bool minimal;		/* dev: only the nodes that every program expects */
	const char *size;	/* tmpfs; dev (its /dev/shm): as in mount(8), or NULL */
	const char *mode;	/* tmpfs, scratch: octal, or NULL */
	const char *owner;	/* scratch: whose folders they are, where others share the source; or NULL (scratch.h) */
};

struct plan {
	const char *path;	/* as the caller named it; the caller keeps it alive */
	char *text;		/* what the mounts' strings point into */
	const char *spool;	/* SlurmdSpoolDir, kept alive by the caller; NULL: where it is by default (spool.h) */
	uint32_t job;		/* whose scratch folders these are; 0: nobody's, as in a login session, whose plan has none */
	int count;
	struct plan_mount mounts[PLAN_LINES_MAX];
};

/* Reads and checks a plan. On success the caller ends its use with plan_free. */
int plan_read(const char *path, struct plan *plan, struct report *report);

/* The same for a copy of the plan: messages name it `name`. */
int plan_read_as(const char *path, const char *name, struct plan *plan, struct report *report);

/* The same for `length` bytes of text; `path` is only for messages. */
int plan_parse(const char *path, const char *text, size_t length, struct plan *plan, struct report *report);

void plan_free(struct plan *plan);

const char *plan_kind_name(enum plan_kind kind);

/* The first mount of that kind, or NULL. */
const struct plan_mount *plan_find(const struct plan *plan, enum plan_kind kind);

#endif
