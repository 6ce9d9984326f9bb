/* The why is in keeper.h. */
#define _GNU_SOURCE
#include "keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "entrypoint.h"
#include "program.h"
#include "root.h"
#include "saver.h"
#include "userns.h"

enum { GUESTS_MAX = 4096, PATIENCE_MS = 60000, WAITER_MS = 5000, WAITERS_MAX = 64 };

struct keeper {
	const struct request *request;
	const struct place *place;
	struct config config;
	struct saver saver;
	int box_fd, socket, user_ns, mount_ns, unshared[UNSHARE_KINDS], alive;
	int guests, waiters, arrived, expected;
	bool is_closing;
	struct pollfd fds[1 + GUESTS_MAX];
	int waiting[WAITERS_MAX];
};

static int listen_at(const struct place *place, struct report *report)
{
	struct sockaddr_un address;
	int fd;

	if (keeper_address(place, report, &address) < 0)
		return -1;
	(void)unlink(address.sun_path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 1024) < 0)
		return report_fail(report, "container: cannot listen at %s: %m", address.sun_path);
	return fd;
}

static bool is_other_step(const struct keeper *keeper, const char *step)
{
	return step[0] != '\0' && keeper->request->step != NULL && strcmp(step, keeper->request->step) != 0;
}

static void send_namespaces(const struct keeper *keeper, int guest, const char *step)
{
	struct keeper_answer answer = { .size = keeper->config.size, .unshared = (uint8_t)request_unshared(keeper->request),
					.has_alive = keeper->request->name != NULL,
					.is_other_step = is_other_step(keeper, step) };
	int fds[KEEPER_FDS] = { keeper->user_ns, keeper->mount_ns }, count = 2;
	size_t size;
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(fds))];
	} control = { 0 };
	struct iovec parts[2] = { { &answer, sizeof(answer) }, { keeper->config.records, keeper->config.size } };
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2, .msg_control = &control };

	for (int i = 0; i < UNSHARE_KINDS; i++)
		if (answer.unshared & 1U << i)
			fds[count++] = keeper->unshared[i];
	if (answer.has_alive)
		fds[count++] = keeper->alive;
	size = (size_t)count * sizeof(int);
	message.msg_controllen = CMSG_SPACE(size);

	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	ssize_t sent;

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(size);
	(void)memcpy(CMSG_DATA(header), fds, size);
	sent = sendmsg(guest, &message, MSG_NOSIGNAL);
	while (sent >= (ssize_t)sizeof(answer) && (size_t)sent < sizeof(answer) + keeper->config.size) {
		size_t done = (size_t)sent - sizeof(answer);
		ssize_t more = send(guest, keeper->config.records + done, keeper->config.size - done, MSG_NOSIGNAL);

		if (more <= 0)
			return;
		sent += more;
	}
}

/* A guest is counted before it is let in, so that it cannot come too late. */
static void let_in(struct keeper *keeper, int guest, pid_t pid, const char *step)
{
	static const struct keeper_answer refusal = { .size = KEEPER_OF_OTHER_JOB };
	int pidfd = pid > 0 && keeper->guests < GUESTS_MAX ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;

	/* Each job has its own process ids, and a process of another job has none here: it could not be watched. */
	if (pid == 0)
		(void)send(guest, &refusal, sizeof(refusal), MSG_NOSIGNAL);
	if (pidfd < 0)
		return;
	keeper->fds[1 + keeper->guests++] = (struct pollfd){ pidfd, POLLIN, 0 };
	keeper->arrived++;
	send_namespaces(keeper, guest, step);
}

/* A step that came into another step's container has nothing to wait for: it may run for hours. */
static bool may_wait(const struct keeper *keeper, const char *step)
{
	return !is_other_step(keeper, step) && keeper->waiters < WAITERS_MAX;
}

static void welcome(struct keeper *keeper)
{
	struct timeval patience = { .tv_sec = 5 };
	int guest = accept4(keeper->socket, NULL, NULL, SOCK_CLOEXEC);
	char words[KEEPER_WORDS + 1] = "";
	struct ucred who;
	socklen_t length = sizeof(who);

	if (guest < 0)
		return;
	(void)setsockopt(guest, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	(void)setsockopt(guest, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	(void)!read(guest, words, sizeof(words) - 1);
	if (words[0] == KEEPER_WAIT && may_wait(keeper, words + 1)) {
		keeper->waiting[keeper->waiters++] = guest;
		return;
	}
	if (words[0] == KEEPER_ASK && !keeper->is_closing)
		(void)send(guest, "!", 1, MSG_NOSIGNAL);
	/* The folder is shut to other users; the id is asked once more all the same. */
	if (words[0] == KEEPER_JOIN && !keeper->is_closing && getsockopt(guest, SOL_SOCKET, SO_PEERCRED, &who, &length) == 0 &&
	    who.uid == geteuid())
		let_in(keeper, guest, who.pid, words + 1);
	(void)close(guest);
}

static void forget_gone(struct keeper *keeper)
{
	for (int i = 1; i <= keeper->guests;) {
		if (keeper->fds[i].revents == 0) {
			i++;
			continue;
		}
		(void)close(keeper->fds[i].fd);
		keeper->fds[i] = keeper->fds[keeper->guests--];
	}
}

/* Until all that were announced have come, and all that came are gone. */
static void serve(struct keeper *keeper)
{
	keeper->fds[0] = (struct pollfd){ keeper->socket, POLLIN, 0 };
	while (keeper->arrived < keeper->expected || keeper->guests > 0) {
		int ready = poll(keeper->fds, (nfds_t)(1 + keeper->guests), keeper->guests > 0 ? -1 : PATIENCE_MS);

		if (ready == 0 || (ready < 0 && errno != EINTR))
			return;
		if (ready < 0)
			continue;
		forget_gone(keeper);
		if (keeper->fds[0].revents != 0)
			welcome(keeper);
	}
}

/* By its open folder: what its path is in the container is the user's to say. */
static void remove_box(struct keeper *keeper, struct report *report)
{
	static const char *const parts[] = { "upper", "work", "root", "fetch", "image", "step", "failed", "alive", "lock", "socket" };
	char self[PLACE_MAX + 8];

	if (fchdir(keeper->box_fd) < 0)
		return;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		(void)place_remove(parts[i], report);
	(void)snprintf(self, sizeof(self), "../%s", strrchr(keeper->place->box, '/') + 1);
	(void)rmdir(self);
}

/* Nobody is let in any more, but who waits is taken down; until the saver has answered, and then for so long. */
static void receive_waiters(struct keeper *keeper, int answer, int patience)
{
	struct pollfd fds[2] = { { keeper->socket, POLLIN, 0 }, { answer, POLLIN, 0 } };

	keeper->is_closing = true;
	while (poll(fds, 2, answer >= 0 ? -1 : patience) > 0 && fds[1].revents == 0)
		if (fds[0].revents != 0) {
			welcome(keeper);
			if (answer < 0)
				return;
		}
}

static int bye(struct keeper *keeper)
{
	struct report report = { "" };
	bool is_saved = keeper->saver.pid >= 0;

	saver_order(&keeper->saver);
	receive_waiters(keeper, keeper->saver.answer, 0);
	(void)saver_finish(&keeper->saver, &report);
	if (is_saved && keeper->waiters == 0)
		receive_waiters(keeper, -1, WAITER_MS);
	if (keeper->request->name == NULL)
		remove_box(keeper, &report);
	else
		(void)unlinkat(keeper->box_fd, "socket", 0);
	for (int i = 0; i < keeper->waiters; i++)
		(void)send(keeper->waiting[i], report.text, report.text[0] != '\0' ? strlen(report.text) : 1, MSG_NOSIGNAL);
	return report.text[0] == '\0' ? 0 : 1;
}

static int open_own(const char *name, struct report *report)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC);

	return fd >= 0 ? fd : report_fail(report, "container: cannot open %s: %m", name);
}

/* A network namespace begins with a loopback that is down. */
static int raise_loopback(struct report *report)
{
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0)
		return report_fail(report, "container: cannot raise the loopback of the container's network: %m");
	return close(fd);
}

/* Namespaces for the container alone: always those of users and mounts, and those of --container-unshare. */
static int enter_namespaces(struct keeper *keeper, struct report *report)
{
	unsigned int wanted = request_unshared(keeper->request);
	bool is_root = keeper->request->remap_root == 1;
	int flags = CLONE_NEWNS;

	for (int i = 0; i < UNSHARE_KINDS; i++)
		flags |= wanted & 1U << i ? request_namespace(i)->flag : 0;
	if (userns_enter(flags, is_root ? 0 : geteuid(), is_root ? 0 : getegid(), report) < 0)
		return -1;
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return report_fail(report, "container: cannot make the mounts private: %m");
	for (int i = 0; i < UNSHARE_KINDS; i++)
		if (wanted & 1U << i && (keeper->unshared[i] = open_own(request_namespace(i)->file, report)) < 0)
			return -1;
	if (wanted & UNSHARE_NET && raise_loopback(report) < 0)
		return -1;
	keeper->user_ns = open_own("/proc/self/ns/user", report);
	keeper->mount_ns = open_own("/proc/self/ns/mnt", report);
	return keeper->user_ns < 0 || keeper->mount_ns < 0 ? -1 : 0;
}

/* From here on in namespaces of its own. */
static int build(struct keeper *keeper, const struct image *image, struct report *report)
{
	int root_fd;

	keeper->socket = listen_at(keeper->place, report);
	keeper->box_fd = open(keeper->place->box, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (keeper->socket < 0 || keeper->box_fd < 0)
		return report_fail(report, "container: cannot open %s: %m", keeper->place->box);
	if (enter_namespaces(keeper, report) < 0)
		return -1;
	root_fd = root_stage(keeper->place, image->tree, report);
	if (root_fd < 0 || config_read(root_fd, &keeper->config, report) < 0)
		return -1;
	if (root_set_home(keeper->request, &keeper->config, report) < 0)
		return -1;
	if (saver_start(&keeper->saver, keeper->request->save, root_fd, report) < 0)
		return -1;
	if (root_enter(root_fd, keeper->request, &keeper->config, keeper->place, report) < 0)
		return -1;
	(void)close(root_fd);
	return keeper->request->entrypoint == 1 ? entrypoint_run(keeper->request, &keeper->config, report) : 0;
}

static void keep(const struct request *request, const struct place *place, const struct image *image, int alive, int told)
{
	static struct keeper keeper;
	struct report report = { "" };

	keeper = (struct keeper){ .request = request, .place = place, .alive = alive,
				   .expected = request->tasks != NULL ? atoi(request->tasks) : 1,
				   .saver = { .pid = -1, .order = -1, .answer = -1 } };
	(void)prctl(PR_SET_NAME, "container-keep");
	(void)setsid();
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGTERM, SIG_IGN);
	(void)signal(SIGINT, SIG_IGN);
	if (build(&keeper, image, &report) < 0) {
		(void)!write(told, report.text, strlen(report.text));
		_exit(1);
	}
	program_let_go();
	(void)!write(told, "", 1);
	(void)close(told);
	serve(&keeper);
	_exit(bye(&keeper));
}

int keeper_start(const struct request *request, const struct place *place, const struct image *image, int alive,
		 struct report *report)
{
	char said[sizeof(report->text)] = "";
	ssize_t length;
	int pipe_fds[2];
	pid_t child;

	if (pipe2(pipe_fds, O_CLOEXEC) < 0)
		return report_fail(report, "container: cannot make a pipe: %m");
	child = fork();
	if (child < 0)
		return report_fail(report, "container: cannot fork: %m");
	if (child == 0) {
		(void)close(pipe_fds[0]);
		keep(request, place, image, alive, pipe_fds[1]);
	}
	(void)close(pipe_fds[1]);
	length = read(pipe_fds[0], said, sizeof(said) - 1);
	(void)close(pipe_fds[0]);
	if (length == 1 && said[0] == '\0')
		return 0;
	return report_fail(report, "%s", length > 0 ? said : "container: the container's process has died");
}
