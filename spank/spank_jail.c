/*
 * The SPANK plugin: every step runs in the jail.
 *
 * slurmstepd itself goes in (slurm_spank_init_post_opt, before it opens the job's output files and the batch script),
 * because those belong to the shared root. It keeps the pod's pid namespace and /proc, for it counts and signals its
 * tasks by the pod's process ids. What it forks goes one step further, into the namespaces of the holder (follow.h).
 *
 * The extern step is left alone: it runs nothing of a user, only `sleep` and X11 forwarding.
 *
 * A hook that fails returns -1: slurmstepd looks only for negative codes and would run the user's program outside the
 * jail after an ESPANK_ERROR, which is 3000. Belt and braces, every fork of slurmstepd is refused from then on.
 *
 * When a step cannot be made ready, slurmstepd goes on so far that the sentence reaches the job's stderr (user_init), and
 * whatever it forks then, tasks first, ends at once: the step fails, nothing of the user runs, and the node is not
 * drained, which is the operator's to decide. One case is worse: not even the root of the jail is there. Then slurmstepd
 * is outside when it opens files. For srun, whose output goes over the network, it sees the pod read-only; a batch step
 * ends here, for its output file can be nowhere: Slurm requeues the job and drains the node, as for a failed prolog.
 *
 * Use in plugstack.conf:  required spank_jail.so [plan=/etc/soperator/jail/plan]
 */
#pragma GCC visibility push(default) /* what Slurm looks up; all else stays hidden */
#include <slurm/spank.h>

SPANK_PLUGIN(jail, 1);
#pragma GCC visibility pop

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "caps.h"
#include "enter.h"
#include "follow.h"
#include "holder.h"
#include "plan.h"
#include "report.h"

/* SLURM_EXTERN_CONT and SLURM_BATCH_SCRIPT in slurm.h */
#define EXTERN_STEP 0xfffffffc
#define BATCH_STEP 0xfffffffb

enum { DONE = 0, FAILED = -1 };

static struct holder holder = { .pid = -1, .pidfd = -1, .lifeline = -1, .home = -1 };
static struct report trouble;
static bool is_inside;

static void say(const char *sentence)
{
	slurm_error("%s", sentence);
}

static const char *plan_path(int ac, char **av, struct report *report)
{
	const char *path = PLAN_DEFAULT_PATH;

	for (int i = 0; i < ac; i++) {
		if (strncmp(av[i], "plan=/", 6) != 0) {
			report_fail(report, "jail: unknown argument \"%s\" in plugstack.conf; known is plan=/PATH", av[i]);
			return NULL;
		}
		path = av[i] + 5;
	}
	return path;
}

/* In doubt a step is a batch step: it is moved, and it opens files. */
static uint32_t step_of(spank_t spank)
{
	uint32_t step = BATCH_STEP;

	return spank_get_item(spank, S_JOB_STEPID, &step) == ESPANK_SUCCESS ? step : BATCH_STEP;
}

static bool is_ours(spank_t spank)
{
	return spank_context() == S_CTX_REMOTE && step_of(spank) != EXTERN_STEP;
}

/* Returns whether slurmstepd is inside. A step that is not ready leaves a sentence in the report. */
static bool make_step_ready(const struct plan *plan, struct report *report)
{
	enum enter_result entered = enter_jail(plan, report);

	if (entered == ENTER_WHOLE && holder_start(plan, &holder, report) == 0)
		(void)follow_start(&holder, say, report);
	return entered != ENTER_FAILED;
}

/* Returns whether slurmstepd may go on to tell the user. */
static bool make_step_fail(bool is_batch)
{
	struct report report = { "" };

	say(trouble.text);
	if (follow_refuse(&report) == 0 && (is_inside || (!is_batch && enter_nothing(&report) == 0)))
		return true;
	if (report.text[0] != '\0')
		say(report.text);
	return false;
}

int slurm_spank_init_post_opt(spank_t spank, int ac, char **av)
{
	static struct plan plan;
	const char *path;

	if (!is_ours(spank))
		return DONE;
	path = plan_path(ac, av, &trouble);
	if (path != NULL && plan_read(path, &plan, &trouble) == 0) {
		is_inside = make_step_ready(&plan, &trouble);
		plan_free(&plan);
	}
	if (trouble.text[0] == '\0')
		return DONE;
	return make_step_fail(step_of(spank) == BATCH_STEP) ? DONE : FAILED;
}

/* The first hook behind the opening of the job's stderr: here the sentence reaches the user. */
int slurm_spank_user_init(spank_t spank, int ac, char **av)
{
	(void)spank, (void)ac, (void)av;
	if (trouble.text[0] != '\0')
		say(trouble.text);
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

int slurm_spank_exit(spank_t spank, int ac, char **av)
{
	struct report report = { "" };

	(void)spank, (void)ac, (void)av;
	if (!is_inside)
		return DONE;
	follow_stop();
	if (holder_stop(&holder, &report) < 0)
		say(report.text);
	return DONE;
}
