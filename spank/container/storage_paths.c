/* The why is in storage_paths.h. */
#define _GNU_SOURCE
#include "storage_paths.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define STORAGE "/run/soperator/containers"

int storage_paths_join(char *to, const char *folder, const char *name, struct report *report)
{
	if (snprintf(to, STORAGE_PATHS_MAX + 128, "%s/%s", folder, name) >= STORAGE_PATHS_MAX + 128)
		return report_fail(report, "container: the path %s/%s is too long", folder, name);
	return 0;
}

static bool is_users(const char *path, unsigned int uid)
{
	struct stat status;

	return lstat(path, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == uid;
}

static const char *storage_of(const struct request *request, unsigned int uid)
{
	struct stat status;
	char own[sizeof(STORAGE) + 16];

	if (request->storage != NULL)
		return request->storage;
	(void)snprintf(own, sizeof(own), STORAGE "/%u", uid);
	if (is_users(own, uid))
		return STORAGE;
	/* Open to all, as workers of an earlier release have it. */
	return lstat(own, &status) < 0 && stat(STORAGE, &status) == 0 && S_ISDIR(status.st_mode) && (status.st_mode & S_ISVTX)
		       ? STORAGE
		       : NULL;
}

int storage_paths_give(unsigned int uid, unsigned int gid)
{
	int fd = open(STORAGE_PATHS_OF_POD, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), result = 0, error;
	struct stat status;
	char name[16];

	if (fd < 0)
		return errno == ENOENT ? 0 : -1;
	(void)snprintf(name, sizeof(name), "%u", uid);
	if (mkdirat(fd, name, 0700) < 0 && errno != EEXIST)
		result = -1;
	/* Root's own is one that was just made, or one whose owner could not be set then. */
	if (result == 0 && fstatat(fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode) && status.st_uid == 0)
		result = fchownat(fd, name, uid, gid, AT_SYMLINK_NOFOLLOW);
	error = errno;
	(void)close(fd);
	errno = error;
	return result;
}

int storage_paths_find(const struct request *request, unsigned int uid, const char *home, struct storage_paths *paths,
	       struct report *report)
{
	const char *storage = storage_of(request, uid), *cache = getenv("XDG_CACHE_HOME");
	bool is_global = request->scope != NULL && strcmp(request->scope, "global") == 0;
	char name[80] = "", step[40] = "";
	int lengths[3];

	paths->is_of_step = request_names_step(request, step, sizeof(step));
	if (request->name != NULL && !paths->is_of_step) {
		size_t length;

		(void)request_name_use(request, &length);
		(void)snprintf(name, sizeof(name), "%.*s", (int)length, request->name);
	}
	lengths[0] = cache != NULL && cache[0] == '/' ? snprintf(paths->cache, STORAGE_PATHS_MAX, "%s/soperator/containers", cache)
						      : snprintf(paths->cache, STORAGE_PATHS_MAX, "%s/.cache/soperator/containers", home);
	lengths[1] = storage != NULL ? snprintf(paths->node, STORAGE_PATHS_MAX, "%s/%u", storage, uid)
				     : snprintf(paths->node, STORAGE_PATHS_MAX, "/tmp/.containers-%u", uid);
	if (name[0] != '\0' && is_global)
		lengths[2] = snprintf(paths->box, STORAGE_PATHS_MAX, "%s/named/%s", paths->node, name);
	else
		lengths[2] = snprintf(paths->box, STORAGE_PATHS_MAX, "/tmp/.containers-%u/%s/%s%s", uid, request->job ? request->job : "0",
				      name[0] ? "" : "step-", name[0] ? name : step[0] ? step : request->step ? request->step : "0");
	for (int i = 0; i < 3; i++)
		if (lengths[i] >= STORAGE_PATHS_MAX)
			return report_fail(report, "container: a folder's path is too long");
	if (strlen(paths->box) > 90)
		return report_fail(report, "container: the path %s is too long for a socket", paths->box);
	return 0;
}

static int is_ours(const char *path, struct report *report)
{
	struct stat status;

	if (lstat(path, &status) < 0)
		return report_fail(report, "container: cannot look at %s: %m", path);
	if (!S_ISDIR(status.st_mode) || status.st_uid != geteuid() || (status.st_mode & 022) != 0)
		return report_fail(report, "container: %s is not a folder of yours that others cannot write to", path);
	return 0;
}

int storage_paths_make(const char *path, struct report *report)
{
	char part[STORAGE_PATHS_MAX + 128];

	if (snprintf(part, sizeof(part), "%s", path) >= (int)sizeof(part))
		return report_fail(report, "container: the path %s is too long", path);
	for (char *slash = strchr(part + 1, '/');; slash = strchr(slash + 1, '/')) {
		if (slash != NULL)
			*slash = '\0';
		if (mkdir(part, 0700) == 0 || strncmp(part, "/tmp/.containers-", 17) == 0) {
			if (is_ours(part, report) < 0)
				return -1;
		} else if (errno != EEXIST && access(part, X_OK) < 0) {
			return report_fail(report, "container: cannot make the folder %s: %m", part);
		}
		if (slash == NULL)
			return is_ours(part, report);
		*slash = '/';
	}
}

static int remove_below(int parent, const char *name)
{
	int fd, result = 0;
	DIR *folder;
	struct dirent *each;

	if (unlinkat(parent, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -1;
	(void)fchmodat(parent, name, 0700, 0);
	fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || (folder = fdopendir(fd)) == NULL) {
		if (fd >= 0)
			(void)close(fd);
		return -1;
	}
	while ((each = readdir(folder)) != NULL)
		if (strcmp(each->d_name, ".") != 0 && strcmp(each->d_name, "..") != 0 && remove_below(fd, each->d_name) < 0)
			result = -1;
	(void)closedir(folder);
	return unlinkat(parent, name, AT_REMOVEDIR) < 0 ? -1 : result;
}

int storage_paths_remove(const char *path, struct report *report)
{
	if (remove_below(AT_FDCWD, path) < 0)
		return report_fail(report, "container: cannot remove %s: %m", path);
	return 0;
}

int storage_paths_lock(const char *path, int operation, struct report *report)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0)
		return report_fail(report, "container: cannot open the lock %s: %m", path);
	while (flock(fd, operation) < 0) {
		if (errno == EINTR)
			continue;
		if (errno == ENOLCK || errno == EOPNOTSUPP || errno == ENOSYS)
			break;
		if (errno != EWOULDBLOCK)
			report_fail(report, "container: cannot lock %s: %m", path);
		(void)close(fd);
		return -1;
	}
	return fd;
}
