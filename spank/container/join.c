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

#include "fakeroot.h"
#include "daemon.h"

int daemon_address(const struct storage_paths *paths, struct report *report, void *address)
{
	struct sockaddr_un *to = address;

	*to = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (snprintf(to->sun_path, sizeof(to->sun_path), "%s/socket", paths->box) >= (int)sizeof(to->sun_path))
		return report_fail(report, "container: the path %s is too long for a socket", paths->box);
	return 0;
}

/* Connects and says what is wanted: the socket, or -1 without a sentence where nobody listens. */
static int call(const struct storage_paths *paths, char wish, const char *step, struct report *report)
{
	char words[DAEMON_WORDS];
	struct sockaddr_un address;
	int fd;

	if (daemon_address(paths, report, &address) < 0)
		return -1;
	(void)snprintf(words, sizeof(words), "%c%s", wish, step != NULL ? step : "");
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return report_fail(report, "container: cannot make a socket: %m");
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 && send(fd, words, strlen(words), MSG_NOSIGNAL) > 0)
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
	config->records[size] = '\0'; /* whoever sent them: the last one ends too */
	config->size = size;
	return 0;
}

static int refused(struct report *report)
{
	return report_fail(report, "container: this container runs in another job of yours, and only steps of that job can enter it");
}

/* 0 with the namespaces; -1, with a sentence only where there is more to say than that it does not run. */
static int receive(int fd, struct joined *joined, struct report *report)
{
	struct daemon_answer answer = { 0 };
	int fds[DAEMON_FDS], count, next = 2;
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(fds))];
	} control;
	struct iovec part = { &answer, sizeof(answer) };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
	struct cmsghdr *header;

	if (recvmsg(fd, &message, MSG_CMSG_CLOEXEC) != sizeof(answer))
		return -1;
	if (answer.size == DAEMON_OF_OTHER_JOB)
		return refused(report);
	header = CMSG_FIRSTHDR(&message);
	if (header == NULL || header->cmsg_type != SCM_RIGHTS || header->cmsg_len < CMSG_LEN(0))
		return -1;
	count = (int)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
	if (count != 2 + __builtin_popcount(answer.unshared) + (answer.has_alive != 0) || answer.unshared >> UNSHARE_KINDS)
		return -1;
	(void)memcpy(fds, CMSG_DATA(header), (size_t)count * sizeof(int));
	joined->user_ns = fds[0], joined->mount_ns = fds[1], joined->is_other_step = answer.is_other_step != 0;
	for (int i = 0; i < UNSHARE_KINDS; i++)
		if (answer.unshared & 1U << i)
			joined->unshared[i] = fds[next++];
	if (answer.has_alive)
		(void)fcntl(fds[next], F_SETFD, 0); /* the lock goes on to the user's program */
	return read_records(fd, &joined->config, answer.size);
}

bool join_is_running(const struct storage_paths *paths)
{
	struct report report = { "" };
	int fd = call(paths, DAEMON_ASK, NULL, &report);
	char answer = '\0';
	bool is_running = fd >= 0 && read(fd, &answer, 1) == 1 && answer == '!';

	if (fd >= 0)
		(void)close(fd);
	return is_running;
}

int join_ask(const struct storage_paths *paths, const char *step, struct joined *joined, struct report *report)
{
	int fd = call(paths, DAEMON_JOIN, step, report), result;

	*joined = (struct joined){ .user_ns = -1, .mount_ns = -1, .unshared = { -1, -1, -1 } };
	if (fd < 0)
		return report->text[0] != '\0' ? -1 : 0;
	result = receive(fd, joined, report);
	(void)close(fd);
	if (report->text[0] != '\0')
		return -1;
	return result == 0; /* a container that shuts its door at this moment is one that does not run */
}

/* Those that the container has, and no other: it was made without. */
static int enter_unshared(const struct request *request, const struct joined *joined, struct report *report)
{
	unsigned int wanted = request_unshared(request);

	for (int i = 0; i < UNSHARE_KINDS; i++) {
		const struct request_namespace *kind = request_namespace(i);

		if (joined->unshared[i] < 0 && wanted & 1U << i)
			return report_fail(report, "container: --container-unshare=%s: the container runs already, and its %s is not "
						   "separate", kind->word, kind->title);
		if (joined->unshared[i] >= 0 && (setns(joined->unshared[i], kind->flag) < 0 || close(joined->unshared[i]) < 0))
			return report_fail(report, "container: cannot enter its %s namespace: %m", kind->title);
	}
	return 0;
}

int join_enter(const struct request *request, const struct joined *joined, struct report *report)
{
	const char *folder = request->workdir != NULL ? request->workdir : config_get(&joined->config, 'W', 0);

	if (setns(joined->user_ns, CLONE_NEWUSER) < 0)
		return report_fail(report, "container: cannot enter its user namespace: %m");
	if (enter_unshared(request, joined, report) < 0)
		return -1;
	if (setns(joined->mount_ns, CLONE_NEWNS) < 0)
		return report_fail(report, "container: cannot enter its mount namespace: %m");
	(void)close(joined->user_ns);
	(void)close(joined->mount_ns);
	if (chdir("/") < 0 || (folder != NULL && folder[0] != '\0' && chdir(folder) < 0))
		return report_fail(report, "container: cannot go to the working folder %s in the container: %m",
				   folder ? folder : "/");
	return geteuid() == 0 ? fakeroot_ownership(report) : 0;
}

int join_wait_begin(const struct storage_paths *paths, const char *step, struct report *report)
{
	return call(paths, DAEMON_WAIT, step, report);
}

int join_wait_end(int fd, int seconds, bool must_say, struct report *report)
{
	struct timeval patience = { .tv_sec = seconds };
	char said[sizeof(report->text)] = "";
	ssize_t length;

	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	do
		length = read(fd, said, sizeof(said) - 1);
	while (length < 0 && errno == EINTR);
	(void)close(fd);
	if (length > 0 && said[0] != '\0')
		return report_fail(report, "%s", said);
	if (length <= 0 && must_say)
		return report_fail(report, "container: the container's process has died before it was saved");
	return 0;
}

int join_wait(const struct storage_paths *paths, const char *step, int seconds, struct report *report)
{
	int fd = join_wait_begin(paths, step, report);

	if (fd < 0)
		return report->text[0] != '\0' ? -1 : 0;
	return join_wait_end(fd, seconds, false, report);
}
