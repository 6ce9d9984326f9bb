/* The why is in daemon.h. */
#define _GNU_SOURCE
#include "daemon.h"

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
#include "export.h"
#include "userns.h"

enum { GUESTS_MAX = 4096, PATIENCE_MS = 60000, WAITER_MS = 5000, WAITERS_MAX = 64 };

struct daemon {
	const struct request *request;
	const struct storage_paths *paths;
	struct config config;
	struct export export;
	int box_fd, socket, user_ns, mount_ns, unshared[UNSHARE_KINDS], alive;
	int guests, waiters, arrived, expected;
	bool is_closing;
	struct pollfd fds[1 + GUESTS_MAX];
	int waiting[WAITERS_MAX];
};

static int listen_at(const struct storage_paths *paths, struct report *report)
{
	struct sockaddr_un address;
	int fd;

	if (daemon_address(paths, report, &address) < 0)
		return -1;
	(void)unlink(address.sun_path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 1024) < 0)
		return report_fail(report, "container: cannot listen at %s: %m", address.sun_path);
	return fd;
}

static bool is_other_step(const struct daemon *daemon, const char *step)
{
	return step[0] != '\0' && daemon->request->step != NULL && strcmp(step, daemon->request->step) != 0;
}

static void send_namespaces(const struct daemon *daemon, int guest, const char *step)
{
	struct daemon_answer answer = { .size = daemon->config.size, .unshared = (uint8_t)request_unshared(daemon->request),
					.has_alive = daemon->request->name != NULL,
					.is_other_step = is_other_step(daemon, step) };
	int fds[DAEMON_FDS] = { daemon->user_ns, daemon->mount_ns }, count = 2;
	size_t size;
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(fds))];
	} control = { 0 };
	struct iovec parts[2] = { { &answer, sizeof(answer) }, { daemon->config.records, daemon->config.size } };
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2, .msg_control = &control };

	for (int i = 0; i < UNSHARE_KINDS; i++)
		if (answer.unshared & 1U << i)
			fds[count++] = daemon->unshared[i];
	if (answer.has_alive)
		fds[count++] = daemon->alive;
	size = (size_t)count * sizeof(int);
	message.msg_controllen = CMSG_SPACE(size);

	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	ssize_t sent;

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(size);
	(void)memcpy(CMSG_DATA(header), fds, size);
	sent = sendmsg(guest, &message, MSG_NOSIGNAL);
	while (sent >= (ssize_t)sizeof(answer) && (size_t)sent < sizeof(answer) + daemon->config.size) {
		size_t done = (size_t)sent - sizeof(answer);
		ssize_t more = send(guest, daemon->config.records + done, daemon->config.size - done, MSG_NOSIGNAL);

		if (more <= 0)
			return;
		sent += more;
	}
}

/* A guest is counted before it is let in, so that it cannot come too late. */
static void let_in(struct daemon *daemon, int guest, pid_t pid, const char *step)
{
	static const struct daemon_answer refusal = { .size = DAEMON_OF_OTHER_JOB };
	int pidfd = pid > 0 && daemon->guests < GUESTS_MAX ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;

	/* Each job has its own process ids, and a process of another job has none here: it could not be watched. */
	if (pid == 0)
		(void)send(guest, &refusal, sizeof(refusal), MSG_NOSIGNAL);
	if (pidfd < 0)
		return;
	daemon->fds[1 + daemon->guests++] = (struct pollfd){ pidfd, POLLIN, 0 };
	daemon->arrived++;
	send_namespaces(daemon, guest, step);
}

/* A step that came into another step's container has nothing to wait for: it may run for hours. */
static bool may_wait(const struct daemon *daemon, const char *step)
{
	return !is_other_step(daemon, step) && daemon->waiters < WAITERS_MAX;
}

static void welcome(struct daemon *daemon)
{
	struct timeval patience = { .tv_sec = 5 };
	int guest = accept4(daemon->socket, NULL, NULL, SOCK_CLOEXEC);
	char words[DAEMON_WORDS + 1] = "";
	struct ucred who;
	socklen_t length = sizeof(who);

	if (guest < 0)
		return;
	(void)setsockopt(guest, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	(void)setsockopt(guest, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	(void)!read(guest, words, sizeof(words) - 1);
	if (words[0] == DAEMON_WAIT && may_wait(daemon, words + 1)) {
		daemon->waiting[daemon->waiters++] = guest;
		return;
	}
	if (words[0] == DAEMON_ASK && !daemon->is_closing)
		(void)send(guest, "!", 1, MSG_NOSIGNAL);
	/* The folder is shut to other users; the id is asked once more all the same. */
	if (words[0] == DAEMON_JOIN && !daemon->is_closing && getsockopt(guest, SOL_SOCKET, SO_PEERCRED, &who, &length) == 0 &&
	    who.uid == geteuid())
		let_in(daemon, guest, who.pid, words + 1);
	(void)close(guest);
}

static void forget_gone(struct daemon *daemon)
{
	for (int i = 1; i <= daemon->guests;) {
		if (daemon->fds[i].revents == 0) {
			i++;
			continue;
		}
		(void)close(daemon->fds[i].fd);
		daemon->fds[i] = daemon->fds[daemon->guests--];
	}
}

/* Until all that were announced have come, and all that came are gone. */
static void serve(struct daemon *daemon)
{
	daemon->fds[0] = (struct pollfd){ daemon->socket, POLLIN, 0 };
	while (daemon->arrived < daemon->expected || daemon->guests > 0) {
		int ready = poll(daemon->fds, (nfds_t)(1 + daemon->guests), daemon->guests > 0 ? -1 : PATIENCE_MS);

		if (ready == 0 || (ready < 0 && errno != EINTR))
			return;
		if (ready < 0)
			continue;
		forget_gone(daemon);
		if (daemon->fds[0].revents != 0)
			welcome(daemon);
	}
}

/* By its open folder: what its path is in the container is the user's to say. */
static void remove_box(struct daemon *daemon, struct report *report)
{
	static const char *const parts[] = { "upper", "work", "root", "fetch", "image", "step", "failed", "alive", "lock", "socket" };
	char self[STORAGE_PATHS_MAX + 8];

	if (fchdir(daemon->box_fd) < 0)
		return;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		(void)storage_paths_remove(parts[i], report);
	(void)snprintf(self, sizeof(self), "../%s", strrchr(daemon->paths->box, '/') + 1);
	(void)rmdir(self);
}

/* Nobody is let in any more, but who waits is taken down; until the export has answered, and then for so long. */
static void receive_waiters(struct daemon *daemon, int answer, int patience)
{
	struct pollfd fds[2] = { { daemon->socket, POLLIN, 0 }, { answer, POLLIN, 0 } };

	daemon->is_closing = true;
	while (poll(fds, 2, answer >= 0 ? -1 : patience) > 0 && fds[1].revents == 0)
		if (fds[0].revents != 0) {
			welcome(daemon);
			if (answer < 0)
				return;
		}
}

static int bye(struct daemon *daemon)
{
	struct report report = { "" };
	bool is_saved = daemon->export.pid >= 0;

	export_order(&daemon->export);
	receive_waiters(daemon, daemon->export.answer, 0);
	(void)export_finish(&daemon->export, &report);
	if (is_saved && daemon->waiters == 0)
		receive_waiters(daemon, -1, WAITER_MS);
	if (daemon->request->name == NULL)
		remove_box(daemon, &report);
	else
		(void)unlinkat(daemon->box_fd, "socket", 0);
	for (int i = 0; i < daemon->waiters; i++)
		(void)send(daemon->waiting[i], report.text, report.text[0] != '\0' ? strlen(report.text) : 1, MSG_NOSIGNAL);
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
static int enter_namespaces(struct daemon *daemon, struct report *report)
{
	unsigned int wanted = request_unshared(daemon->request);
	bool is_root = daemon->request->remap_root == 1;
	int flags = CLONE_NEWNS;

	for (int i = 0; i < UNSHARE_KINDS; i++)
		flags |= wanted & 1U << i ? request_namespace(i)->flag : 0;
	if (userns_enter(flags, is_root ? 0 : geteuid(), is_root ? 0 : getegid(), report) < 0)
		return -1;
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return report_fail(report, "container: cannot make the mounts private: %m");
	for (int i = 0; i < UNSHARE_KINDS; i++)
		if (wanted & 1U << i && (daemon->unshared[i] = open_own(request_namespace(i)->file, report)) < 0)
			return -1;
	if (wanted & UNSHARE_NET && raise_loopback(report) < 0)
		return -1;
	daemon->user_ns = open_own("/proc/self/ns/user", report);
	daemon->mount_ns = open_own("/proc/self/ns/mnt", report);
	return daemon->user_ns < 0 || daemon->mount_ns < 0 ? -1 : 0;
}

/* From here on in namespaces of its own. */
static int build(struct daemon *daemon, const struct image *image, struct report *report)
{
	int root_fd;

	daemon->socket = listen_at(daemon->paths, report);
	daemon->box_fd = open(daemon->paths->box, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (daemon->socket < 0 || daemon->box_fd < 0)
		return report_fail(report, "container: cannot open %s: %m", daemon->paths->box);
	if (enter_namespaces(daemon, report) < 0)
		return -1;
	root_fd = root_stage(daemon->paths, image->tree, report);
	if (root_fd < 0 || config_read(root_fd, &daemon->config, report) < 0)
		return -1;
	if (root_set_home(daemon->request, &daemon->config, report) < 0)
		return -1;
	if (export_start(&daemon->export, daemon->request->save, root_fd, report) < 0)
		return -1;
	if (root_enter(root_fd, daemon->request, &daemon->config, daemon->paths, report) < 0)
		return -1;
	(void)close(root_fd);
	return daemon->request->entrypoint == 1 ? entrypoint_run(daemon->request, &daemon->config, report) : 0;
}

static void keep(const struct request *request, const struct storage_paths *paths, const struct image *image, int alive, int told)
{
	static struct daemon daemon;
	struct report report = { "" };

	daemon = (struct daemon){ .request = request, .paths = paths, .alive = alive,
				   .expected = request->tasks != NULL ? atoi(request->tasks) : 1,
				   .export = { .pid = -1, .order = -1, .answer = -1 } };
	(void)prctl(PR_SET_NAME, "container-keep");
	(void)setsid();
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGTERM, SIG_IGN);
	(void)signal(SIGINT, SIG_IGN);
	if (build(&daemon, image, &report) < 0) {
		(void)!write(told, report.text, strlen(report.text));
		_exit(1);
	}
	program_let_go();
	(void)!write(told, "", 1);
	(void)close(told);
	serve(&daemon);
	_exit(bye(&daemon));
}

int daemon_start(const struct request *request, const struct storage_paths *paths, const struct image *image, int alive,
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
		keep(request, paths, image, alive, pipe_fds[1]);
	}
	(void)close(pipe_fds[1]);
	length = read(pipe_fds[0], said, sizeof(said) - 1);
	(void)close(pipe_fds[0]);
	if (length == 1 && said[0] == '\0')
		return 0;
	return report_fail(report, "%s", length > 0 ? said : "container: the container's process has died");
}
