/*
 * The end of a holder; the contract is in holder.h.
 *
 * The first process of a pid namespace is gone when all the others are, and none can be added any more. Whether the kernel gets on with them is seen
 * from the pod's /proc: they become fewer, or they use the processor, which a process that has been killed does only to end. One that
 * waits for a storage that is gone does neither. A little use is no progress: such a wait may look again now and then.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "holder.h"
#include "monotonic.h"

enum { LOOK_MS = 1000, LOOKS_MIN = 4, USE_PERMILLE = 1 };

/* What is left of a pid namespace without its first process. */
struct left {
	int count;
	pid_t one;	     /* of them */
	unsigned long ticks; /* of processor time that they have used */
};

/* Whether a process is in a pid namespace, or in one that was made in it. One that we may not look into is not. */
static bool is_in(int folder_fd, const struct stat *namespace)
{
	int fd = openat(folder_fd, "ns/pid", O_RDONLY | O_CLOEXEC);
	struct stat status;
	bool is = false;

	while (fd >= 0 && fstat(fd, &status) == 0) {
		int parent;

		is = status.st_ino == namespace->st_ino && status.st_dev == namespace->st_dev;
		if (is)
			break;
		parent = ioctl(fd, NS_GET_PARENT); /* fails above the namespace of the caller */
		(void)close(fd); /* nothing was written to it */
		fd = parent;
	}
	if (fd >= 0)
		(void)close(fd);
	return is;
}

/* The processor time of a process. Source: proc_pid_stat(5), fields 14 and 15. */
static unsigned long ticks_of(int folder_fd)
{
	int fd = openat(folder_fd, "stat", O_RDONLY | O_CLOEXEC);
	unsigned long user, kernel;
	char text[512];
	ssize_t got = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	const char *behind_name;

	if (fd >= 0)
		(void)close(fd); /* nothing was written to it */
	text[got > 0 ? got : 0] = '\0';
	behind_name = strrchr(text, ')');
	if (behind_name == NULL ||
	    sscanf(behind_name + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &kernel) != 2)
		return 0;
	return user + kernel;
}

static struct left look(const struct stat *namespace, pid_t first)
{
	DIR *folder = opendir("/proc");
	struct left left = { 0 };
	struct dirent *entry;

	while (folder != NULL && (entry = readdir(folder)) != NULL) {
		pid_t pid = isdigit((unsigned char)entry->d_name[0]) ? (pid_t)strtol(entry->d_name, NULL, 10) : 0;
		int fd = pid == 0 || pid == first ? -1 : openat(dirfd(folder), entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (fd >= 0 && is_in(fd, namespace)) {
			left.count++;
			left.one = pid;
			left.ticks += ticks_of(fd);
		}
		if (fd >= 0)
			(void)close(fd); /* nothing was written to it */
	}
	if (folder != NULL)
		(void)closedir(folder); /* likewise */
	return left;
}

/* Waits for the end of a process. Returns whether it came; otherwise `left` is what it waits for. */
static bool wait_for_end(int pidfd, const struct holder_id *id, int seconds, struct left *left)
{
	const unsigned long use = 1 + (unsigned long)sysconf(_SC_CLK_TCK) * (unsigned long)seconds * USE_PERMILLE / 1000;
	const int64_t pause = seconds * 1000 / LOOKS_MIN < LOOK_MS ? seconds * 1000 / LOOKS_MIN : LOOK_MS;
	struct pollfd ended = { .fd = pidfd, .events = POLLIN };
	struct stat namespace = { 0 };
	struct left before = { .count = -1 };
	int64_t since = monotonic_ms();
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/pid", id->pid); /* always fits */
	if (stat(path, &namespace) < 0)
		namespace = (struct stat){ 0 }; /* no process is in that one */
	for (;;) {
		int got = poll(&ended, 1, (int)pause);

		if (got > 0)
			return true;
		if (got < 0 && errno != EINTR)
			return false;
		*left = look(&namespace, id->pid);
		if (left->count != before.count || left->ticks >= before.ticks + use) {
			before = *left;
			since = monotonic_ms();
		} else if (monotonic_ms() - since >= (int64_t)seconds * 1000) {
			return false;
		}
	}
}

int holder_kill(const struct holder_id *id, int seconds, struct report *report)
{
	int pidfd = (int)syscall(SYS_pidfd_open, id->pid, 0);
	struct left left = { 0 };
	bool has_ended = true;

	/* No process: it has ended already. Asked after it was opened, so that no other can be meant. */
	if (pidfd >= 0 && holder_lives(id)) {
		if (syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0) < 0 && errno != ESRCH)
			report_fail(report, "jail: cannot kill the holder (pid %d): %m", id->pid);
		has_ended = wait_for_end(pidfd, id, seconds, &left);
	}
	if (pidfd >= 0)
		(void)close(pidfd); /* nothing was written to it */
	if (!has_ended)
		return report_fail(report, "jail: processes of the job do not end: %d left, such as process %d, and nothing has moved for %d s",
				   left.count, left.one, seconds);
	return report->text[0] == '\0' ? 0 : -1;
}
