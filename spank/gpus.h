/*
 * The GPUs of a job, and no others.
 *
 * A pod, or a machine, has the devices of all its jobs. The private /dev of a job leaves out those that lines `gpus` of the
 * plan match (dev.h); each step brings along those that Slurm has given to it. Steps only get what is their job's, so together
 * they never have more. A cgroup cannot do this here: no device filter can be loaded from a user namespace.
 *
 * Slurm's list (SLURM_JOB_GPUS) counts the devices of gres.conf from 0, whatever their names; so does this: the first number is the
 * device with the lowest number in its name. The File= of gres.conf has to list them in that order, as /dev/nvidia[0-7] does.
 *
 * A device of the pod can be mounted in the job's namespace only while it is nowhere: it is cloned from the pod's /dev as a
 * mount without a place before the thread leaves the pod, and put into the inner /dev afterwards.
 */
#ifndef JAIL_GPUS_H
#define JAIL_GPUS_H

#include "holder.h"
#include "plan.h"
#include "report.h"

enum { GPUS_MAX = 128 };

struct gpus {
	int count;
	struct {
		int tree;	/* the mount without a place */
		char name[256];	/* below /dev */
	} devices[GPUS_MAX];
};

/* Clones the devices of the pod that a line `gpus` matches and whose place is in `list`: numbers and ranges, as Slurm writes them. */
int gpus_take(const struct plan *plan, const char *list, struct gpus *gpus, struct report *report);

/* Puts them into the /dev of the holder's tasks, moving the calling thread there; those that are there already stay. Closes all. */
int gpus_give(struct gpus *gpus, const struct plan *plan, const struct holder *holder, struct report *report);

#endif
