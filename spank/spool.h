/*
 * What slurmd keeps of a job in its spool: a socket (NODE_JOB.STEP) and the machine's topology (hwloc_topo_JOB.STEP.xml) for each step, and the
 * folder of a batch script (jobJOB); and of a step with PMIx a folder, which is the user's, and a socket ([stepd.slurm.]pmix.JOB.STEP).
 *
 * A slurmstepd removes its own. One that dies early does not, such as one whose slurmd was killed while it handed the step over.
 * slurmd clears such a socket away when it next asks all steps, if it is older than 10 min, which can be half an hour
 * later (src/common/stepd_api.c, _handle_stray_socket). The job's epilog is the better moment: no step of it can begin any more (docs/decisions/0044).
 *
 * slurmstepd gives up on a folder of PMIx that a user has made too deep for it, and forgets it where the step's start fails.
 */
#ifndef JAIL_SPOOL_H
#define JAIL_SPOOL_H

#include <stdint.h>

#include "report.h"

#define SPOOL_DEFAULT_PATH "/var/spool/slurmd"

/* Removes what is left of a job that has ended. A socket on which somebody listens stays. A spool that is not there has nothing. */
int spool_clear(const char *spool, uint32_t job, struct report *report);

#endif
