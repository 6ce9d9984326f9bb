/* The why is in supervise.h. */
#define _GNU_SOURCE
#include "supervise.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "join.h"

/* Ends as a process with this status has ended, without a second core dump. */
static void end_as(int status)
{
	static const struct rlimit no_core = { 0, 0 };
	sigset_t all;

	if (WIFSIGNALED(status)) {
		(void)setrlimit(RLIMIT_CORE, &no_core);
		(void)signal(WTERMSIG(status), SIG_DFL);
		(void)sigfillset(&all);
		(void)raise(WTERMSIG(status));
		(void)sigprocmask(SIG_UNBLOCK, &all, NULL);
	}
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

static void wait_for(pid_t child, int waiting, int seconds, void (*say)(const char *sentence))
{
	struct report report = { "" };
	int status;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* as spank_jail has it for tasks */
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			_exit(1);
	if (join_wait_end(waiting, seconds, true, &report) < 0)
		say(report.text);
	if (report.text[0] != '\0' && WIFEXITED(status) && WEXITSTATUS(status) == 0)
		_exit(1);
	end_as(status);
}

int supervise(const struct storage_paths *paths, int seconds, void (*say)(const char *sentence), struct report *report)
{
	int waiting = join_wait_begin(paths, NULL, report);
	sigset_t all, before;
	pid_t child;

	if (waiting < 0)
		return report->text[0] != '\0' ? -1 : report_fail(report, "container: the container ended before the task entered it");
	(void)sigfillset(&all);
	if (sigprocmask(SIG_BLOCK, &all, &before) < 0)
		return report_fail(report, "container: cannot block signals: %m");
	child = _Fork(); /* not fork: hooks of slurmstepd around it are not for tasks */
	if (child < 0)
		return report_fail(report, "container: cannot fork: %m");
	if (child > 0)
		wait_for(child, waiting, seconds, say);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	(void)close(waiting);
	return 0;
}
