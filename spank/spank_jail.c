/*
 * The SPANK plugin: every job runs in the jail.
 *
 * The first step of a job on a node makes the job's namespaces (holder.h), every step joins them, and the job's epilog
 * releases them. With PrologFlags=Contain the extern step is the first: it makes them as early as the job begins, so that
 * SSH finds them, and stays outside itself, for it runs nothing of a user, only `sleep` and X11 forwarding.
 *
 * slurmstepd itself goes in (slurm_spank_init_post_opt, before it opens the job's output files and the batch script),
 * because those belong to the shared root. As long as it opens files by names that the user has given it has an empty /proc and
 * no more effective capabilities than root of the jail; from slurm_spank_user_init on, when all of them are open, it has
 * the pod's /proc, because it counts and signals its tasks by the pod's process ids (holder.h). What it forks goes one step
 * further, into the inner namespaces of the holder (atfork.h).
 *
 * A hook that fails returns -1: slurmstepd looks only for negative codes and would run the user's program outside the
 * jail after an ESPANK_ERROR, which is 3000. Belt and braces, every fork of slurmstepd is refused from then on.
 *
 * When a step cannot be made ready, slurmstepd goes on so far that the sentence reaches the job's stderr (user_init), and
 * whatever it forks then, tasks first, ends at once: the step fails, nothing of the user runs, and the node is not
 * drained, which is the operator's to decide. One case is worse: not even the root of the jail is there, or it does not
 * answer. Then slurmstepd is outside when it opens files. For srun, whose output goes over the network, it sees the pod
 * read-only; a batch step ends here, for its output file can be nowhere: Slurm requeues the job and drains the node, as for
 * a failed prolog.
 *
 * Use in plugstack.conf:  required spank_jail.so [plan=/etc/soperator/jail/plan] [spool=/var/spool/slurmd] [shared_ipc] [deadline=10]
 * [unkillable=60] [timing]
 */
#define _GNU_SOURCE
#pragma GCC visibility push(default) /* what Slurm looks up; all else stays hidden */
#include <slurm/spank.h>

SPANK_PLUGIN(jail, 1);
#pragma GCC visibility pop

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "caps.h"
#include "enter.h"
#include "atfork.h"
#include "gpus.h"
#include "holder.h"
#include "jobs.h"
#include "libraries.h"
#include "audit_session.h"
#include "monotonic.h"
#include "opening_timer.h"
#include "options.h"
#include "paths.h"
#include "plan.h"
#include "probe.h"
#include "proc.h"
#include "report.h"
#include "spool.h"

/* SLURM_EXTERN_CONT, SLURM_BATCH_SCRIPT and SLURM_INTERACTIVE_STEP in slurm.h */
#define EXTERN_STEP 0xfffffffc
#define BATCH_STEP 0xfffffffb
#define INTERACTIVE_STEP 0xfffffffa

enum { DONE = 0, FAILED = -1, STEP_SECONDS = 5, VALUE_MAX = 128 * 1024 };

static struct options options;
static struct holder holder = HOLDER_NONE;
static struct report trouble;
static unsigned int mark;
static bool is_inside, is_opening;
static struct gpus_pod gpus_of_node;
static struct plan kept; /* the job's plan, which is out of reach when the environment is to be changed */

static void say(const char *sentence)
{
	slurm_error("%s", sentence);
}

static void tell_time(const char *what, int64_t since)
{
	if (options.timing)
		slurm_info("jail: %s in %lld us", what, (long long)(monotonic_us() - since));
	else
		slurm_debug("jail: %s in %lld us", what, (long long)(monotonic_us() - since));
}

static uint32_t item_of(spank_t spank, spank_item_t item, uint32_t otherwise)
{
	uint32_t value = otherwise;

	return spank_get_item(spank, item, &value) == ESPANK_SUCCESS ? value : otherwise;
}

/* In doubt a step is a batch step: it is moved, and it opens files. */
static uint32_t step_of(spank_t spank)
{
	return item_of(spank, S_JOB_STEPID, BATCH_STEP);
}

static bool is_ours(spank_t spank)
{
	return spank_context() == S_CTX_REMOTE && step_of(spank) != EXTERN_STEP;
}

/* The mounts of the job are there, but does what is mounted answer? */
static enum holder_made ask_root(struct report *report)
{
	int64_t since = monotonic_us();
	char root[32];
	int answers;

	(void)snprintf(root, sizeof(root), "/proc/%d/root", holder.id.pid); /* always fits */
	answers = probe_answers(root, options.seconds, report);
	tell_time("the root of the jail asked", since);
	if (answers == 0)
		report_fail(report, "jail: the root of the jail does not answer within %d s", options.seconds);
	return answers == 1 ? HOLDER_READY : HOLDER_LATE;
}

static enum holder_made begin(spank_t spank, struct report *report)
{
	const struct jobs_wish wish = {
		.id = item_of(spank, S_JOB_ID, 0),
		.uid = item_of(spank, S_JOB_UID, (uint32_t)-1),
		.plan = options.plan,
		.spool = options.spool,
		.ipc = options.ipc,
		.seconds = options.seconds,
	};
	enum holder_made result;
	int64_t since = monotonic_us();
	bool made = false;

	if (wish.id == 0 || wish.uid == (uint32_t)-1)
		return report_fail(report, "jail: Slurm does not report the job and the user of this step");
	result = jobs_begin(&wish, &holder, &made, report);
	if (result != HOLDER_READY)
		return result;
	tell_time(made ? "namespaces of the job made" : "namespaces of the job found", since);
	return made ? result : ask_root(report);
}

/* The job has no namespaces: slurmstepd goes as far as the plan leads, so that the user can hear of it. */
static bool enter_alone(spank_t spank)
{
	static struct plan plan;
	const struct plan_mount *point;
	struct report ignored = { "" };
	enum enter_result entered;
	int line;

	if (plan_read(options.plan, &plan, &ignored) < 0)
		return false;
	plan.job = item_of(spank, S_JOB_ID, 0);
	entered = enter_jail(&plan, &line, &ignored);
	point = plan_find(&plan, PLAN_PROC);
	if (entered != ENTER_FAILED && point != NULL && proc_cover(point->target, &ignored) < 0)
		entered = ENTER_FAILED;
	plan_free(&plan);
	return entered != ENTER_FAILED;
}

/*
 * Brings the GPUs along that Slurm has given to this step. Of the variables that name them slurmstepd sets or removes one before
 * the first hook, whatever the user has put into the job's environment: the job's for the two steps that have all, the
 * step's for all others. It does so wherever GresTypes names gpu.
 */
static int bring_gpus(spank_t spank, struct report *report)
{
	static struct gpus gpus;
	bool has_all = step_of(spank) == BATCH_STEP || step_of(spank) == INTERACTIVE_STEP;
	char list[4096] = "";

	if (spank_getenv(spank, has_all ? "SLURM_JOB_GPUS" : "SLURM_STEP_GPUS", list, sizeof(list)) != ESPANK_SUCCESS)
		return 0;
	gpus_of_pod(&kept, &gpus_of_node);
	if (gpus_take(&kept, list, &gpus, report) < 0)
		return -1;
	return gpus_give(&gpus, &kept, &holder, report);
}

/* Returns whether slurmstepd is inside. A step that is not ready leaves a sentence in the report. */
static bool make_step_ready(spank_t spank, struct report *report)
{
	enum holder_made made = begin(spank, report);
	int64_t since = monotonic_us();

	if (made == HOLDER_FAILED)
		return enter_alone(spank);
	if (made == HOLDER_LATE)
		return false;
	mark = audit_session_set(item_of(spank, S_JOB_UID, 0));
	if (jobs_plan(item_of(spank, S_JOB_ID, 0), options.plan, &kept, report) == 0)
		(void)bring_gpus(spank, report); /* a step without its devices is not ready, but inside */
	if (holder_enter_opening(&holder, report) < 0 || caps_lower(report) < 0)
		return false;
	is_opening = true;
	opening_timer_start(OPENING_STEP_SECONDS);
	(void)atfork_start(&holder, say, report);
	tell_time("slurmstepd went in", since);
	return true;
}

/* Returns whether slurmstepd may go on to tell the user. */
static bool make_step_fail(bool is_batch)
{
	struct report report = { "" };

	say(trouble.text);
	if (atfork_refuse(&report) == 0 && (is_inside || (!is_batch && enter_nothing(&report) == 0)))
		return true;
	if (report.text[0] != '\0')
		say(report.text);
	return false;
}

/* Makes the namespaces before the first step that needs them. A failure is that step's to tell. */
static void make_early(spank_t spank)
{
	struct report report = { "" };

	if (begin(spank, &report) != HOLDER_READY)
		say(report.text);
	holder_close(&holder);
}

/* slurmd starts: what is left of jobs that ended without it goes. */
int slurm_spank_init(spank_t spank, int ac, char **av)
{
	static struct plan plan;
	struct report report = { "" };
	int count = 0;

	(void)spank;
	if (spank_context() != S_CTX_SLURMD)
		return DONE;
	if (options_read(ac, av, &options, &report) == 0 && plan_read(options.plan, &plan, &report) == 0) {
		count = jobs_sweep(&plan, &report);
		plan_free(&plan);
	}
	if (report.text[0] != '\0')
		say(report.text);
	else if (count > 0)
		slurm_info("jail: cleared what %d ended jobs had left", count);
	return DONE;
}

/* mpi/pmix makes a folder as root where this variable of the user's says, and gives it to the user: that could be anywhere. Otherwise it is in /tmp. */
static int keep_pmix_in_tmp(spank_t spank, struct report *report)
{
	spank_err_t done = spank_unsetenv(spank, "SLURM_PMIX_TMPDIR");

	if (done == ESPANK_SUCCESS || done == ESPANK_ENV_NOEXIST)
		return 0;
	return report_fail(report, "jail: Slurm does not accept SLURM_PMIX_TMPDIR out of the environment of the step");
}

int slurm_spank_init_post_opt(spank_t spank, int ac, char **av)
{
	if (spank_context() != S_CTX_REMOTE)
		return DONE;
	if (options_read(ac, av, &options, &trouble) == 0) {
		if (step_of(spank) == EXTERN_STEP)
			make_early(spank);
		else if (libraries_bind(&trouble) == 0 && keep_pmix_in_tmp(spank, &trouble) == 0)
			is_inside = make_step_ready(spank, &trouble);
	}
	if (trouble.text[0] == '\0' || step_of(spank) == EXTERN_STEP)
		return DONE;
	return make_step_fail(step_of(spank) == BATCH_STEP) ? DONE : FAILED;
}

/* Changes the environment of the step's tasks. A value that is too long stays as it is: the folder is still there by its path. */
static void set_paths(spank_t spank)
{
	static char old[VALUE_MAX], value[VALUE_MAX];

	for (const struct plan_mount *each = kept.mounts; each < kept.mounts + kept.count; each++) {
		spank_err_t found;

		if (each->kind != PLAN_PATH)
			continue;
		found = spank_getenv(spank, each->source, old, sizeof(old));
		if (found == ESPANK_ENV_NOEXIST)
			old[0] = '\0';
		else if (found != ESPANK_SUCCESS)
			continue;
		if (paths_value(each, old, value, sizeof(value)) && spank_setenv(spank, each->source, value, 1) != ESPANK_SUCCESS)
			slurm_error("jail: cannot put %s into the variable %s", each->target, each->source);
	}
}

/* From where files were opened to where tasks are counted; a step that would write into the spool gets no task. */
static void leave_opening(void)
{
	unsigned long long spool = spool_mount(options.spool);

	if (holder_leave_opening(&holder, &trouble) < 0 || spool_check_files(spool, &trouble) < 0)
		(void)atfork_refuse(&trouble);
}

/* The first hook behind the opening of the job's files. A sentence reaches the user from here on. */
int slurm_spank_user_init(spank_t spank, int ac, char **av)
{
	(void)ac, (void)av;
	opening_timer_stop();
	if (is_opening)
		leave_opening();
	is_opening = false;
	if (trouble.text[0] != '\0')
		say(trouble.text);
	else if (is_ours(spank))
		set_paths(spank);
	return DONE;
}

int slurm_spank_task_init_privileged(spank_t spank, int ac, char **av)
{
	struct report report = { "" };

	(void)ac, (void)av;
	if (!is_ours(spank))
		return DONE;
	if (!is_inside || trouble.text[0] != '\0')
		return FAILED;
	if (caps_limit(&report) < 0) {
		say(report.text);
		return FAILED;
	}
	return DONE;
}

/* Slurm's variables for the libraries of GPUs; it has set them for the task by now. */
static void count_gpus_anew(spank_t spank)
{
	static const char *const variables[] = { "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ZE_AFFINITY_MASK" };
	char list[1024], value[1024];

	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		if (spank_getenv(spank, variables[i], list, sizeof(list)) == ESPANK_SUCCESS &&
		    gpus_count_anew(&gpus_of_node, list, value, sizeof(value)) && spank_setenv(spank, variables[i], value, 1) != ESPANK_SUCCESS)
			slurm_error("jail: cannot set the variable %s", variables[i]);
}

/* Already as the user, for a change of the user forgets it: a task ends with its slurmstepd, however that ends. */
int slurm_spank_task_init(spank_t spank, int ac, char **av)
{
	(void)ac, (void)av;
	if (!is_ours(spank))
		return DONE;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		slurm_debug("jail: a task will outlive its slurmstepd: %m");
	count_gpus_anew(spank);
	return DONE;
}

/* The step ends, the job need not: what this step has left running ends. */
static void end_leftovers(void)
{
	struct report report = { "" };
	int64_t since = monotonic_us();

	if (audit_session_kill(mark, &holder, STEP_SECONDS, &report) < 0)
		say(report.text);
	tell_time("what the step left behind was looked for", since);
}

/* Behind the last task, and not later: slurmstepd then waits until nobody has the tasks' output open any more. */
int slurm_spank_task_exit(spank_t spank, int ac, char **av)
{
	static uint32_t ended;

	(void)ac, (void)av;
	if (is_ours(spank) && is_inside && ++ended == item_of(spank, S_JOB_LOCAL_TASK_COUNT, 0))
		end_leftovers();
	return DONE;
}

int slurm_spank_exit(spank_t spank, int ac, char **av)
{
	(void)spank, (void)ac, (void)av;
	if (!is_inside)
		return DONE;
	atfork_stop();
	end_leftovers(); /* again: a task that never started has no end */
	holder_close(&holder);
	return DONE;
}

/* In a process of its own, when all slurmstepds of the job on this node have ended, also when slurmd was restarted. */
int slurm_spank_job_epilog(spank_t spank, int ac, char **av)
{
	struct report report = { "" };
	int64_t since = monotonic_us();

	(void)options_read(ac, av, &options, &report); /* a wrong word has been told by each step */
	report.text[0] = '\0';
	if (jobs_release(item_of(spank, S_JOB_ID, 0), options.unkillable, &report) < 0) {
		say(report.text);
		return FAILED;
	}
	if (spool_clear(options.spool, item_of(spank, S_JOB_ID, 0), &report) < 0)
		say(report.text); /* harms nobody: the node stays in use */
	tell_time("namespaces of the job released", since);
	return DONE;
}
