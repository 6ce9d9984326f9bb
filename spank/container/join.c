/* The why is in join.h. */
#define _GNU_SOURCE
#include "join.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "fake.h"
#include "keeper.h"

int keeper_address(const struct place *place, struct report *report, void *address)
{
	struct sockaddr_un *to = address;

	*to = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (snprintf(to->sun_path, sizeof(to->sun_path), "%s/socket", place->box) >= (int)sizeof(to->sun_path))
		return report_fail(report, "container: the path %s is too long for a socket", place->box);
	return 0;
}

/* Connects and says what is wanted: the socket, or -1 without a sentence where nobody listens. */
static int call(const struct place *place, char wish, struct report *report)
{
	struct sockaddr_un address;
	int fd;

	if (keeper_address(place, report, &address) < 0)
		return -1;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return report_fail(report, "container: cannot make a socket: %m");
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 && send(fd, &wish, 1, MSG_NOSIGNAL) == 1)
		return fd;
	if (errno != ENOENT && errno != ECONNREFUSED && errno != EPIPE && errno != ECONNRESET)
		report_fail(report, "container: cannot reach %s: %m", address.sun_path);
	(void)close(fd);
	return -1;
}

static int read_records(int fd, struct config *config, uint32_t size)
{
	uint32_t done = 0;

	config->records = malloc(size + 1);
	if (config->records == NULL)
		return -1;
	while (done < size) {
		ssize_t length = read(fd, config->records + done, size - done);

		if (length < 0 && errno == EINTR)
			continue;
		if (length <= 0)
			return -1;
		done += (uint32_t)length;
	}
	config->size = size;
	return 0;
}

static int receive(int fd, struct joined *joined)
{
	struct keeper_answer answer;
	int fds[3];
	size_t size;
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(fds))];
	} control;
	struct iovec part = { &answer, sizeof(answer) };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
	struct cmsghdr *header;

	if (recvmsg(fd, &message, MSG_CMSG_CLOEXEC) != sizeof(answer))
		return -1;
	header = CMSG_FIRSTHDR(&message);
	size = header != NULL && header->cmsg_type == SCM_RIGHTS ? header->cmsg_len - CMSG_LEN(0) : 0;
	if (size != 2 * sizeof(int) && size != 3 * sizeof(int))
		return -1;
	(void)memcpy(fds, CMSG_DATA(header), size);
	if (size == sizeof(fds))
		(void)fcntl(fds[2], F_SETFD, 0); /* the lock goes on to the user's program */
	joined->user_ns = fds[0];
	joined->mount_ns = fds[1];
	return read_records(fd, &joined->config, answer.size);
}

bool join_is_running(const struct place *place)
{
	struct report report = { "" };
	int fd = call(place, KEEPER_ASK, &report);
	char answer = '\0';
	bool is_running = fd >= 0 && read(fd, &answer, 1) == 1 && answer == '!';

	if (fd >= 0)
		(void)close(fd);
	return is_running;
}

int join_ask(const struct place *place, struct joined *joined, struct report *report)
{
	int fd = call(place, KEEPER_JOIN, report), result;

	*joined = (struct joined){ .user_ns = -1, .mount_ns = -1 };
	if (fd < 0)
		return report->text[0] != '\0' ? -1 : 0;
	result = receive(fd, joined);
	(void)close(fd);
	return result == 0; /* a container that shuts its door at this moment is one that does not run */
}

int join_enter(const struct request *request, const struct joined *joined, struct report *report)
{
	const char *folder = request->workdir != NULL ? request->workdir : config_get(&joined->config, 'W', 0);

	if (setns(joined->user_ns, CLONE_NEWUSER) < 0)
		return report_fail(report, "container: cannot enter its user namespace: %m");
	if (setns(joined->mount_ns, CLONE_NEWNS) < 0)
		return report_fail(report, "container: cannot enter its mount namespace: %m");
	(void)close(joined->user_ns);
	(void)close(joined->mount_ns);
	if (chdir("/") < 0 || (folder != NULL && folder[0] != '\0' && chdir(folder) < 0))
		return report_fail(report, "container: cannot go to the working folder %s in the container: %m",
				   folder ? folder : "/");
	return geteuid() == 0 ? fake_ownership(report) : 0;
}

int join_wait(const struct place *place, int seconds, struct report *report)
{
	int fd = call(place, KEEPER_WAIT, report);
	struct timeval patience = { .tv_sec = seconds };
	char said[sizeof(report->text)] = "";
	ssize_t length;

	if (fd < 0)
		return report->text[0] != '\0' ? -1 : 0;
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	length = read(fd, said, sizeof(said) - 1);
	(void)close(fd);
	return length > 0 ? report_fail(report, "%s", said) : 0;
}
