/* The why is in mount_points.h. */
#define _GNU_SOURCE
#include "mount_points.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int mount_points_open(int root_fd, const char *path, int flags)
{
	struct open_how how = { .flags = (unsigned)(flags | O_CLOEXEC), .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };

	if (flags & O_CREAT)
		how.mode = 0644;
	return (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
}

/* Makes the last part of a path whose folder is there. A link that leads nowhere gives way. */
static int make_last(int root_fd, const char *folder, const char *name, bool is_folder)
{
	int parent = mount_points_open(root_fd, folder, O_PATH | O_DIRECTORY);
	int made, error;

	if (parent < 0)
		return -1;
	for (int attempt = 0; attempt < 2; attempt++) {
		made = is_folder ? mkdirat(parent, name, 0755) : mknodat(parent, name, S_IFREG | 0644, 0);
		if (made == 0 || errno != EEXIST || attempt == 1 || unlinkat(parent, name, 0) < 0)
			break;
	}
	error = errno;
	(void)close(parent);
	errno = error;
	return made;
}

int mount_points_make(int root_fd, const char *path, bool is_folder, struct report *report)
{
	char part[PATH_MAX];
	size_t length = strlen(path);
	int fd = mount_points_open(root_fd, path, O_PATH);

	if (fd >= 0)
		return fd;
	if (errno != ENOENT || length >= sizeof(part))
		return report_fail(report, "container: cannot open %s in the container: %m", path);
	for (size_t end = 1; end <= length; end++) {
		char *name;

		if ((path[end] != '/' && path[end] != '\0') || path[end - 1] == '/')
			continue;
		(void)memcpy(part, path, end);
		part[end] = '\0';
		fd = mount_points_open(root_fd, part, O_PATH);
		if (fd >= 0) {
			(void)close(fd);
			continue;
		}
		name = strrchr(part, '/');
		if (name != NULL)
			*name++ = '\0';
		if (make_last(root_fd, name != NULL && part[0] != '\0' ? part : "/", name != NULL ? name : part,
			      is_folder || path[end] == '/') < 0)
			return report_fail(report, "container: cannot make %s in the container: %m", path);
	}
	fd = mount_points_open(root_fd, path, O_PATH);
	return fd >= 0 ? fd : report_fail(report, "container: cannot open %s in the container: %m", path);
}
