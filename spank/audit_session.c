/* The why is in audit_session.h. */
#define _GNU_SOURCE
#include "audit_session.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "monotonic.h"

/* The audit session of a process or thread, whose folder in /proc is open; 0 where there is none or it is gone. */
static unsigned int session_of(int folder_fd)
{
	int fd = openat(folder_fd, "sessionid", O_RDONLY | O_CLOEXEC);
	char text[16];
	ssize_t got = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	unsigned long session;

	if (fd >= 0)
		(void)close(fd); /* nothing was written to it */
	text[got > 0 ? got : 0] = '\0';
	session = strtoul(text, NULL, 10);
	return session == ~0U ? 0 : (unsigned int)session;
}

unsigned int audit_session_set(uid_t uid)
{
	int self = open("/proc/thread-self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int fd = self < 0 ? -1 : openat(self, "loginuid", O_WRONLY | O_CLOEXEC);
	unsigned int before = self < 0 ? 0 : session_of(self), mark = 0;
	char text[16];
	int length = snprintf(text, sizeof(text), "%u", uid);

	if (fd >= 0 && write(fd, text, (size_t)length) == length && session_of(self) != before)
		mark = session_of(self);
	if (fd >= 0)
		(void)close(fd); /* what it said was said by write */
	if (self >= 0)
		(void)close(self);
	return mark;
}

/* Whether a process has ended and only its parent has not heard of it. */
static bool is_zombie(int folder_fd)
{
	int fd = openat(folder_fd, "stat", O_RDONLY | O_CLOEXEC);
	char text[512], *behind_name;
	ssize_t got = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		(void)close(fd); /* nothing was written to it */
	text[got > 0 ? got : 0] = '\0';
	behind_name = strrchr(text, ')');
	return behind_name == NULL || strncmp(behind_name, ") Z", 3) == 0 || strncmp(behind_name, ") X", 3) == 0;
}

/* Kills what has the mark; returns how many there were. A folder of /proc is a process for ever, as a pidfd is. */
static int kill_once(unsigned int mark, DIR *proc)
{
	struct dirent *entry;
	int count = 0;

	rewinddir(proc);
	while ((entry = readdir(proc)) != NULL) {
		int fd;

		if (strspn(entry->d_name, "0123456789") != strlen(entry->d_name) || strcmp(entry->d_name, "1") == 0)
			continue;
		fd = openat(dirfd(proc), entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			continue;
		if (session_of(fd) == mark && !is_zombie(fd) && syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0) == 0)
			count++;
		(void)close(fd); /* nothing was written to it */
	}
	return count;
}

int audit_session_kill(unsigned int mark, const struct holder *holder, int seconds, struct report *report)
{
	const struct timespec pause = { .tv_nsec = 1000 * 1000 };
	const int64_t end = monotonic_ms() + (int64_t)seconds * 1000;
	int fd = mark == 0 ? -1 : holder_open_proc(holder);
	DIR *proc;
	int left;

	if (fd < 0)
		return 0;
	proc = fdopendir(fd);
	if (proc == NULL) {
		(void)close(fd); /* nothing was written to it */
		return report_fail(report, "jail: cannot list the processes of the job: %m");
	}
	while ((left = kill_once(mark, proc)) > 0 && monotonic_ms() < end)
		(void)nanosleep(&pause, NULL);
	(void)closedir(proc);
	if (left > 0)
		return report_fail(report, "jail: %d processes of the step did not end within %d s", left, seconds);
	return 0;
}
