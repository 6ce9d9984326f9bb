/* The why is in holder.h. */
#define _GNU_SOURCE
#include "holder.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "proc.h"

static int open_pidfd(pid_t pid, struct report *report)
{
	long fd = syscall(SYS_pidfd_open, pid, 0); /* close-on-exec by definition */

	if (fd < 0)
		return report_fail(report, "jail: cannot open process %d: %m", pid);
	return (int)fd;
}

static void reset_signals(void)
{
	sigset_t none;

	for (int number = 1; number < NSIG; number++)
		(void)signal(number, number == SIGCHLD ? SIG_IGN : SIG_DFL); /* fails for those that cannot be set */
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Keeps only the lifeline; with SIGCHLD ignored the kernel reaps every orphan by itself. */
static void hold(int lifeline)
{
	char ignored;

	if (dup2(lifeline, 3) < 0 || close_range(4, ~0U, 0) < 0 || close_range(0, 2, 0) < 0)
		_exit(1);
	for (;;) {
		ssize_t got = read(3, &ignored, 1);

		if (got == 0 || (got < 0 && errno != EINTR))
			_exit(0);
	}
}

static void be_holder(const struct plan *plan, int lifeline)
{
	struct report report = { "" };

	reset_signals();
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || prctl(PR_SET_NAME, "jail-holder") < 0)
		report_fail(&report, "jail: cannot prepare the holder: %m");
	else if (unshare(CLONE_NEWNS) < 0)
		report_fail(&report, "jail: cannot make the tasks' mount namespace: %m");
	else
		(void)proc_renew(plan, &report); /* what it says goes to slurmstepd with the report */
	if (send(lifeline, report.text, sizeof(report.text), MSG_NOSIGNAL) < 0 || report.text[0] != '\0')
		_exit(1);
	hold(lifeline);
}

/* Forks the init of a new pid namespace, and leaves the caller's later children where they were. */
static pid_t fork_init(const struct holder *holder, struct report *report)
{
	pid_t pid;

	if (unshare(CLONE_NEWPID) < 0)
		return report_fail(report, "jail: cannot make a pid namespace: %m");
	pid = fork();
	if (pid == 0)
		return 0;
	if (pid < 0)
		report_fail(report, "jail: cannot fork the holder: %m");
	if (holder_aim_back(holder, report) < 0)
		return -1;
	return pid;
}

static int hear_from(struct holder *holder, struct report *report)
{
	struct report said;
	ssize_t got;

	do
		got = recv(holder->lifeline, said.text, sizeof(said.text), 0);
	while (got < 0 && errno == EINTR);
	if (got != (ssize_t)sizeof(said.text))
		return report_fail(report, "jail: the holder ended before it was ready");
	said.text[sizeof(said.text) - 1] = '\0';
	if (said.text[0] != '\0')
		return report_fail(report, "%s", said.text);
	holder->pidfd = open_pidfd(holder->pid, report);
	return holder->pidfd < 0 ? -1 : 0;
}

int holder_start(const struct plan *plan, struct holder *holder, struct report *report)
{
	int pair[2];

	*holder = (struct holder){ .pid = -1, .pidfd = -1, .lifeline = -1, .home = open_pidfd(getpid(), report) };
	if (holder->home < 0)
		return -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return report_fail(report, "jail: cannot make the holder's lifeline: %m");
	holder->lifeline = pair[0];
	holder->pid = fork_init(holder, report);
	if (holder->pid == 0) {
		if (close(pair[0]) < 0)
			_exit(1);
		be_holder(plan, pair[1]);
	}
	if (close(pair[1]) < 0)
		report_fail(report, "jail: cannot close the holder's end of the lifeline: %m");
	return holder->pid < 0 ? -1 : hear_from(holder, report);
}

int holder_aim_children(const struct holder *holder, struct report *report)
{
	if (setns(holder->pidfd, CLONE_NEWPID) < 0)
		return report_fail(report, "jail: cannot aim at the pid namespace of the holder (pid %d): %m", holder->pid);
	return 0;
}

int holder_aim_back(const struct holder *holder, struct report *report)
{
	if (setns(holder->home, CLONE_NEWPID) < 0)
		return report_fail(report, "jail: cannot aim back at the own pid namespace: %m");
	return 0;
}

int holder_join_mounts(const struct holder *holder, struct report *report)
{
	char folder[PATH_MAX];
	bool has_folder = getcwd(folder, sizeof(folder)) != NULL;

	if (setns(holder->pidfd, CLONE_NEWNS) < 0)
		return report_fail(report, "jail: cannot join the mounts of the holder (pid %d): %m", holder->pid);
	if (has_folder && chdir(folder) < 0 && errno != EACCES && errno != ENOENT)
		return report_fail(report, "jail: cannot go back to %s: %m", folder);
	return 0;
}

static void close_all(struct holder *holder)
{
	int *fds[] = { &holder->pidfd, &holder->lifeline, &holder->home };

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		if (*fds[i] >= 0)
			(void)close(*fds[i]); /* nothing was written to it, so nothing can be lost */
		*fds[i] = -1;
	}
}

int holder_stop(struct holder *holder, struct report *report)
{
	const struct timespec pause = { .tv_nsec = 1000 * 1000 };
	pid_t got = 0;

	if (holder->pid <= 0) {
		close_all(holder);
		return 0;
	}
	/* No process: it was reaped already, by slurmstepd, which waits for any child. A pidfd cannot hit another. */
	if (holder->pidfd >= 0 && syscall(SYS_pidfd_send_signal, holder->pidfd, SIGKILL, NULL, 0) < 0 && errno != ESRCH)
		report_fail(report, "jail: cannot kill the holder (pid %d): %m", holder->pid);
	close_all(holder);
	for (int i = 0; i < 5000 && got != holder->pid; i++) {
		got = waitpid(-1, NULL, WNOHANG); /* any: the init stays until also the tasks are reaped, by us */
		if (got < 0 && errno == ECHILD)
			break;
		if (got == 0 && nanosleep(&pause, NULL) < 0 && errno != EINTR)
			break;
	}
	if (got == 0)
		report_fail(report, "jail: a process of pid namespace %d did not end within 5 s", holder->pid);
	holder->pid = -1;
	return report->text[0] == '\0' ? 0 : -1;
}
