/*
 * PrologSlurmctld of clusters whose nodes sleep: ends when the nodes of its job have woken (docs/decisions/0081).
 *
 * slurmctld looks every 30 s for jobs whose nodes have come up, and at once where a PrologSlurmctld ends (24.11: job_time_limit in job_mgr.c,
 * prolog_running_decr in job_scheduler.c). So this waits as long as the job does, and for other jobs it is one request. It always ends with 0:
 * where it cannot ask or may not wait, slurmctld begins the job at its next look. It fails no job, for a failed one is queued again.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <slurm/slurm_version.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#ifndef MOST
#define MOST 64 /* of these at once in slurmctld's pod; jobs past it begin with slurmctld's next look */
#endif
#define MARGIN 10 /* seconds before PrologEpilogTimeout, past which the job would be queued again */
#if SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(25, 11, 0)
#define prolog_timeout prolog_epilog_timeout
#define JOB(id) (id)
#else
#define JOB(id) ((slurm_step_id_t){ .job_id = (id), .step_id = NO_VAL, .step_het_comp = NO_VAL })
#endif
#define SLEEPS (NODE_STATE_POWERED_DOWN | NODE_STATE_POWERING_UP | NODE_STATE_POWERING_DOWN)

/* Whether the job still waits for nodes that wake: not after it was cancelled or queued again, nor where slurmctld does not say. */
static bool is_waiting(uint32_t id)
{
	job_info_msg_t *jobs = NULL;
	bool found = false;

	if (slurm_load_job(&jobs, JOB(id), SHOW_ALL | SHOW_DETAIL) != SLURM_SUCCESS)
		return false;
	for (uint32_t i = 0; i < jobs->record_count; i++) {
		slurm_job_info_t *job = &jobs->job_array[i];

		if (job->job_id == id)
			found = (job->job_state & JOB_STATE_BASE) == JOB_RUNNING && (job->job_state & JOB_POWER_UP_NODE);
	}
	slurm_free_job_info_msg(jobs);
	return found;
}

/* Whether a node is on its way to be up: not where slurmctld does not know it. */
static bool is_asleep(char *name)
{
	node_info_msg_t *nodes = NULL;
	bool found = false;

	if (slurm_load_node_single(&nodes, name, SHOW_ALL) != SLURM_SUCCESS)
		return false;
	for (uint32_t i = 0; i < nodes->record_count; i++)
		found |= nodes->node_array[i].name && (nodes->node_array[i].node_state & SLEEPS);
	slurm_free_node_info_msg(nodes);
	return found;
}

/* Keep one of so many places until the end of this process; false where all are taken. */
static bool take_place(void)
{
	struct sockaddr_un place = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	for (int i = 0; fd >= 0 && i < MOST; i++) {
		int length = snprintf(place.sun_path + 1, sizeof(place.sun_path) - 1, "soperator-await-%d", i);

		if (bind(fd, (struct sockaddr *)&place, offsetof(struct sockaddr_un, sun_path) + 1 + length) == 0)
			return true;
	}
	return false;
}

/* How many seconds this may take. What was read is freed with the process: what frees it has another name in each release. */
static time_t limit(void)
{
	slurm_conf_t *conf = NULL;
	time_t found = 0;

	if (slurm_load_ctl_conf(0, &conf) != SLURM_SUCCESS)
		return 0;
	if (conf->prolog_timeout == NO_VAL16)
		found = (time_t)INT32_MAX;
	else if (conf->prolog_timeout > MARGIN)
		found = conf->prolog_timeout - MARGIN;
	return found;
}

static time_t now(void)
{
	struct timespec clock;

	clock_gettime(CLOCK_MONOTONIC, &clock);
	return clock.tv_sec;
}

/* Half a second, and a twentieth of what was waited where that is more: machines that take minutes are not asked for as often. */
static void pause_after(time_t waited)
{
	long ms = waited > 100 ? 5000 : waited > 10 ? waited * 50 : 500;
	struct timespec pause = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	nanosleep(&pause, NULL);
}

/* Slurm's library ends a process with 1 where slurm.conf cannot be read. */
static void end_well(void)
{
	_exit(0);
}

int main(void)
{
	const char *id = getenv("SLURM_JOB_ID"), *list = getenv("SLURM_JOB_NODELIST");
	time_t began = now(), most;
	hostlist_t *nodes;
	uint32_t job;
	char *node;

	if (atexit(end_well) || prctl(PR_SET_PDEATHSIG, SIGKILL) || !id || !list)
		return 0;
	job = strtoul(id, NULL, 10);
	slurm_init(NULL);
	if (!is_waiting(job) || !take_place() || !(nodes = slurm_hostlist_create(list)))
		return 0;
	most = limit();
	while ((node = slurm_hostlist_shift(nodes))) {
		while (is_asleep(node)) {
			if (now() - began >= most || !is_waiting(job))
				return 0;
			pause_after(now() - began);
		}
		free(node);
	}
	return 0;
}
