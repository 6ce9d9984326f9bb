/*
 * The helper program: the jail without Slurm.
 *
 *   jail run --plan P [--keep-caps] -- CMD…   enters the jail with a pid namespace of its own and runs CMD as its tree
 *   jail enter WHOM [--keep-caps] -- CMD…     joins the namespaces of --job ID, of the newest job of --user UID on this
 *                                             node, or of --pid N, a holder or a `jail run`'s init
 *   jail jobs                                 lists the jobs of this node that have namespaces
 *   jail release --job ID                     ends what is left of a job; for an epilog script
 *   jail sweep [--plan P]                     clears what jobs have left whose holder is gone
 *   jail check --plan P                       reads the plan and looks whether its sources and targets are there
 *   jail explain [--plan P]                   prints the plan in words and the capabilities that stay
 *
 * It is made of the same parts as the plugin, so what a login session sees is what a job sees. Exit codes: that of CMD,
 * 64 for wrong usage, 71 where a step failed (its sentence is on stderr).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "caps.h"
#include "enter.h"
#include "explain.h"
#include "init.h"
#include "jobs.h"
#include "namespaces.h"
#include "plan.h"
#include "proc.h"
#include "report.h"
#include "spool.h"

enum { EXIT_USAGE = 64, EXIT_STEP = 71 };

#define SCRATCH_BYTES "67108864"

struct arguments {
	const char *verb, *plan;
	long pid, job, user; /* user: -1 where none was named */
	bool keep_caps;
	char **command; /* ends with NULL; empty where no CMD was given */
};

static const char usage[] = "usage: jail run --plan PATH [--keep-caps] -- COMMAND...\n"
			    "       jail enter --job ID|--user UID|--pid PID [--keep-caps] -- COMMAND...\n"
			    "       jail jobs\n"
			    "       jail release --job ID\n"
			    "       jail sweep [--plan PATH]\n"
			    "       jail check --plan PATH\n"
			    "       jail explain [--plan PATH]\n";

static int complain(const struct report *report)
{
	(void)fprintf(stderr, "%s\n", report->text); /* nowhere is left to say that stderr is gone */
	return EXIT_STEP;
}

static bool parse_number(const char *word, long least, long *number)
{
	char *end;

	errno = 0;
	*number = strtol(word, &end, 10);
	return errno == 0 && word[0] != '\0' && *end == '\0' && *number >= least && *number <= UINT32_MAX;
}

/* Returns whether the words are well-formed; what a verb needs of them is checked by the verb. */
static bool parse_arguments(char **words, struct arguments *arguments)
{
	if (words[0] == NULL)
		return false;
	arguments->verb = *words++;
	for (; *words != NULL; words++) {
		if (strcmp(*words, "--") == 0) {
			arguments->command = words + 1;
			return true;
		} else if (strcmp(*words, "--keep-caps") == 0) {
			arguments->keep_caps = true;
		} else if (strcmp(*words, "--plan") == 0 && words[1] != NULL) {
			arguments->plan = *++words;
		} else if (strcmp(*words, "--pid") == 0 && words[1] != NULL) {
			if (!parse_number(*++words, 1, &arguments->pid) || arguments->pid > INT32_MAX)
				return false;
		} else if (strcmp(*words, "--job") == 0 && words[1] != NULL) {
			if (!parse_number(*++words, 1, &arguments->job))
				return false;
		} else if (strcmp(*words, "--user") == 0 && words[1] != NULL) {
			if (!parse_number(*++words, 0, &arguments->user))
				return false;
		} else {
			return false;
		}
	}
	arguments->command = words;
	return true;
}

static int execute(const struct arguments *arguments, struct report *report)
{
	if (!arguments->keep_caps && caps_limit(report) < 0)
		return -1;
	return init_execute(arguments->command, report);
}

/* A scratch line is the folder of all jobs. Without a job it becomes an empty one, in memory: whoever runs here has nothing to do with theirs. */
static void empty_scratch(struct plan *plan)
{
	for (struct plan_mount *each = plan->mounts; each < plan->mounts + plan->count; each++) {
		if (each->kind != PLAN_SCRATCH)
			continue;
		each->kind = PLAN_TMPFS;
		each->source = "";
		each->size = SCRATCH_BYTES;
		each->mode = each->mode != NULL ? each->mode : "1777";
	}
}

/* Forks once more: the child executes the command, this process is its init. */
static int run_below(const struct arguments *arguments, struct report *report)
{
	pid_t child = fork();

	if (child < 0)
		return report_fail(report, "jail: cannot fork: %m");
	if (child == 0) {
		(void)execute(arguments, report);
		(void)complain(report);
		_exit(127);
	}
	return init_wait(child, report);
}

/* Pid 1 of the new namespace: its own mounts with the matching /proc, then the command. */
static int be_init(const struct arguments *arguments, const struct plan *plan, struct report *report)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || prctl(PR_SET_NAME, "jail-init") < 0)
		return report_fail(report, "jail: cannot prepare the init: %m");
	if (proc_renew(plan, report) < 0 || spool_close(plan, report) < 0)
		return -1;
	return run_below(arguments, report);
}

static int run_in_jail(const struct arguments *arguments, const struct plan *plan, struct report *report)
{
	pid_t child;
	int line;

	if (enter_jail(plan, &line, report) != ENTER_WHOLE)
		return -1;
	if (init_block_signals(report) < 0)
		return -1;
	if (namespaces_make(CLONE_NEWPID, report) < 0 || namespaces_make(CLONE_NEWIPC, report) < 0)
		return -1;
	child = fork();
	if (child < 0)
		return report_fail(report, "jail: cannot fork the init: %m");
	if (child == 0) {
		int code = be_init(arguments, plan, report);

		_exit(code < 0 ? complain(report) : code);
	}
	return init_wait(child, report);
}

/* How many of --pid, --job and --user there are. */
static int names_whom(const struct arguments *arguments)
{
	return (arguments->pid != 0) + (arguments->job != 0) + (arguments->user >= 0);
}

static int verb_run(const struct arguments *arguments)
{
	static struct plan plan;
	struct report report = { "" };
	int code;

	if (arguments->plan == NULL || names_whom(arguments) != 0 || arguments->command[0] == NULL)
		return -1;
	if (plan_read(arguments->plan, &plan, &report) < 0)
		return complain(&report);
	empty_scratch(&plan);
	code = run_in_jail(arguments, &plan, &report);
	plan_free(&plan);
	return code < 0 ? complain(&report) : code;
}

/* The other process must show its namespaces to us: for that our capabilities have to be as wide as its own. */
static int join(pid_t pid, struct report *report)
{
	long fd = syscall(SYS_pidfd_open, pid, 0);
	int result;

	if (fd < 0)
		return report_fail(report, "jail: cannot open process %d: %m", pid);
	result = setns((int)fd, CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC);
	if (result < 0)
		report_fail(report, "jail: cannot join the namespaces of process %d: %m", pid);
	if (close((int)fd) < 0)
		return report_fail(report, "jail: cannot close process %d: %m", pid);
	return result;
}

static int join_job(const struct arguments *arguments, struct report *report)
{
	struct jobs_job job;
	int found;

	if (arguments->job != 0)
		found = jobs_get((uint32_t)arguments->job, &job, report);
	else
		found = jobs_find((uid_t)arguments->user, &job, report);
	if (found == 0 && arguments->job != 0)
		return report_fail(report, "jail: job %ld does not run on this node", arguments->job);
	if (found == 0)
		return report_fail(report, "jail: user %ld has no job on this node", arguments->user);
	return found < 0 ? -1 : jobs_join(&job, report);
}

static int verb_enter(const struct arguments *arguments)
{
	struct report report = { "" };
	int code = -1, joined;

	if (names_whom(arguments) != 1 || arguments->plan != NULL || arguments->command[0] == NULL)
		return -1;
	joined = arguments->pid != 0 ? join((pid_t)arguments->pid, &report) : join_job(arguments, &report);
	if (joined == 0 && init_block_signals(&report) == 0)
		code = run_below(arguments, &report);
	return code < 0 ? complain(&report) : code;
}

static void print_job(const struct jobs_job *job, void *context)
{
	*(bool *)context &= printf("%u %u %d\n", job->id, job->uid, job->holder.pid) >= 0;
}

static int verb_jobs(const struct arguments *arguments)
{
	struct report report = { "" };
	bool is_printed;

	if (names_whom(arguments) != 0 || arguments->plan != NULL || arguments->command[0] != NULL)
		return -1;
	is_printed = printf("JOB USER HOLDER\n") >= 0;
	if (jobs_each(print_job, &is_printed, &report) < 0)
		return complain(&report);
	return is_printed && fflush(stdout) == 0 ? 0 : EXIT_STEP;
}

static int verb_release(const struct arguments *arguments)
{
	struct report report = { "" };

	if (arguments->job == 0 || names_whom(arguments) != 1 || arguments->plan != NULL || arguments->command[0] != NULL)
		return -1;
	return jobs_release((uint32_t)arguments->job, JOBS_UNKILLABLE, &report) < 0 ? complain(&report) : 0;
}

static int verb_sweep(const struct arguments *arguments)
{
	static struct plan plan;
	struct report report = { "" };
	int count;

	if (names_whom(arguments) != 0 || arguments->command[0] != NULL)
		return -1;
	if (plan_read(arguments->plan ? arguments->plan : PLAN_DEFAULT_PATH, &plan, &report) < 0)
		return complain(&report);
	count = jobs_sweep(&plan, &report);
	plan_free(&plan);
	if (count < 0)
		return complain(&report);
	return printf("cleared what %d jobs had left\n", count) >= 0 ? 0 : EXIT_STEP;
}

static int verb_explain(const struct arguments *arguments, bool checks)
{
	static struct plan plan;
	struct report report = { "" };
	int result;

	if (names_whom(arguments) != 0 || arguments->command[0] != NULL || (checks && arguments->plan == NULL))
		return -1;
	if (plan_read(arguments->plan ? arguments->plan : PLAN_DEFAULT_PATH, &plan, &report) < 0)
		return complain(&report);
	result = checks ? explain_check(&plan, stdout, &report) : explain_plan(&plan, stdout, &report);
	plan_free(&plan);
	return result < 0 ? complain(&report) : 0;
}

int main(int argc, char **argv)
{
	struct arguments arguments = { .user = -1 };
	int code = -1;

	if (argc > 1 && parse_arguments(argv + 1, &arguments)) {
		if (strcmp(arguments.verb, "run") == 0)
			code = verb_run(&arguments);
		else if (strcmp(arguments.verb, "enter") == 0)
			code = verb_enter(&arguments);
		else if (strcmp(arguments.verb, "jobs") == 0)
			code = verb_jobs(&arguments);
		else if (strcmp(arguments.verb, "release") == 0)
			code = verb_release(&arguments);
		else if (strcmp(arguments.verb, "sweep") == 0)
			code = verb_sweep(&arguments);
		else if (strcmp(arguments.verb, "check") == 0)
			code = verb_explain(&arguments, true);
		else if (strcmp(arguments.verb, "explain") == 0)
			code = verb_explain(&arguments, false);
	}
	if (code >= 0)
		return code;
	(void)fputs(usage, stderr);
	return EXIT_USAGE;
}
