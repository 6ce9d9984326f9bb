/* The why is in scratch.h; the removal of a tree is in remove.c. */
#define _GNU_SOURCE
#include "scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "monotonic.h"
#include "remove.h"

#define PREFIX "job-"
#define GONE ".gone-"

enum {
	END_MS = 5000,		   /* for what a job leaves, while Slurm waits */
	OTHERS_MS = 1000,	   /* for what earlier ones left */
	START_MS = 20000,	   /* when slurmd starts */
	BACKGROUND_MS = 15 * 60000, /* for a process that nobody waits for */
	LEAST_NICE = 19,
};

int scratch_own(char *path, const struct plan_mount *entry, struct report *report)
{
	char host[HOST_NAME_MAX + 1] = "";
	int length;

	if (entry->owner == NULL) {
		length = snprintf(path, PATH_MAX, "%s", entry->source);
	} else {
		if (gethostname(host, sizeof(host)) < 0 || host[0] == '\0' || strchr(host, '/') != NULL)
			return report_fail(report, "jail: this node has no host name by which its scratch folder could be distinguished from others' (plan line %d)",
					   entry->line);
		length = snprintf(path, PATH_MAX, "%s/%s.%s", entry->source, entry->owner, host);
	}
	if (length < 0 || length >= PATH_MAX)
		return report_fail(report, "jail: path %.200s is too long (plan line %d)", entry->source, entry->line);
	return 0;
}

int scratch_path(char *path, uint32_t job, const struct plan_mount *entry, struct report *report)
{
	char folder[PATH_MAX];
	int length;

	if (scratch_own(folder, entry, report) < 0)
		return -1;
	length = snprintf(path, PATH_MAX, "%s/" PREFIX "%u", folder, job);
	if (length < 0 || length >= PATH_MAX)
		return report_fail(report, "jail: path %.200s is too long (plan line %d)", entry->source, entry->line);
	return 0;
}

uint32_t scratch_job(const char *name)
{
	unsigned long job;
	char *end;

	if (strncmp(name, PREFIX, sizeof(PREFIX) - 1) != 0 || name[sizeof(PREFIX) - 1] < '1' || name[sizeof(PREFIX) - 1] > '9')
		return 0;
	job = strtoul(name + sizeof(PREFIX) - 1, &end, 10);
	return *end == '\0' && job <= UINT32_MAX ? (uint32_t)job : 0;
}

/* Opens a folder in which root makes and removes jobs' folders: -1 without a sentence where it is not there. `entry` may be NULL. */
static int open_own(const char *path, const struct plan_mount *entry, struct report *report)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat status;
	char line[32] = "";

	if (fd < 0 && errno == ENOENT)
		return -1;
	if (entry != NULL)
		(void)snprintf(line, sizeof(line), " (plan line %d)", entry->line); /* always fits */
	if (fd < 0 || fstat(fd, &status) < 0)
		report_fail(report, "jail: cannot open the scratch folder %s%s: %m", path, line);
	else if (status.st_uid != geteuid())
		report_fail(report, "jail: the scratch folder %s belongs to user %u, not to root%s", path, status.st_uid, line);
	else if ((status.st_mode & 07777) != 0700 && fchmod(fd, 0700) < 0)
		report_fail(report, "jail: cannot close the scratch folder %s to others%s: %m", path, line);
	else
		return fd;
	if (fd >= 0)
		(void)close(fd); /* nothing was written to it */
	return -1;
}

/* Opens the folder of this node's jobs and makes it where it is missing: -1 without a sentence where an optional line lacks its FOLDER. */
static int make_own(char *path, const struct plan_mount *entry, struct report *report)
{
	int folder_fd = open_own(entry->source, entry, report), fd;

	if (folder_fd < 0 && report->text[0] == '\0' && !entry->optional)
		report_fail(report, "jail: cannot open the scratch folder %s (plan line %d): %m", entry->source, entry->line);
	if (folder_fd < 0 || scratch_own(path, entry, report) < 0 || entry->owner == NULL)
		return folder_fd;
	if (mkdirat(folder_fd, path + strlen(entry->source) + 1, 0700) < 0 && errno != EEXIST)
		report_fail(report, "jail: cannot make the scratch folder %s (plan line %d): %m", path, entry->line);
	(void)close(folder_fd); /* nothing was written to it */
	if (report->text[0] != '\0')
		return -1;
	fd = open_own(path, entry, report);
	if (fd < 0)
		report_fail(report, "jail: the scratch folder %s no longer exists (plan line %d)", path, entry->line);
	return fd;
}

/* Gives what has a job's name another one, under which no job looks for it. Returns whether something had that name, -1 where that fails. */
static int set_aside(int own_fd, const char *name, char *aside, size_t size, struct report *report)
{
	struct timespec now = { 0 };
	struct stat status;
	int fd;

	if (fstatat(own_fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : report_fail(report, "jail: cannot look at the scratch folder %s: %m", name);
	if (!S_ISDIR(status.st_mode))
		return report_fail(report, "jail: %s is not a folder, so it belongs to no job: remove it", name);
	(void)clock_gettime(CLOCK_REALTIME, &now); /* without it the name is the less telling */
	(void)snprintf(aside, size, GONE "%s-%lld.%09ld", name, (long long)now.tv_sec, now.tv_nsec);
	if (renameat(own_fd, name, own_fd, aside) < 0)
		return errno == ENOENT ? 0 : report_fail(report, "jail: cannot set the scratch folder %s aside: %m", name);
	fd = openat(own_fd, aside, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0) { /* at once, not only when its turn comes: who holds it open makes nothing more in it */
		if (fchmod(fd, 0700) < 0)
			report_fail(report, "jail: cannot close the scratch folder %s to others: %m", name);
		(void)close(fd);
	}
	return report->text[0] == '\0' ? 1 : -1;
}

int scratch_make(uint32_t job, const struct plan_mount *entry, struct report *report)
{
	mode_t mode = (mode_t)strtoul(entry->mode ? entry->mode : "1777", NULL, 8);
	char own[PATH_MAX], name[32], aside[96];
	int own_fd = make_own(own, entry, report), fd = -1;

	if (own_fd < 0)
		return report->text[0] == '\0' ? 0 : -1;
	(void)snprintf(name, sizeof(name), PREFIX "%u", job); /* always fits */
	/* What has the name is of a job whose end nobody saw: it goes when this one ends. */
	if (set_aside(own_fd, name, aside, sizeof(aside), report) >= 0) {
		if (mkdirat(own_fd, name, 0700) == 0)
			fd = openat(own_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0 || fchmod(fd, mode) < 0)
			report_fail(report, "jail: cannot make the scratch folder %s/%s (plan line %d): %m", own, name, entry->line);
	}
	if (fd >= 0)
		(void)close(fd); /* nothing was written to it */
	(void)close(own_fd);	 /* likewise */
	return report->text[0] == '\0' ? 0 : -1;
}

/* Removes what was set aside in a folder, until that time. Returns whether all of it is gone. */
static bool clear_aside(const char *own, int64_t until)
{
	DIR *folder = opendir(own);
	bool is_whole = folder != NULL;
	struct dirent *entry;

	while (folder != NULL && (entry = readdir(folder)) != NULL) {
		struct report unsaid = { "" }; /* it is tried again with each job */
		char path[PATH_MAX];

		if (strncmp(entry->d_name, GONE, sizeof(GONE) - 1) != 0)
			continue;
		if (snprintf(path, sizeof(path), "%s/%s", own, entry->d_name) >= (int)sizeof(path) ||
		    remove_tree(path, until, &unsaid) != REMOVE_WHOLE)
			is_whole = false;
	}
	if (folder != NULL)
		(void)closedir(folder); /* nothing was written to it */
	return is_whole;
}

/* The process in the background: one for each folder, at the least priority. The lock is on a folder that only root can open. */
static void be_cleaner(const char *own)
{
	const struct timespec rest = { .tv_sec = 1 };
	int64_t until = monotonic_ms() + BACKGROUND_MS;
	int fd = open(own, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || prctl(PR_SET_NAME, "jail-cleaner") < 0 || setpriority(PRIO_PROCESS, 0, LEAST_NICE) < 0)
		_exit(0);
	while (!clear_aside(own, until) && monotonic_ms() < until)
		(void)nanosleep(&rest, NULL);
	_exit(0);
}

/* Forks twice, so that nobody has to wait for it. Where that fails, the next job's end tries again. */
static void clean_later(const char *own)
{
	pid_t child = fork();

	if (child > 0)
		while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
			continue;
	if (child != 0)
		return;
	if (setsid() < 0 || close_range(0, ~0U, 0) < 0 || fork() != 0)
		_exit(0);
	be_cleaner(own);
}

/* Removes a folder that was set aside, then others. What is left is harmless: it has no name that a job has. */
static void clear_soon(const char *own, const char *aside, int64_t wait)
{
	struct report unsaid = { "" };
	char path[PATH_MAX];

	if (aside[0] != '\0' && snprintf(path, sizeof(path), "%s/%s", own, aside) < (int)sizeof(path))
		(void)remove_tree(path, monotonic_ms() + END_MS, &unsaid); /* what is left of it is found among the others */
	if (!clear_aside(own, monotonic_ms() + wait))
		clean_later(own);
}

int scratch_end(const char *path, struct report *report)
{
	const char *name = strrchr(path, '/');
	char own[PATH_MAX], aside[96] = "";
	int own_fd, found;

	if (name == NULL || snprintf(own, sizeof(own), "%.*s", (int)(name - path), path) >= (int)sizeof(own))
		return report_fail(report, "jail: %.200s is not a scratch folder", path);
	own_fd = open_own(own, NULL, report);
	if (own_fd < 0)
		return report->text[0] == '\0' ? 0 : -1;
	found = set_aside(own_fd, name + 1, aside, sizeof(aside), report);
	(void)close(own_fd); /* nothing was written to it */
	if (found < 0)
		return -1;
	clear_soon(own, aside, OTHERS_MS);
	return 0;
}

int scratch_clear(const struct plan_mount *entry, struct report *report)
{
	char own[PATH_MAX];
	int fd;

	if (scratch_own(own, entry, report) < 0)
		return -1;
	fd = open_own(own, entry, report);
	if (fd < 0)
		return report->text[0] == '\0' ? 0 : -1;
	(void)close(fd); /* nothing was written to it */
	clear_soon(own, "", START_MS);
	return 0;
}

int scratch_remove(const char *path, struct report *report)
{
	enum remove_done done = remove_tree(path, monotonic_ms() + END_MS, report);

	if (done == REMOVE_LATE)
		return report_fail(report, "jail: %s was not removed within %d s: somebody may still write in it", path, END_MS / 1000);
	return done == REMOVE_WHOLE ? 0 : -1;
}
