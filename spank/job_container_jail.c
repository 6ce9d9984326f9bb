/*
 * The job_container plugin: what slurmd does with a job's files it does in the job's jail.
 *
 * slurmd itself opens the files of `sbcast` and `srun --bcast`: a child of it becomes the user and opens the path. Without this
 * plugin it does so outside the jail. There a user's file lands where no job sees it, and root of the jail could overwrite what
 * slurmd reads: its configuration, and so the plugins that it loads. Slurm asks the job_container plugin to put that child into
 * the job's container before it becomes the user, and a job's container is its jail. In slurmstepd there is nothing to do, for
 * the SPANK plugin has done it.
 *
 * The job may have no namespaces yet (salloc, then sbcast): then they are made, as its first step would.
 *
 * Slurm has no header for plugins of this kind; the functions are those of 24.11 (src/interfaces/job_container.c), and tests/test_slurm.py
 * sees a real slurmd call them. slurmd takes a plugin only from its own version.
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

const char plugin_name[] = "jobs are in the jail";
const char plugin_type[] = "job_container/jail";
const uint32_t plugin_version = SLURM_VERSION_NUMBER;

extern bool slurm_running_in_slurmd(void); /* libslurm exports it to plugins, and declares it in no header of its own */

int init(void);
void fini(void);
void container_p_reconfig(void);
int container_p_restore(char *folder, bool recover);
int container_p_join(const slurm_step_id_t *step, uid_t uid, bool is_step);
int container_p_join_external(const slurm_step_id_t *step);
int container_p_stepd_create(uint32_t id, void *step);
int container_p_stepd_delete(const slurm_step_id_t *step);
int container_p_send_stepd(int fd);
int container_p_recv_stepd(int fd);
#pragma GCC visibility pop

#include "holder.h"
#include "jobs.h"
#include "plan.h"
#include "report.h"

int init(void)
{
	return SLURM_SUCCESS;
}

void fini(void)
{
}

void container_p_reconfig(void)
{
}

int container_p_restore(char *folder, bool recover)
{
	(void)folder, (void)recover;
	return SLURM_SUCCESS;
}

/* The calling process is a child of slurmd with one thread, still root. One that becomes slurmstepd is the SPANK plugin's. */
int container_p_join(const slurm_step_id_t *step, uid_t uid, bool is_step)
{
	const struct jobs_wish wish = { .id = step->job_id, .uid = uid, .plan = PLAN_DEFAULT_PATH, .seconds = JOBS_SECONDS };
	struct holder holder = HOLDER_NONE;
	struct report report = { "" };
	bool made = false;

	if (step->job_id == 0 || is_step || !slurm_running_in_slurmd())
		return SLURM_SUCCESS;
	if (jobs_begin(&wish, &holder, &made, &report) == HOLDER_READY && holder_join_mounts(&holder, &report) == 0) {
		holder_close(&holder);
		return SLURM_SUCCESS;
	}
	slurm_error("%s", report.text);
	return SLURM_ERROR;
}

/* For pam_slurm_adopt, whose place pam_jail has. */
int container_p_join_external(const slurm_step_id_t *step)
{
	(void)step;
	return -1;
}

int container_p_stepd_create(uint32_t id, void *step)
{
	(void)id, (void)step;
	return SLURM_SUCCESS;
}

int container_p_stepd_delete(const slurm_step_id_t *step)
{
	(void)step;
	return SLURM_SUCCESS;
}

int container_p_send_stepd(int fd)
{
	(void)fd;
	return SLURM_SUCCESS;
}

int container_p_recv_stepd(int fd)
{
	(void)fd;
	return SLURM_SUCCESS;
}
