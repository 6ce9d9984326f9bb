/* The why is in probe.h. */
#define _GNU_SOURCE
#include "probe.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STACK = 64 * 1024 };

static int ask(void *path)
{
	struct statfs ignored;

	(void)statfs(path, &ignored); /* whatever it said, it answered */
	return 0;
}

/* 1 where the child ended within the seconds, 0 where it did not, -1 where that cannot be told. */
static int wait_for(int pidfd, int seconds)
{
	struct pollfd end = { .fd = pidfd, .events = POLLIN };
	int got;

	do
		got = poll(&end, 1, seconds * 1000);
	while (got < 0 && errno == EINTR);
	return got;
}

int probe_answers(const char *path, int seconds, struct report *report)
{
	char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	int pidfd = -1, got = -1;
	pid_t child = -1;

	if (stack != MAP_FAILED)
		child = clone(ask, stack + STACK, CLONE_VM | CLONE_PIDFD | SIGCHLD, (void *)path, &pidfd);
	if (child > 0)
		got = wait_for(pidfd, seconds);
	if (got < 0)
		report_fail(report, "jail: cannot ask whether %s answers: %m", path);
	if (pidfd >= 0)
		(void)close(pidfd); /* nothing was written to it */
	if (got <= 0 && child > 0)
		(void)kill(child, SIGKILL);
	while (child > 0 && waitpid(child, NULL, got > 0 ? 0 : WNOHANG) < 0 && errno == EINTR)
		continue;
	if (stack != MAP_FAILED && (got > 0 || child < 0))
		(void)munmap(stack, STACK); /* a late child may still stand on its own */
	return got < 0 ? -1 : got > 0;
}
