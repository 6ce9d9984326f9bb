/*
 * What slurmd keeps of a job in its spool: a socket (NODE_JOB.STEP) and the machine's topology (hwloc_topo_JOB.STEP.xml) for each step, and the
 * folder of a batch script (jobJOB); and of a step with PMIx a folder, which is the user's, and a socket ([stepd.slurm.]pmix.JOB.STEP).
 *
 * A slurmstepd removes its own. One that dies early does not, such as one whose slurmd was killed while it handed the step over.
 * slurmd clears such a socket away when it next asks all steps, if it is older than 10 min, which can be half an hour
 * later (src/common/stepd_api.c, _handle_stray_socket). The job's epilog is the better moment: no step of it can begin any more (docs/decisions/0044).
 *
 * Only Slurm writes there. What slurmd believes lies in the spool: its configuration, the topology of the machine, credentials. A read-only mount over the
 * configuration alone would not hold: who may write to the folder above renames it in a mount namespace that lacks this mount, which the kernel allows
 * (rename(2), EBUSY). And a user filled the spool through the file of a batch script, which is the user's. So the whole spool is read-only for what
 * runs for a user, and slurmstepd has it in its own mounts. The programs of a step with PMIx only connect to its socket.
 *
 * slurmstepd itself writes for a user too, into what --output and --error name, which may be that script or a folder of PMIx. The mounts in which it
 * opens them cannot be read-only, for PMIx makes its folder in the same phase. So what it has open is looked at behind it, before there is a task.
 *
 * slurmstepd gives up on a folder of PMIx that a user has made too deep for it, and forgets it where the step's start fails.
 */
#ifndef JAIL_SPOOL_H
#define JAIL_SPOOL_H

#include <stdint.h>

#include "plan.h"
#include "report.h"

#define SPOOL_DEFAULT_PATH "/var/spool/slurmd"

/* Makes the plan's spool, if it has one, read-only in the mount namespace of the caller. */
int spool_close(const struct plan *plan, struct report *report);

/* The number of the mount that the spool is here, for spool_check_files; 0 where there is none. */
unsigned long long spool_mount(const char *spool);

/*
 * -1 with a sentence where the calling process has a file of that mount open to write to. Needs the /proc of its pid namespace, and the mount that the
 * files were opened by need not be there any more.
 */
int spool_check_files(unsigned long long mount, struct report *report);

/* Removes what is left of a job that has ended. A socket on which somebody listens stays. A spool that is not there has nothing. */
int spool_clear(const char *spool, uint32_t job, struct report *report);

#endif
