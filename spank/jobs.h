/*
 * The jobs of this node that have namespaces.
 *
 * JOBS_FOLDER/ID belongs to one job: `uid` and `pid` are files with its user and its holder (pid and time of start), `scratch`
 * lists its folders on the node, one path a line, and `plan` is the plan with which it began and which it keeps. It lies on the machine's or pod's own /run, which no jail sees, and is
 * root's. The folder itself is locked (flock) by who makes, joins or removes the job's namespaces, so first steps may race.
 * What is in the files is believed only as far as the process of the holder is there.
 *
 * Nothing of this needs Slurm: the plugin, the helper and the PAM module all use it.
 */
#ifndef JAIL_JOBS_H
#define JAIL_JOBS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "holder.h"
#include "job.h"
#include "report.h"

/* What a job's namespaces are to be, where they have to be made. */
struct jobs_wish {
	uint32_t id;
	uid_t uid;
	const char *plan;	/* path of the plan */
	const char *spool;	/* SlurmdSpoolDir, or NULL where it is by default */
	bool ipc;
	int seconds;		/* how long to wait for file systems, and for whoever is asked */
	/*
	 * Asked, with the record locked, before anything is made: which job it is, or 0 with a sentence where there is none. NULL where
	 * the caller is a step: slurmd starts none of a job that has ended, and no epilog before they have all ended.
	 */
	uint32_t (*ask)(const struct jobs_wish *wish, struct report *report);
};

enum {
	JOBS_SECONDS = 10,	/* until a file system is said to hang */
	JOBS_UNKILLABLE = 60,	/* until killed processes that make no progress are given up; as UnkillableStepTimeout */
};

/*
 * Opens the holder of a job; makes it where there is none. `made` says which. Where the answer of `ask` is another job, that one
 * is opened. An epilog waits for the lock: what is made on an answer that was right is released by it.
 */
enum holder_made jobs_begin(const struct jobs_wish *wish, struct holder *holder, bool *made, struct report *report);

/* The job with that id, or the newest live one of that user. 1 where there is one, 0 where not. */
int jobs_get(uint32_t id, struct jobs_job *job, struct report *report);
int jobs_find(uid_t uid, struct jobs_job *job, struct report *report);

/* Calls `visit` for each live job of this node. */
int jobs_each(void (*visit)(const struct jobs_job *job, void *context), void *context, struct report *report);

/* The plan that a job keeps; messages name it `name`. */
int jobs_plan(uint32_t id, const char *name, struct plan *plan, struct report *report);

/* Moves the calling process, which has one thread, into the job's namespaces; its children are born in the job's pid namespace. */
int jobs_join(const struct jobs_job *job, struct report *report);

/*
 * Ends all processes of the job on this node, and removes its folders. It waits as long as the kernel gets on with ending them, and fails
 * when it has not for `unkillable` seconds. A job that is not there is released.
 */
int jobs_release(uint32_t id, int unkillable, struct report *report);

/* Releases what is left of jobs whose holder is gone, also the folders of jobs in the scratch folders of the plan. Returns how many. */
int jobs_sweep(const struct plan *plan, struct report *report);

#endif
