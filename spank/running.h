/*
 * Whether a job runs on this node, by slurmctld's word.
 *
 * slurmd knows of a job from its first step on. Before that, and after the job's end, it takes the credential of a file for enough (sbcast;
 * valid until the job's time limit, and signed for the nodes of all components of a heterogeneous job). Only slurmctld knows whether the job is
 * here: it takes a job's state back before it sends the epilog to a node.
 *
 * Asked is by Slurm's own squeue, started anew: slurmd's child has one thread of a process with many, so it may hold locks of
 * libslurm that nobody will ever open, and the library's functions for jobs differ between releases.
 */
#ifndef JAIL_RUNNING_H
#define JAIL_RUNNING_H

#include <stdint.h>

#include "jobs.h"
#include "report.h"

/*
 * The number of the job that runs here for the user of the wish: the wish's own, or that of this node's component where the wish names the
 * leader of a heterogeneous job. 0 with a sentence where there is none, and where nobody answers within the wish's seconds.
 */
uint32_t running_job(const struct jobs_wish *wish, struct report *report);

#endif
