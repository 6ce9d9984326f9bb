/* The why is in mounts.h; the private /dev is in dev.c. */
#define _GNU_SOURCE
#include "mounts.h"

#include <errno.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "dev.h"
#include "mount_points.h"
#include "scratch.h"
#include "target.h"

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
	if (entry->kind == PLAN_SCRATCH && scratch_make(plan->job, entry, report) < 0)
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

	target_path(target, under_fd);
	if (entry->kind == PLAN_TMPFS || entry->kind == PLAN_DEV)
		result = make_tmpfs(target, entry, mark, report);
	else
		result = make_bind(target, plan, entry, mark, report);
	if (result < 0 || !mark->made || entry->kind == PLAN_TMPFS)
		return result;
	fd = target_open(root_fd, entry, report); /* anew: now it is the mount, not what lies under it */
	if (fd < 0)
		return -1;
	if (entry->kind == PLAN_DEV)
		result = dev_fill(fd, plan, entry, report);
	else
		result = target_restrict(fd, entry, entry->kind != PLAN_BIND && entry->kind != PLAN_SCRATCH, report);
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
	if (mount_points_make(root_fd, plan, entry, report) < 0)
		return -1;
	fd = target_open(root_fd, entry, report);
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
