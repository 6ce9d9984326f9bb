/* The why is in remove.h. */
#define _GNU_SOURCE
#include "remove.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "monotonic.h"

enum { DEPTH_MAX = 32 };

/* A removal under way: `top` is the folder, to which what lies too deep is moved under a number of its own. */
struct removal {
	int top;
	unsigned int moved;
	unsigned long gone;
	int64_t until;
	const char *path;
};

static enum remove_done empty(struct removal *removal, int folder_fd, int depth, struct report *report);

/* Moves a folder that lies too deep up to the top, where the next round finds it. */
static enum remove_done move_up(struct removal *removal, int parent_fd, const char *name, struct report *report)
{
	char to[32];
	int result;

	do {
		(void)snprintf(to, sizeof(to), ".deep-%u", removal->moved++); /* always fits */
		result = renameat(parent_fd, name, removal->top, to);
	} while (result < 0 && (errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR));
	if (result < 0 && errno != ENOENT)
		return report_fail(report, "jail: cannot move a deep folder of %s: %m", removal->path);
	removal->gone++;
	return REMOVE_WHOLE;
}

/* Takes a folder from its user. Where the file system refuses, what is made in it meanwhile only takes time. */
static void close_to_others(int fd)
{
	struct stat status;

	if (fstat(fd, &status) < 0 || (status.st_uid == geteuid() && (status.st_mode & 0777) == 0700))
		return;
	if (fchown(fd, geteuid(), getegid()) < 0 || fchmod(fd, 0700) < 0)
		return;
}

static enum remove_done remove_folder(struct removal *removal, int parent_fd, const char *name, int depth, struct report *report)
{
	enum remove_done done;
	int fd;

	if (unlinkat(parent_fd, name, AT_REMOVEDIR) == 0) {
		removal->gone++;
		return REMOVE_WHOLE;
	}
	if (errno == ENOENT)
		return REMOVE_WHOLE;
	if (errno != ENOTEMPTY && errno != EEXIST)
		return report_fail(report, "jail: cannot remove %s in %s: %m", name, removal->path);
	if (depth == DEPTH_MAX)
		return move_up(removal, parent_fd, name, report);
	fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? REMOVE_WHOLE : report_fail(report, "jail: cannot open %s in %s: %m", name, removal->path);
	done = empty(removal, fd, depth + 1, report); /* closes it */
	/* What is made in it meanwhile is for the next round. */
	if (done == REMOVE_WHOLE && unlinkat(parent_fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT && errno != ENOTEMPTY && errno != EEXIST)
		return report_fail(report, "jail: cannot remove %s in %s: %m", name, removal->path);
	return done;
}

static enum remove_done remove_entry(struct removal *removal, int parent_fd, const char *name, int depth, struct report *report)
{
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return REMOVE_WHOLE;
	if (monotonic_ms() >= removal->until)
		return REMOVE_LATE;
	if (unlinkat(parent_fd, name, 0) == 0) {
		removal->gone++;
		return REMOVE_WHOLE;
	}
	if (errno == ENOENT || errno == EBUSY) /* NFS keeps a file that another process has open */
		return REMOVE_WHOLE;
	if (errno != EISDIR && errno != EPERM)
		return report_fail(report, "jail: cannot remove %s in %s: %m", name, removal->path);
	return remove_folder(removal, parent_fd, name, depth, report);
}

/* Removes everything in a folder; closes `folder_fd`. */
static enum remove_done empty(struct removal *removal, int folder_fd, int depth, struct report *report)
{
	enum remove_done done = REMOVE_WHOLE;
	struct dirent *entry;
	DIR *folder;

	close_to_others(folder_fd);
	folder = fdopendir(folder_fd);
	if (folder == NULL) {
		(void)close(folder_fd); /* nothing was written to it */
		return report_fail(report, "jail: cannot list a folder of %s: %m", removal->path);
	}
	for (errno = 0; done == REMOVE_WHOLE && (entry = readdir(folder)) != NULL; errno = 0)
		done = remove_entry(removal, dirfd(folder), entry->d_name, depth, report);
	if (done == REMOVE_WHOLE && errno != 0 && errno != ENOENT)
		done = report_fail(report, "jail: cannot list a folder of %s: %m", removal->path);
	(void)closedir(folder); /* nothing was written to it */
	return done;
}

/* One round through the whole tree. */
static enum remove_done empty_top(struct removal *removal, struct report *report)
{
	enum remove_done done;
	int fd;

	removal->top = open(removal->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (removal->top < 0 && errno == ENOENT)
		return REMOVE_WHOLE;
	fd = removal->top < 0 ? -1 : fcntl(removal->top, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		done = report_fail(report, "jail: cannot open the scratch folder %s: %m", removal->path);
	else
		done = empty(removal, fd, 0, report); /* closes it */
	if (removal->top >= 0)
		(void)close(removal->top); /* nothing was written to it */
	return done;
}

enum remove_done remove_tree(const char *path, int64_t until, struct report *report)
{
	struct removal removal = { .path = path, .until = until };

	while (rmdir(path) < 0) {
		unsigned long gone = removal.gone;
		enum remove_done done;

		if (errno == ENOENT)
			return REMOVE_WHOLE;
		if (errno != ENOTEMPTY && errno != EEXIST)
			return report_fail(report, "jail: cannot remove the scratch folder %s: %m", path);
		done = empty_top(&removal, report);
		if (done != REMOVE_WHOLE)
			return done;
		if (gone == removal.gone && rmdir(path) < 0)
			return errno == ENOENT ? REMOVE_WHOLE : report_fail(report, "jail: cannot remove the scratch folder %s: %m", path);
	}
	return REMOVE_WHOLE;
}
