/*
 * The private /dev of a jail.
 *
 * In a user namespace no device node can be made, so each one is the pod's own node, bound onto an empty file in a
 * fresh tmpfs. A pod was given exactly the devices that it may use, hence every further character device goes along
 * (GPUs, InfiniBand, fuse). Block devices and the nodes that are the machine itself (memory, kernel log, consoles)
 * never do: on a machine without pods they would be there too. Pseudo terminals are a new devpts instance: with the
 * pod's, root of one job could open the terminals of another. Devices that lines `gpus` of the plan match stay out of it too:
 * a step brings those along that Slurm has given to it (gpus.h).
 */
#ifndef JAIL_DEV_H
#define JAIL_DEV_H

#include <stdbool.h>

#include "plan.h"
#include "report.h"

/* Whether a device, named below /dev, is one that belongs to single jobs: a line `gpus` of the plan matches it. */
bool dev_is_gpu(const struct plan *plan, const char *name);

/* Fills the empty tmpfs that is open at `dev_fd`. */
int dev_fill(int dev_fd, const struct plan *plan, const struct plan_mount *entry, struct report *report);

#endif
