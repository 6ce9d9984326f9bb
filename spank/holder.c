/* The use of a holder; the why is in holder.h. */
#define _GNU_SOURCE
#include "holder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "caps.h"

static int open_pidfd(pid_t pid, struct report *report)
{
	long fd = syscall(SYS_pidfd_open, pid, 0); /* close-on-exec by definition */

	if (fd < 0)
		return report_fail(report, "jail: cannot open process %d: %m", pid);
	return (int)fd;
}

uint64_t holder_start_of(pid_t pid)
{
	char path[32], text[512];
	unsigned long long start;
	char *behind_name, state;
	ssize_t got = -1;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid); /* always fits */
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		got = read(fd, text, sizeof(text) - 1);
		(void)close(fd); /* nothing was written to it */
	}
	if (got <= 0)
		return 0;
	text[got] = '\0';
	behind_name = strrchr(text, ')');
	if (behind_name == NULL ||
	    sscanf(behind_name + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &state,
		   &start) != 2)
		return 0;
	return state == 'Z' || state == 'X' ? 0 : start;
}

bool holder_lives(const struct holder_id *id)
{
	return id->pid > 0 && id->start != 0 && holder_start_of(id->pid) == id->start;
}

void holder_close(struct holder *holder)
{
	int *fds[] = { &holder->pidfd, &holder->outer, &holder->opening, &holder->proc, &holder->home };

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		if (*fds[i] >= 0)
			(void)close(*fds[i]); /* nothing was written to it, so nothing can be lost */
		*fds[i] = -1;
	}
}

static int open_kept(const struct holder_id *id, int number, int flags)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", id->pid, number); /* always fits */
	return open(path, flags | O_CLOEXEC);
}

int holder_open(const struct holder_id *id, struct holder *holder, struct report *report)
{
	*holder = (struct holder)HOLDER_NONE;
	holder->id = *id;
	holder->pidfd = open_pidfd(id->pid, report);
	if (holder->pidfd >= 0 && !holder_lives(id)) /* asked after it was opened: so it is this one */
		report_fail(report, "jail: the holder (pid %d) has ended", id->pid);
	else if (holder->pidfd >= 0 && (holder->outer = open_kept(id, KEPT_OUTER, O_RDONLY)) < 0)
		report_fail(report, "jail: cannot open the outer mounts of the holder (pid %d): %m", id->pid);
	else if (holder->pidfd >= 0 && (holder->opening = open_kept(id, KEPT_OPENING, O_RDONLY)) < 0)
		report_fail(report, "jail: cannot open the opening mounts of the holder (pid %d): %m", id->pid);
	else if (holder->pidfd >= 0)
		holder->home = open_pidfd(getpid(), report);
	if (holder->home >= 0) {
		holder->proc = open_kept(id, KEPT_PROC, O_RDONLY | O_DIRECTORY); /* now: inside no link of the pod's /proc is followed */
		return 0;
	}
	holder_close(holder);
	return -1;
}

int holder_open_proc(const struct holder *holder)
{
	return holder->proc < 0 ? -1 : fcntl(holder->proc, F_DUPFD_CLOEXEC, 0);
}

/* A thread that shares its root and working folder with others cannot change its mount namespace. */
static int enter_mounts(const struct holder *holder, int fd, struct report *report)
{
	if (unshare(CLONE_FS) < 0 || setns(fd, CLONE_NEWNS) < 0)
		return report_fail(report, "jail: cannot join the mounts of the holder (pid %d): %m", holder->id.pid);
	return 0;
}

int holder_enter_outer(const struct holder *holder, struct report *report)
{
	return enter_mounts(holder, holder->outer, report);
}

int holder_enter_opening(const struct holder *holder, struct report *report)
{
	return enter_mounts(holder, holder->opening, report);
}

static void note_folder(struct holder_folder *folder)
{
	if (getcwd(folder->path, sizeof(folder->path)) == NULL)
		folder->path[0] = '\0';
}

int holder_go_back(const struct holder_folder *folder, struct report *report)
{
	if (folder->path[0] != '\0' && chdir(folder->path) < 0 && errno != EACCES && errno != ENOENT)
		return report_fail(report, "jail: cannot go back to %s: %m", folder->path);
	return 0;
}

int holder_leave_opening(const struct holder *holder, struct report *report)
{
	struct holder_folder folder;
	struct caps_saved caps;
	int result;

	note_folder(&folder);
	/* Slurm calls the hook with the effective user id of the user; the capabilities are then only permitted. */
	if (caps_raise(&caps, report) < 0)
		return -1;
	result = enter_mounts(holder, holder->outer, report);
	if (geteuid() != 0 && caps_restore(&caps, report) < 0)
		return -1;
	return result < 0 ? result : holder_go_back(&folder, report);
}

int holder_enter_inner(const struct holder *holder, struct report *report)
{
	return enter_mounts(holder, holder->pidfd, report);
}

int holder_aim_children(const struct holder *holder, struct report *report)
{
	if (setns(holder->pidfd, CLONE_NEWPID) < 0)
		return report_fail(report, "jail: cannot select the pid namespace of the holder (pid %d): %m", holder->id.pid);
	return 0;
}

int holder_aim_back(const struct holder *holder, struct report *report)
{
	if (setns(holder->home, CLONE_NEWPID) < 0)
		return report_fail(report, "jail: cannot return to the own pid namespace: %m");
	return 0;
}

int holder_join_mounts(const struct holder *holder, struct holder_folder *folder, struct report *report)
{
	note_folder(folder);
	if (setns(holder->pidfd, CLONE_NEWNS | CLONE_NEWIPC) < 0)
		return report_fail(report, "jail: cannot join the mounts of the holder (pid %d): %m", holder->id.pid);
	return 0;
}
