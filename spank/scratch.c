/* The why is in scratch.h. */
#define _GNU_SOURCE
#include "scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX "job-"

enum { DEPTH_MAX = 32 };

/* A removal under way: `top` is the folder, to which what lies too deep is moved under a number of its own. */
struct removal {
	int top;
	unsigned int moved;
	unsigned long gone;
	const char *path;
};

int scratch_path(char *path, uint32_t job, const struct plan_mount *entry, struct report *report)
{
	int length = job == 0 ? snprintf(path, PATH_MAX, "%s", entry->source)
			      : snprintf(path, PATH_MAX, "%s/" PREFIX "%u", entry->source, job);

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

static int close_folder(const struct plan_mount *entry, struct report *report)
{
	int fd = open(entry->source, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat status;
	int result = 0;

	if (fd < 0 && errno == ENOENT && entry->optional)
		return 1;
	if (fd < 0 || fstat(fd, &status) < 0)
		result = report_fail(report, "jail: cannot open the scratch folder %s (plan line %d): %m", entry->source, entry->line);
	else if (status.st_uid != geteuid())
		result = report_fail(report, "jail: the scratch folder %s belongs to user %u, not to root (plan line %d)",
				     entry->source, status.st_uid, entry->line);
	else if ((status.st_mode & 07777) != 0700 && fchmod(fd, 0700) < 0)
		result = report_fail(report, "jail: cannot close the scratch folder %s to others (plan line %d): %m", entry->source,
				     entry->line);
	if (fd >= 0 && close(fd) < 0)
		result = report_fail(report, "jail: cannot close %s (plan line %d): %m", entry->source, entry->line);
	return result;
}

int scratch_make(uint32_t job, const struct plan_mount *entry, struct report *report)
{
	mode_t mode = (mode_t)strtoul(entry->mode ? entry->mode : "1777", NULL, 8);
	char path[PATH_MAX];
	int result = close_folder(entry, report);

	if (result != 0)
		return result < 0 ? -1 : 0;
	if (scratch_path(path, job, entry, report) < 0)
		return -1;
	result = mkdir(path, 0700);
	if (result < 0 && errno == EEXIST) /* of a job of this number whose end nobody saw */
		result = scratch_remove(path, report) < 0 ? -1 : mkdir(path, 0700);
	if (result < 0 || chmod(path, mode) < 0)
		return report_fail(report, "jail: cannot make the scratch folder %s (plan line %d): %m", path, entry->line);
	return 0;
}

static int empty(struct removal *removal, int folder_fd, int depth, struct report *report);

/* Moves a folder that lies too deep up to the top, where the next round finds it. */
static int move_up(struct removal *removal, int parent_fd, const char *name, struct report *report)
{
	char to[32];
	int result;

	do {
		(void)snprintf(to, sizeof(to), ".deep-%u", removal->moved++); /* always fits */
		result = renameat(parent_fd, name, removal->top, to);
	} while (result < 0 && (errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR));
	if (result < 0)
		return report_fail(report, "jail: cannot move a deep folder of %s: %m", removal->path);
	removal->gone++;
	return 0;
}

static int remove_folder(struct removal *removal, int parent_fd, const char *name, int depth, struct report *report)
{
	int fd, result;

	if (unlinkat(parent_fd, name, AT_REMOVEDIR) == 0) {
		removal->gone++;
		return 0;
	}
	if (errno != ENOTEMPTY && errno != EEXIST)
		return report_fail(report, "jail: cannot remove %s in %s: %m", name, removal->path);
	if (depth == DEPTH_MAX)
		return move_up(removal, parent_fd, name, report);
	fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return report_fail(report, "jail: cannot open %s in %s: %m", name, removal->path);
	result = empty(removal, fd, depth + 1, report); /* closes it */
	if (result == 0 && unlinkat(parent_fd, name, AT_REMOVEDIR) < 0)
		return report_fail(report, "jail: cannot remove %s in %s: %m", name, removal->path);
	return result;
}

static int remove_entry(struct removal *removal, int parent_fd, const char *name, int depth, struct report *report)
{
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return 0;
	if (unlinkat(parent_fd, name, 0) == 0) {
		removal->gone++;
		return 0;
	}
	if (errno != EISDIR && errno != EPERM)
		return report_fail(report, "jail: cannot remove %s in %s: %m", name, removal->path);
	return remove_folder(removal, parent_fd, name, depth, report);
}

/* Removes everything in a folder; closes `folder_fd`. */
static int empty(struct removal *removal, int folder_fd, int depth, struct report *report)
{
	DIR *folder = fdopendir(folder_fd);
	struct dirent *entry;
	int result = 0;

	if (folder == NULL) {
		(void)close(folder_fd); /* nothing was written to it */
		return report_fail(report, "jail: cannot list a folder of %s: %m", removal->path);
	}
	for (errno = 0; result == 0 && (entry = readdir(folder)) != NULL; errno = 0)
		result = remove_entry(removal, dirfd(folder), entry->d_name, depth, report);
	if (result == 0 && errno != 0)
		result = report_fail(report, "jail: cannot list a folder of %s: %m", removal->path);
	(void)closedir(folder); /* nothing was written to it */
	return result;
}

int scratch_remove(const char *path, struct report *report)
{
	struct removal removal = { .path = path };

	while (rmdir(path) < 0) {
		unsigned long gone = removal.gone;
		int result, fd;

		if (errno == ENOENT)
			return 0;
		if (errno != ENOTEMPTY && errno != EEXIST)
			return report_fail(report, "jail: cannot remove the scratch folder %s: %m", path);
		removal.top = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		fd = removal.top < 0 ? -1 : dup(removal.top);
		if (fd < 0)
			return report_fail(report, "jail: cannot open the scratch folder %s: %m", path);
		result = empty(&removal, fd, 0, report);
		(void)close(removal.top); /* nothing was written to it */
		if (result < 0)
			return -1;
		if (gone == removal.gone && rmdir(path) < 0)
			return errno == ENOENT ? 0 : report_fail(report, "jail: cannot remove the scratch folder %s: %m", path);
	}
	return 0;
}
