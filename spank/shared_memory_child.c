/* The why is in shared_memory_child.h. */
#define _GNU_SOURCE
#include "shared_memory_child.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	STACK = 1024 * 1024, /* of which only what is touched is there */
	MOMENT = 200,	     /* ms for a child that was killed; most of what hangs lets go at once */
};

bool shared_memory_child_start(struct shared_memory_child *child, int (*run)(void *context), void *context)
{
	int error;

	*child = (struct shared_memory_child){ .pid = -1, .pidfd = -1 };
	child->stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	if (child->stack == MAP_FAILED)
		return false;
	child->pid = clone(run, child->stack + STACK, CLONE_VM | CLONE_PIDFD | SIGCHLD, context, &child->pidfd);
	if (child->pid > 0)
		return true;
	error = errno;
	(void)munmap(child->stack, STACK);
	errno = error;
	return false;
}

void shared_memory_child_end(struct shared_memory_child *child, bool has_ended)
{
	struct pollfd end = { .fd = child->pidfd, .events = POLLIN };

	if (!has_ended && kill(child->pid, SIGKILL) == 0)
		has_ended = poll(&end, 1, MOMENT) > 0;
	(void)close(child->pidfd); /* nothing was written to it */
	while (waitpid(child->pid, NULL, has_ended ? 0 : WNOHANG) < 0 && errno == EINTR)
		continue;
	if (has_ended)
		(void)munmap(child->stack, STACK);
}
