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
 * When a step cannot be made ready: if not even the root could be entered, init_post_opt fails, slurmstepd ends the
 * step, and nothing was opened. If only a mount behind it failed, slurmstepd goes on so far that the sentence reaches the
 * job's stderr (user_init), and whatever it forks then, tasks first, ends at once. A failure in user_init
 * itself would drain the node, which is the operator's to decide, not ours.
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

#define EXTERN_STEP 0xfffffffc /* SLURM_EXTERN_CONT in slurm.h */

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

static bool is_ours(spank_t spank)
{
	uint32_t step = EXTERN_STEP;

	if (spank_context() != S_CTX_REMOTE)
		return false;
	if (spank_get_item(spank, S_JOB_STEPID, &step) != ESPANK_SUCCESS)
		return true; /* in doubt, inside */
	return step != EXTERN_STEP;
}

/* Returns whether slurmstepd is inside, with its forks under control; what went wrong behind that is in the report. */
static bool make_step_ready(const struct plan *plan, struct report *report)
{
	enum enter_result entered = enter_jail(plan, report);

	if (entered == ENTER_FAILED)
		return false;
	if (entered == ENTER_WHOLE && holder_start(plan, &holder, report) == 0)
		return follow_start(&holder, say, report) == 0;
	return follow_refuse(report) == 0;
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
	if (trouble.text[0] != '\0')
		say(trouble.text);
	if (!is_inside && follow_refuse(&trouble) < 0)
		say("jail: the forks of slurmstepd cannot be refused");
	return is_inside ? DONE : FAILED;
}

/* The first hook behind the opening of the job's stderr: here the sentence reaches the user. */
int slurm_spank_user_init(spank_t spank, int ac, char **av)
{
	(void)spank, (void)ac, (void)av;
	if (is_inside && trouble.text[0] != '\0')
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
