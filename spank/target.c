/* The why is in target.h. */
#define _GNU_SOURCE
#include "target.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

int target_open(int root_fd, const struct plan_mount *entry, struct report *report)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	long fd = syscall(SYS_openat2, root_fd, entry->target, &how, sizeof(how));

	if (fd >= 0)
		return (int)fd;
	if (errno == ELOOP)
		return report_fail(report, "jail: mount point %s leads through a symbolic link (plan line %d)", entry->target,
				   entry->line);
	if (errno == ENOENT || errno == ENOTDIR)
		return report_fail(report, "jail: mount point %s is missing in the jail (plan line %d)", entry->target,
				   entry->line);
	return report_fail(report, "jail: cannot open mount point %s (plan line %d): %m", entry->target, entry->line);
}

void target_path(char *path, int fd)
{
	/* 14 characters and an int always fit the 32 that the callers give. */
	(void)snprintf(path, 32, "/proc/self/fd/%d", fd);
}

int target_restrict(int target_fd, const struct plan_mount *entry, bool deep, struct report *report)
{
	struct mount_attr attr = { 0 };
	unsigned int flags = AT_EMPTY_PATH | (deep ? AT_RECURSIVE : 0);

	attr.attr_set = (entry->read_only ? MOUNT_ATTR_RDONLY : 0) | (entry->no_suid ? MOUNT_ATTR_NOSUID : 0) |
			(entry->no_dev ? MOUNT_ATTR_NODEV : 0) | (entry->no_exec ? MOUNT_ATTR_NOEXEC : 0);
	if (entry->kind == PLAN_PROC) /* the pod's, of which slurmstepd reads numbers; a user has another one (proc.h) */
		attr.attr_set |= MOUNT_ATTR_NOSYMFOLLOW | MOUNT_ATTR_RDONLY;
	if (attr.attr_set == 0)
		return 0;
	if (mount_setattr(target_fd, "", flags, &attr, sizeof(attr)) < 0)
		return report_fail(report, "jail: cannot set the options of %s (plan line %d): %m", entry->target, entry->line);
	return 0;
}
