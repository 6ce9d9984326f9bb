/* The why is in init.h. */
#define _GNU_SOURCE
#include "init.h"

#include <errno.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

int init_block_signals(struct report *report)
{
	sigset_t all;

	if (sigfillset(&all) < 0 || sigprocmask(SIG_BLOCK, &all, NULL) < 0)
		return report_fail(report, "jail: cannot block signals: %m");
	return 0;
}

int init_execute(char **command, struct report *report)
{
	sigset_t none;

	if (sigemptyset(&none) < 0 || sigprocmask(SIG_SETMASK, &none, NULL) < 0)
		return report_fail(report, "jail: cannot unblock signals: %m");
	/* Whatever was open outside, a folder of the old root above all, must not come along. */
	if (close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
		return report_fail(report, "jail: cannot close inherited files: %m");
	(void)execvp(command[0], command);
	return report_fail(report, "jail: cannot execute %s in the jail: %m", command[0]);
}

/* Reaps all that has ended; returns whether `child` was among it, and then its code. */
static bool reap(pid_t child, int *code)
{
	bool is_over = false;
	int status;

	for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
		if (pid != child)
			continue;
		is_over = true;
		*code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	}
	return is_over;
}

int init_wait(pid_t child, struct report *report)
{
	siginfo_t info;
	sigset_t all;
	int code = -1;

	if (sigfillset(&all) < 0)
		return report_fail(report, "jail: cannot wait for signals: %m");
	while (!reap(child, &code)) {
		int number = sigwaitinfo(&all, &info);

		if (number < 0 && errno != EINTR)
			return report_fail(report, "jail: cannot wait for signals: %m");
		/* What the kernel itself sends (^C on a terminal) the child got too, being in the same process group. */
		if (number <= 0 || number == SIGCHLD || info.si_code == SI_KERNEL)
			continue;
		if (kill(child, number) < 0 && errno != ESRCH)
			return report_fail(report, "jail: cannot forward signal %d to process %d: %m", number, child);
	}
	return code;
}
