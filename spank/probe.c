/* The why is in probe.h. */
#define _GNU_SOURCE
#include "probe.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

int probe_answers(const char *path, int seconds, struct report *report)
{
	struct pollfd poll_fd = { .fd = -1, .events = POLLIN };
	struct statfs ignored;
	pid_t child = fork();
	int got = -1;

	if (child == 0) {
		(void)statfs(path, &ignored);
		_exit(0);
	}
	if (child > 0)
		poll_fd.fd = (int)syscall(SYS_pidfd_open, child, 0);
	if (poll_fd.fd >= 0)
		do
			got = poll(&poll_fd, 1, seconds * 1000);
		while (got < 0 && errno == EINTR);
	if (got < 0)
		report_fail(report, "jail: cannot ask whether %s answers: %m", path);
	if (poll_fd.fd >= 0)
		(void)close(poll_fd.fd); /* nothing was written to it */
	if (got <= 0 && child > 0)
		(void)kill(child, SIGKILL);
	while (child > 0 && waitpid(child, NULL, got > 0 ? 0 : WNOHANG) < 0 && errno == EINTR)
		continue;
	return got < 0 ? -1 : got > 0;
}
