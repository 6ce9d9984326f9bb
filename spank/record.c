/* The why is in record.h. */
#define _GNU_SOURCE
#include "record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

void record_path(char *path, uint32_t id)
{
	(void)snprintf(path, 64, JOBS_FOLDER "/%u", id); /* always fits */
}

static int make_folder(const char *path, struct report *report)
{
	if (mkdir(path, 0700) == 0 || errno == EEXIST)
		return 0;
	return report_fail(report, "jail: cannot make %s: %m", path);
}

/* Whether the folder that is open is still the one with that name: who held the lock before may have removed it. */
static bool is_at(int fd, const char *path)
{
	struct stat opened, named;

	return fstat(fd, &opened) == 0 && lstat(path, &named) == 0 && opened.st_dev == named.st_dev &&
	       opened.st_ino == named.st_ino;
}

int record_lock(uint32_t id, bool makes, struct report *report)
{
	char path[64];
	int fd = -1;

	record_path(path, id);
	if (makes && (make_folder("/run/jail", report) < 0 || make_folder(JOBS_FOLDER, report) < 0))
		return -1;
	for (;;) {
		if (makes && make_folder(path, report) < 0)
			return -1;
		fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0 && errno == ENOENT) {
			if (!makes)
				return -1;
			continue;
		}
		if (fd < 0)
			return report_fail(report, "jail: cannot open %s: %m", path);
		while (flock(fd, LOCK_EX) < 0)
			if (errno != EINTR) {
				report_fail(report, "jail: cannot lock %s: %m", path);
				(void)close(fd);
				return -1;
			}
		if (is_at(fd, path))
			return fd;
		(void)close(fd);
	}
}

void record_get(int folder_fd, const char *name, char *text, size_t size)
{
	int fd = openat(folder_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	ssize_t got = fd < 0 ? 0 : read(fd, text, size - 1);

	text[got > 0 ? got : 0] = '\0';
	if (fd >= 0)
		(void)close(fd); /* nothing was written to it */
}

int record_put(int folder_fd, const char *name, const char *text, struct report *report)
{
	int fd = openat(folder_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	size_t length = strlen(text);
	bool is_whole;

	if (fd < 0)
		return report_fail(report, "jail: cannot write %s of a job: %m", name);
	is_whole = write(fd, text, length) == (ssize_t)length;
	if (close(fd) < 0 || !is_whole)
		return report_fail(report, "jail: cannot write %s of a job: %m", name);
	return 0;
}

bool record_read(int folder_fd, uint32_t id, struct jobs_job *job)
{
	char text[64];
	unsigned int uid;

	*job = (struct jobs_job){ .id = id };
	record_get(folder_fd, "uid", text, sizeof(text));
	if (sscanf(text, "%u", &uid) != 1)
		return false;
	job->uid = uid;
	record_get(folder_fd, "pid", text, sizeof(text));
	if (sscanf(text, "%d %" SCNu64, &job->holder.pid, &job->holder.start) != 2)
		return false;
	return holder_lives(&job->holder);
}

uint32_t record_job(const char *name)
{
	char *end;
	unsigned long id = strtoul(name, &end, 10);

	return name[0] >= '1' && name[0] <= '9' && *end == '\0' && id <= UINT32_MAX ? (uint32_t)id : 0;
}

int record_each(const char *path, uint32_t (*id)(const char *name), int (*visit)(uint32_t id, void *context, struct report *report),
		void *context, struct report *report)
{
	DIR *folder = opendir(path);
	int result = 0;

	if (folder == NULL)
		return errno == ENOENT ? 0 : report_fail(report, "jail: cannot list %s: %m", path);
	errno = 0;
	for (struct dirent *entry; result == 0 && (entry = readdir(folder)) != NULL; errno = 0)
		if (id(entry->d_name) != 0)
			result = visit(id(entry->d_name), context, report);
	if (result == 0 && errno != 0)
		result = report_fail(report, "jail: cannot list %s: %m", path);
	(void)closedir(folder); /* nothing was written to it */
	return result;
}
