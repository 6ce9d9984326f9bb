/* The why is in image_cache.h. */
#define _GNU_SOURCE
#include "image_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "program.h"

#define PARTIAL ".partial" /* what is being unpacked, or was when its job was killed */

void image_cache_forget_old(const char *folder, long seconds)
{
	DIR *open_folder = opendir(folder);
	time_t now = time(NULL);
	struct dirent *each;
	struct stat status;

	if (open_folder == NULL)
		return;
	while ((each = readdir(open_folder)) != NULL)
		if (fstatat(dirfd(open_folder), each->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode) &&
		    now - status.st_mtime > seconds)
			(void)unlinkat(dirfd(open_folder), each->d_name, 0);
	(void)closedir(open_folder);
}

static bool is_full(const char *folder)
{
	struct statvfs disk;

	return statvfs(folder, &disk) == 0 && disk.f_bavail < disk.f_blocks / 5;
}

/* The tree, without a lock that anybody holds, that was used longest ago. Its lock is taken. */
static int oldest_unused(const char *trees, char *path)
{
	DIR *folder = opendir(trees);
	struct report report = { "" };
	time_t oldest = 0;
	struct dirent *each;
	struct stat status;
	int lock = -1;

	while (folder != NULL && (each = readdir(folder)) != NULL) {
		char candidate[STORAGE_PATHS_MAX + 600];
		size_t length = strlen(each->d_name);
		int held;

		if (length < 6 || strcmp(each->d_name + length - 5, ".lock") != 0 ||
		    fstatat(dirfd(folder), each->d_name, &status, 0) < 0 || (lock >= 0 && status.st_mtime >= oldest))
			continue;
		(void)snprintf(candidate, sizeof(candidate), "%s/%.*s", trees, (int)length - 5, each->d_name);
		if (access(candidate, F_OK) < 0) {
			(void)strcat(candidate, PARTIAL);
			if (access(candidate, F_OK) < 0)
				continue;
			candidate[strlen(candidate) - strlen(PARTIAL)] = '\0';
		}
		(void)strcat(candidate, ".lock");
		held = storage_paths_lock(candidate, LOCK_EX | LOCK_NB, &report);
		if (held < 0)
			continue;
		if (lock >= 0)
			(void)close(lock);
		lock = held, oldest = status.st_mtime;
		(void)strcpy(path, candidate);
	}
	if (folder != NULL)
		(void)closedir(folder);
	return lock;
}

static void make_room(const char *trees)
{
	char path[STORAGE_PATHS_MAX + 600];
	struct report report = { "" };

	while (is_full(trees)) {
		int lock = oldest_unused(trees, path);

		if (lock < 0)
			return;
		path[strlen(path) - 5] = '\0';
		(void)storage_paths_remove(path, &report);
		(void)strcat(path, PARTIAL);
		(void)storage_paths_remove(path, &report);
		(void)close(lock);
	}
}

static int unpack(const struct image *image, const char *partial, struct report *report)
{
	const char *words[] = { "unsquashfs", "-quiet", "-no-progress", "-no-xattrs", "-no-exit-code", "-da", "64", "-fr", "64",
				"-dest", partial, "-excludes", image->file, "dev", NULL };
	struct program unsquashfs = { .words = words, .has_file_rights = true };
	char what[STORAGE_PATHS_MAX + 200];
	struct stat status;

	(void)snprintf(what, sizeof(what), "cannot unpack the image %s", image->file);
	if (program_run(&unsquashfs, what, report) < 0)
		return -1;
	if (stat(partial, &status) < 0 || unsquashfs.complaint[0] != '\0')
		return report_fail(report, "container: %s: %s", what, unsquashfs.complaint);
	(void)chmod(partial, 0755);
	return rename(partial, image->tree) == 0 ? 0 : report_fail(report, "container: cannot rename %s: %m", partial);
}

/* Not an upgrade of the lock, which is no single step: whoever comes first has unpacked when the next one looks. */
static int unpack_alone(const char *trees, const struct image *image, struct report *report)
{
	char partial[STORAGE_PATHS_MAX + 256];
	struct stat status;
	int result;

	if (flock(image->lock, LOCK_EX) < 0)
		return report_fail(report, "container: cannot lock %s: %m", image->tree);
	if (stat(image->tree, &status) == 0)
		return 0;
	(void)snprintf(partial, sizeof(partial), "%s" PARTIAL, image->tree);
	make_room(trees);
	result = storage_paths_remove(partial, report);
	if (result == 0)
		result = unpack(image, partial, report);
	if (result < 0)
		(void)storage_paths_remove(partial, &(struct report){ "" });
	return result;
}

int image_cache_get(const struct storage_paths *paths, struct image *image, struct report *report)
{
	char trees[STORAGE_PATHS_MAX + 128], path[STORAGE_PATHS_MAX + 256];
	struct stat status;

	if (storage_paths_make(paths->node, report) < 0 || storage_paths_join(trees, paths->node, "trees", report) < 0 ||
	    storage_paths_make(trees, report) < 0 || storage_paths_join(image->tree, trees, image->key, report) < 0)
		return -1;
	(void)snprintf(path, sizeof(path), "%s.lock", image->tree);
	image->lock = storage_paths_lock(path, LOCK_SH, report);
	if (image->lock < 0)
		return -1;
	(void)utimensat(AT_FDCWD, path, NULL, 0);
	/* Between two locks somebody may have made room, so it is looked at again under the last one. */
	while (stat(image->tree, &status) < 0) {
		if (unpack_alone(trees, image, report) < 0)
			return -1;
		if (flock(image->lock, LOCK_SH) < 0)
			return report_fail(report, "container: cannot lock %s: %m", path);
	}
	return 0;
}
