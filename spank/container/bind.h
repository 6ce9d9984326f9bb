/*
 * --container-mounts: SRC:DST[:FLAGS], several joined by commas, flags joined by "+".
 *
 * SRC is a path of the jail, or `tmpfs`, or `umount`, which takes a mount away. SRC alone is mounted at its own path.
 * Mount points are made in the container where they are missing. Pyxis hands the flags to enroot, which knows what
 * fstab knows; here stand those that mean something for a user without rights, and every other one is refused.
 */
#ifndef CONTAINER_BIND_H
#define CONTAINER_BIND_H

#include <stdbool.h>
#include <stdint.h>

#include "../report.h"

enum bind_kind { BIND_PATH, BIND_TMPFS, BIND_UMOUNT };

struct bind {
	enum bind_kind kind;
	char source[4096], target[4096];
	char data[256];		/* options of a tmpfs */
	uint64_t set, clear;	/* MOUNT_ATTR_… */
	unsigned long propagation;
	bool is_flat;		/* bind, not rbind */
	bool is_optional;	/* nofail */
};

/* Reads the next mount and moves `list` behind it: 1, or 0 at the end, or -1 with a sentence. */
int bind_next(const char **list, struct bind *bind, struct report *report);

/* Reads them all and forgets them. */
int bind_check(const char *list, struct report *report);

#endif
