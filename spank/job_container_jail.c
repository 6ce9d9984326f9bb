/*
 * The job_container plugin: what slurmd does with a job's files it does in the job's jail.
 *
 * slurmd itself opens the files of `sbcast` and `srun --bcast`: a child of it becomes the user and opens the path. Without this
 * plugin it does so outside the jail. There a user's file lands where no job sees it, and root of the jail could overwrite what
 * slurmd reads: its configuration, and so the plugins that it loads. Slurm asks the job_container plugin to put that child into
 * the job's container before it becomes the user, and a job's container is its jail. In slurmstepd there is nothing to do, for
 * the SPANK plugin has done it.
 *
 * The job may have no namespaces yet (salloc, then sbcast): then they are made, as its first step would, where slurmctld says that the
 * job runs here (running.h). Its credential does not say so: a job that has ended meanwhile, or the leader of a heterogeneous job whose
 * nodes are others, would leave namespaces that no epilog ever takes away, and with them a way into the node by SSH.
 *
 * Slurm has no header for plugins of this kind; the functions are those of 24.11 (src/interfaces/job_container.c) and of 26.05, and
 * tests/test_slurm.py sees a real slurmd call them. slurmd takes a plugin only from its own version. Since 25.11 Slurm calls the kind
 * `namespace` (src/interfaces/namespace.c) and asks two things more; 26.05 still takes the former name in slurm.conf.
 *
 * Use in slurm.conf:  JobContainerType=job_container/jail   (the plan is at its default path)
 */
#define _GNU_SOURCE
#pragma GCC visibility push(default) /* what Slurm looks up; all else stays hidden */
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <slurm/spank.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "caps.h"

const char plugin_name[] = "jobs are in the jail";
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 11, 0)
#define HOOK(name) namespace_p_##name
const char plugin_type[] = "namespace/jail";
#else
#define HOOK(name) container_p_##name
const char plugin_type[] = "job_container/jail";
#endif
const uint32_t plugin_version = SLURM_VERSION_NUMBER;

int init(void);
void fini(void);
void HOOK(reconfig)(void);
int HOOK(restore)(char *folder, bool recover);
int HOOK(join)(const slurm_step_id_t *step, uid_t uid, bool is_step);
int HOOK(join_external)(const slurm_step_id_t *step);
int HOOK(stepd_create)(uint32_t id, void *step);
int HOOK(stepd_delete)(const slurm_step_id_t *step);
int HOOK(send_stepd)(int fd);
int HOOK(recv_stepd)(int fd);
bool HOOK(can_bpf)(void *step);
int HOOK(setup_bpf_token)(void *step);
#pragma GCC visibility pop

#include "holder.h"
#include "jobs.h"
#include "opening_timer.h"
#include "plan.h"
#include "regular.h"
#include "report.h"
#include "running.h"

int init(void)
{
	return SLURM_SUCCESS;
}

void fini(void)
{
}

void HOOK(reconfig)(void)
{
}

int HOOK(restore)(char *folder, bool recover)
{
	(void)folder, (void)recover;
	return SLURM_SUCCESS;
}

/*
 * The calling process is a child of slurmd with one thread, still root. One that becomes slurmstepd is the SPANK plugin's, and so is
 * slurmstepd. In doubt it goes in.
 */
int HOOK(join)(const slurm_step_id_t *step, uid_t uid, bool is_step)
{
	const struct jobs_wish wish = { .id = step->job_id, .uid = uid, .plan = PLAN_DEFAULT_PATH, .ipc = true, .seconds = JOBS_SECONDS, .ask = running_job };
	struct holder holder = HOLDER_NONE;
	struct holder_folder folder;
	struct report report = { "" };
	bool made = false;

	if (step->job_id == 0 || is_step || spank_context() == S_CTX_REMOTE)
		return SLURM_SUCCESS;
	if (jobs_begin(&wish, &holder, &made, &report) == HOLDER_READY && holder_join_mounts(&holder, &folder, &report) == 0 &&
	    holder_go_back(&folder, &report) == 0 && regular_only(&report) == 0 && caps_limit(&report) == 0) {
		holder_close(&holder);
		opening_timer_start(OPENING_FILE_SECONDS); /* of this process, which ends when it has opened the file */
		return SLURM_SUCCESS;
	}
	slurm_error("%s", report.text);
	return SLURM_ERROR;
}

/* For pam_slurm_adopt, whose place pam_jail has. */
int HOOK(join_external)(const slurm_step_id_t *step)
{
	(void)step;
	return -1;
}

int HOOK(stepd_create)(uint32_t id, void *step)
{
	(void)id, (void)step;
	return SLURM_SUCCESS;
}

int HOOK(stepd_delete)(const slurm_step_id_t *step)
{
	(void)step;
	return SLURM_SUCCESS;
}

int HOOK(send_stepd)(int fd)
{
	(void)fd;
	return SLURM_SUCCESS;
}

int HOOK(recv_stepd)(int fd)
{
	(void)fd;
	return SLURM_SUCCESS;
}

/* Whether slurmstepd may load programs into the kernel: its namespaces change nothing of that. */
bool HOOK(can_bpf)(void *step)
{
	(void)step;
	return true;
}

int HOOK(setup_bpf_token)(void *step)
{
	(void)step;
	return SLURM_SUCCESS;
}
