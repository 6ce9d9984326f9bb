/* The why is in mounts.h; the private /dev is in dev.c. */
#define _GNU_SOURCE
#include "mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "dev.h"
#include "points.h"
#include "scratch.h"

int mounts_open_target(int root_fd, const struct plan_mount *entry, struct report *report)
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

void mounts_fd_path(char *path, int fd)
{
	/* 14 characters and an int always fit the 32 that the callers give. */
	(void)snprintf(path, 32, "/proc/self/fd/%d", fd);
}

int mounts_restrict(int target_fd, const struct plan_mount *entry, bool deep, struct report *report)
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

/* Where the line's source is: the plan's own path, the job's folder below it, or the pod's /proc and /sys. */
static int bind_source(const struct plan *plan, const struct plan_mount *entry, char *path, struct report *report)
{
	const char *source = entry->kind == PLAN_PROC ? "/proc" : entry->kind == PLAN_SYS ? "/sys" : entry->source;

	if (entry->kind == PLAN_SCRATCH)
		return scratch_path(path, plan->job, entry, report);
	(void)strcpy(path, source); /* the plan's reader has seen that every path is shorter than PATH_MAX */
	return 0;
}

static int make_bind(const char *target, const struct plan *plan, const struct plan_mount *entry, struct mount_mark *mark,
		     struct report *report)
{
	unsigned long flags = MS_BIND | (entry->kind == PLAN_BIND || entry->kind == PLAN_SCRATCH ? 0 : MS_REC);
	char source[PATH_MAX];
	struct stat status;

	if (bind_source(plan, entry, source, report) < 0)
		return -1;
	if (entry->kind == PLAN_SCRATCH && plan->job != 0 && scratch_make(plan->job, entry, report) < 0)
		return -1;
	if (stat(source, &status) < 0) {
		if (errno == ENOENT && entry->optional)
			return 0;
		return report_fail(report, "jail: cannot find %s for %s (plan line %d): %m", source, entry->target,
				   entry->line);
	}
	if (mount(source, target, NULL, flags, NULL) < 0)
		return report_fail(report, "jail: cannot bind %s on %s (plan line %d): %m", source, entry->target,
				   entry->line);
	*mark = (struct mount_mark){ .made = true, .device = status.st_dev, .inode = status.st_ino };
	return 0;
}

static int make_tmpfs(const char *target, const struct plan_mount *entry, struct mount_mark *mark, struct report *report)
{
	unsigned long flags = (entry->read_only ? MS_RDONLY : 0) | (entry->no_suid ? MS_NOSUID : 0) |
			      (entry->no_dev ? MS_NODEV : 0) | (entry->no_exec ? MS_NOEXEC : 0);
	char options[96];
	const char *size = entry->kind == PLAN_TMPFS ? entry->size : NULL; /* that of a dev is for its /dev/shm */
	int length = snprintf(options, sizeof(options), "mode=%s%s%s", entry->mode ? entry->mode : "755",
			      size ? ",size=" : "", size ? size : "");

	if (length < 0 || (size_t)length >= sizeof(options))
		return report_fail(report, "jail: options of %s are too long (plan line %d)", entry->target, entry->line);
	if (mount("tmpfs", target, "tmpfs", flags, options) < 0)
		return report_fail(report, "jail: cannot mount tmpfs on %s (plan line %d): %m", entry->target, entry->line);
	mark->made = true;
	return 0;
}

static int make_on(int root_fd, int under_fd, const struct plan *plan, const struct plan_mount *entry,
		   struct mount_mark *mark, struct report *report)
{
	char target[32];
	int result, fd;

	mounts_fd_path(target, under_fd);
	if (entry->kind == PLAN_TMPFS || entry->kind == PLAN_DEV)
		result = make_tmpfs(target, entry, mark, report);
	else
		result = make_bind(target, plan, entry, mark, report);
	if (result < 0 || !mark->made || entry->kind == PLAN_TMPFS)
		return result;
	fd = mounts_open_target(root_fd, entry, report); /* anew: now it is the mount, not what lies under it */
	if (fd < 0)
		return -1;
	if (entry->kind == PLAN_DEV)
		result = dev_fill(fd, plan, entry, report);
	else
		result = mounts_restrict(fd, entry, entry->kind != PLAN_BIND && entry->kind != PLAN_SCRATCH, report);
	if (close(fd) < 0)
		return report_fail(report, "jail: cannot close %s (plan line %d): %m", entry->target, entry->line);
	return result;
}

int mounts_make(int root_fd, const struct plan *plan, const struct plan_mount *entry, struct mount_mark *mark,
		struct report *report)
{
	int fd, result;

	if (entry->kind == PLAN_GPUS)
		return 0; /* the private /dev leaves them out; a step that has some brings them along (gpus.h) */
	if (entry->kind == PLAN_PATH)
		return 0; /* a variable (paths.h) */
	if (points_make(root_fd, plan, entry, report) < 0)
		return -1;
	fd = mounts_open_target(root_fd, entry, report);
	if (fd < 0)
		return -1;
	result = make_on(root_fd, fd, plan, entry, mark, report);
	if (close(fd) < 0)
		return report_fail(report, "jail: cannot close %s (plan line %d): %m", entry->target, entry->line);
	return result;
}

static bool has_flags(const struct plan_mount *entry, unsigned long flags)
{
	return (!entry->read_only || (flags & ST_RDONLY)) && (!entry->no_suid || (flags & ST_NOSUID)) &&
	       (!entry->no_dev || (flags & ST_NODEV)) && (!entry->no_exec || (flags & ST_NOEXEC));
}

int mounts_verify(const struct plan_mount *entry, const struct mount_mark *mark, struct report *report)
{
	const char *kind = plan_kind_name(entry->kind);
	struct statvfs options;
	struct statfs type;
	struct stat status;
	bool is_right;

	if (!mark->made)
		return 0;
	if (stat(entry->target, &status) < 0 || statvfs(entry->target, &options) < 0 || statfs(entry->target, &type) < 0)
		return report_fail(report, "jail: cannot look at %s after mounting (plan line %d): %m", entry->target,
				   entry->line);
	if (entry->kind == PLAN_TMPFS || entry->kind == PLAN_DEV)
		is_right = type.f_type == TMPFS_MAGIC;
	else
		is_right = status.st_dev == mark->device && status.st_ino == mark->inode;
	if (!is_right)
		return report_fail(report, "jail: %s is not the %s that plan line %d asks for", entry->target, kind, entry->line);
	if (!has_flags(entry, options.f_flag))
		return report_fail(report, "jail: %s lacks an option that plan line %d asks for", entry->target, entry->line);
	return 0;
}
