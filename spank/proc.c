/* The why is in proc.h. */
#define _GNU_SOURCE
#include "proc.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

static const char *const read_only[] = { "bus", "fs", "irq", "sys", "sysrq-trigger" };

static const char *const hidden[] = { "acpi",	    "asound",	  "kcore",	"keys",	      "latency_stats", "mtrr",
				      "sched_debug", "scsi",	   "timer_list", "timer_stats", "interrupts" };

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static int make_detached(const struct plan_mount *entry, struct report *report)
{
	int context = fsopen("proc", FSOPEN_CLOEXEC);
	int fd = -1;

	if (context < 0)
		return report_fail(report, "jail: cannot open a new proc for %s (plan line %d): %m", entry->target, entry->line);
	if (fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0 ||
	    (fd = fsmount(context, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)) < 0)
		report_fail(report, "jail: cannot make a new proc for %s (plan line %d): %m", entry->target, entry->line);
	if (close(context) < 0)
		report_fail(report, "jail: cannot close the new proc (plan line %d): %m", entry->line);
	return fd;
}

static int lock_file(const struct plan_mount *entry, const char *path, struct report *report)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC };

	if (mount_setattr(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, &attr, sizeof(attr)) < 0)
		return report_fail(report, "jail: cannot make %s read-only (plan line %d): %m", path, entry->line);
	return 0;
}

static int hide(const struct plan_mount *point, const char *path, struct report *report)
{
	struct stat status;
	int result;

	if (lstat(path, &status) < 0)
		return errno == ENOENT ? 0 : report_fail(report, "jail: cannot look at %s: %m", path);
	if (S_ISDIR(status.st_mode))
		result = mount("tmpfs", path, "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=0,mode=555");
	else
		result = mount("/dev/null", path, NULL, MS_BIND, NULL);
	if (result < 0)
		return report_fail(report, "jail: cannot hide %s (plan line %d): %m", path, point->line);
	return 0;
}

static int make_read_only(const struct plan_mount *point, const char *path, struct report *report)
{
	if (mount(path, path, NULL, MS_BIND, NULL) < 0)
		return errno == ENOENT ? 0
				       : report_fail(report, "jail: cannot bind %s onto itself (plan line %d): %m", path,
						     point->line);
	return lock_file(point, path, report);
}

static int mask(const struct plan_mount *point, struct report *report)
{
	char path[300];

	for (size_t i = 0; i < COUNT(read_only) + COUNT(hidden); i++) {
		bool hides = i >= COUNT(read_only);
		const char *name = hides ? hidden[i - COUNT(read_only)] : read_only[i];
		int result;

		if (snprintf(path, sizeof(path), "%s/%s", point->target, name) >= (int)sizeof(path))
			return report_fail(report, "jail: path %s is too long (plan line %d)", point->target, point->line);
		result = hides ? hide(point, path, report) : make_read_only(point, path, report);
		if (result < 0)
			return -1;
	}
	return 0;
}

static int verify(const struct plan_mount *point, struct report *report)
{
	char path[300], self[32], pid[32];
	struct statfs status;
	ssize_t length;

	if (snprintf(path, sizeof(path), "%s/self", point->target) >= (int)sizeof(path) ||
	    snprintf(pid, sizeof(pid), "%d", getpid()) < 0)
		return report_fail(report, "jail: path %s is too long (plan line %d)", point->target, point->line);
	if (statfs(point->target, &status) < 0)
		return report_fail(report, "jail: cannot look at %s (plan line %d): %m", point->target, point->line);
	length = readlink(path, self, sizeof(self) - 1);
	if (status.f_type != PROC_SUPER_MAGIC || length < 0)
		return report_fail(report, "jail: %s is not the proc that plan line %d asks for", point->target, point->line);
	self[length] = '\0';
	if (strcmp(self, pid) != 0)
		return report_fail(report, "jail: %s shows another pid namespace (plan line %d)", point->target, point->line);
	return 0;
}

int proc_cover(const char *target, struct report *report)
{
	if (mount("tmpfs", target, "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=4k,nr_inodes=1,mode=555") < 0)
		return report_fail(report, "jail: cannot cover %s: %m", target);
	return 0;
}

int proc_renew(const struct plan *plan, struct report *report)
{
	const struct plan_mount *point = plan_find(plan, PLAN_PROC);
	int fd, result = 0;

	if (point == NULL)
		return 0;
	fd = make_detached(point, report);
	if (fd < 0)
		return -1;
	if (umount2(point->target, MNT_DETACH) < 0)
		result = report_fail(report, "jail: cannot unmount the pod's %s (plan line %d): %m", point->target, point->line);
	else if (move_mount(fd, "", AT_FDCWD, point->target, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		result = report_fail(report, "jail: cannot mount proc on %s (plan line %d): %m", point->target, point->line);
	if (close(fd) < 0)
		result = report_fail(report, "jail: cannot close the new proc (plan line %d): %m", point->line);
	if (result < 0 || verify(point, report) < 0)
		return -1;
	return point->unmasked ? 0 : mask(point, report);
}
