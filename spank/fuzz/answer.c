/* What the process of a container answers (../container/join.c): two open files, as without a name and further namespaces, and bytes. */
#define _GNU_SOURCE
#include "../container/join.c"

#include "fuzz.h"

const char *const fuzz_words[] = { "EA=b", "W/work", NULL };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct joined joined = { .user_ns = -1, .mount_ns = -1, .unshared = { -1, -1, -1 } };
	int ends[2], fds[2] = { dup(2), dup(2) };
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(fds))];
	} control = { 0 };
	struct iovec part = { (void *)(uintptr_t)data, size };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
	struct report report = { "" };

	HOLDS(fds[0] >= 0 && fds[1] >= 0);
	control.header = (struct cmsghdr){ CMSG_LEN(sizeof(fds)), SOL_SOCKET, SCM_RIGHTS };
	(void)memcpy(CMSG_DATA(&control.header), fds, sizeof(fds));
	HOLDS(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
	HOLDS(size == 0 || sendmsg(ends[0], &message, MSG_NOSIGNAL) == (ssize_t)size);
	(void)close(ends[0]);
	if (receive(ends[1], &joined, &report) == 0)
		for (int i = 0; config_get(&joined.config, 'E', i) != NULL; i++)
			;
	free(joined.config.records);
	(void)close(ends[1]);
	(void)close(fds[0]);
	(void)close(fds[1]);
	/* The copies that came over the socket, whoever took them. */
	(void)close_range((unsigned)fds[1] + 1, ~0U, 0);
	return 0;
}
