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
 *
 * A library of the GPU's vendor counts what it can open, from 0: in a /dev with one device that is device 0, whichever it is. Slurm's
 * variables for these libraries (CUDA_VISIBLE_DEVICES and its kin) count the node's, unless a cgroup hides devices, which Slurm knows of.
 * So they are counted anew, by what is in the job's /dev.
 */
#ifndef JAIL_GPUS_H
#define JAIL_GPUS_H

#include <stdbool.h>
#include <stddef.h>

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

/* The numbers of the pod's devices in order; none where not exactly one line `gpus` of the plan says which they are. */
struct gpus_pod {
	const char *pattern; /* the plan's */
	int count;
	long numbers[GPUS_MAX];
};

void gpus_of_pod(const struct plan *plan, struct gpus_pod *pod);

/* In a task's namespaces: places among the pod's devices as places among those in /dev. False where the list is to stay as it is. */
bool gpus_count_anew(const struct gpus_pod *pod, const char *list, char *value, size_t size);

#endif
