/* The why is in enter.h. */
#define _GNU_SOURCE
#include "enter.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mounts.h"
#include "namespaces.h"
#include "proc.h"
#include "target.h"

enum { OLD_MOUNTS_MAX = 4096 };

struct old_mounts {
	int count;
	char *paths[OLD_MOUNTS_MAX];
};

/* Undoes the \040 way in which mountinfo writes blanks, in place. */
static void unescape(char *text)
{
	char *to = text;

	for (const char *from = text; *from != '\0'; to++) {
		if (from[0] == '\\' && strspn(from + 1, "01234567") >= 3) {
			*to = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0'));
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
}

static void old_mounts_free(struct old_mounts *old)
{
	for (int i = 0; i < old->count; i++)
		free(old->paths[i]);
	old->count = 0;
}

/* Lists where the old root has mounts, without `/` itself and without what lies at or below the staged root. */
static int old_mounts_read(const char *staged, struct old_mounts *old, struct report *report)
{
	FILE *file = fopen("/proc/thread-self/mountinfo", "re");
	size_t length = strlen(staged), size = 0;
	char *line = NULL, *point = NULL;
	int result = 0;

	old->count = 0;
	if (file == NULL)
		return report_fail(report, "jail: cannot list the mounts: %m");
	while (result == 0 && getline(&line, &size, file) > 0) {
		if (sscanf(line, "%*s %*s %*s %*s %ms", &point) != 1)
			continue;
		unescape(point);
		bool is_staged = strncmp(point, staged, length) == 0 && (point[length] == '/' || point[length] == '\0');

		if (is_staged || strcmp(point, "/") == 0)
			free(point);
		else if (old->count == OLD_MOUNTS_MAX)
			result = report_fail(report, "jail: more than %d mounts in the old root", OLD_MOUNTS_MAX), free(point);
		else
			old->paths[old->count++] = point;
	}
	if (ferror(file))
		result = report_fail(report, "jail: cannot list the mounts: %m");
	free(line);
	if (fclose(file) != 0)
		result = report_fail(report, "jail: cannot close the list of mounts: %m");
	return result;
}

/*
 * Detaches the mounts of the old root, which is open at `old_fd` and below the new one. Later ones first. What cannot
 * be detached (already gone with its parent, or locked by a user namespace above) stays below the new root, where no
 * path leads.
 */
static int old_mounts_detach(int old_fd, const struct old_mounts *old, struct report *report)
{
	if (fchdir(old_fd) < 0)
		return report_fail(report, "jail: cannot reach the old root to detach its mounts: %m");
	for (int i = old->count - 1; i >= 0; i--) {
		if (umount2(old->paths[i] + 1, MNT_DETACH | UMOUNT_NOFOLLOW) < 0 && errno == EPERM)
			return report_fail(report, "jail: cannot detach %s of the old root: %m", old->paths[i]);
	}
	return 0;
}

static int move_over_root(const char *staged, struct report *report)
{
	static struct old_mounts old;
	int old_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int result = -1;

	if (old_fd < 0)
		return report_fail(report, "jail: cannot open the old root: %m");
	if (old_mounts_read(staged, &old, report) < 0)
		result = -1;
	else if (mount(".", "/", NULL, MS_MOVE, NULL) < 0)
		result = report_fail(report, "jail: cannot move the root %s onto /: %m", staged);
	else if (chroot(".") < 0)
		result = report_fail(report, "jail: cannot change the root to %s: %m", staged);
	else
		result = old_mounts_detach(old_fd, &old, report);
	old_mounts_free(&old);
	if (close(old_fd) < 0)
		return report_fail(report, "jail: cannot close the old root: %m");
	if (chdir("/") < 0)
		return report_fail(report, "jail: cannot go to the new root: %m");
	return result;
}

static int move_root(int root_fd, const char *staged, struct report *report)
{
	if (fchdir(root_fd) < 0)
		return report_fail(report, "jail: cannot go to the staged root %s: %m", staged);
	if (syscall(SYS_pivot_root, ".", ".") < 0) {
		if (errno == EPERM || errno == ENOSYS || errno == EINVAL)
			return move_over_root(staged, report);
		return report_fail(report, "jail: cannot pivot the root to %s: %m", staged);
	}
	if (umount2(".", MNT_DETACH) < 0)
		return report_fail(report, "jail: cannot detach the old root: %m");
	if (chdir("/") < 0)
		return report_fail(report, "jail: cannot go to the new root: %m");
	return 0;
}

/* Binds the jail onto itself: the staged root is then a mount of its own, which can be moved. Returns it open. */
static int stage_root(const struct plan_mount *root, struct mount_mark *mark, struct report *report)
{
	struct stat status;
	int fd;

	if (stat(root->source, &status) < 0)
		return report_fail(report, "jail: cannot find the root %s (plan line %d): %m", root->source, root->line);
	if (!S_ISDIR(status.st_mode))
		return report_fail(report, "jail: the root %s is not a folder (plan line %d)", root->source, root->line);
	if (mount(root->source, root->source, NULL, MS_BIND, NULL) < 0)
		return report_fail(report, "jail: cannot bind the root %s (plan line %d): %m", root->source, root->line);
	fd = open(root->source, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return report_fail(report, "jail: cannot open the root %s (plan line %d): %m", root->source, root->line);
	*mark = (struct mount_mark){ .made = true, .device = status.st_dev, .inode = status.st_ino };
	return fd;
}

/* Carries out every line that can be, also behind one that failed: slurmstepd needs its spool to end the step. */
static int make_all(int root_fd, const struct plan *plan, struct mount_mark *marks, volatile int *at,
		    struct report *report)
{
	int result = 0;

	for (int i = 1; i < plan->count; i++) {
		*at = plan->mounts[i].line;
		if (mounts_make(root_fd, plan, &plan->mounts[i], &marks[i], report) < 0)
			result = -1;
	}
	return result;
}

/* The root's options come last: a mount on a mount point needs no write, but it reads better in the order of the plan. */
static int stage_and_move(const struct plan *plan, struct mount_mark *marks, volatile int *at, struct report *report,
			  int *made)
{
	const struct plan_mount *root = &plan->mounts[0];
	int root_fd, result;

	*at = root->line;
	root_fd = stage_root(root, &marks[0], report);
	if (root_fd < 0)
		return -1;
	*made = make_all(root_fd, plan, marks, at, report);
	*at = root->line;
	result = target_restrict(root_fd, root, false, report);
	if (result == 0)
		result = move_root(root_fd, root->source, report);
	if (close(root_fd) < 0)
		return report_fail(report, "jail: cannot close the root %s: %m", root->source);
	return result;
}

static int own_mounts(struct report *report)
{
	if (namespaces_make(CLONE_NEWNS, report) < 0)
		return -1;
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return report_fail(report, "jail: cannot make the mounts private: %m");
	return 0;
}

int enter_nothing(struct report *report)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };

	if (own_mounts(report) < 0)
		return -1;
	if (mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &attr, sizeof(attr)) < 0)
		return report_fail(report, "jail: cannot make the pod read-only: %m");
	return proc_cover("/proc", report);
}

enum enter_result enter_jail(const struct plan *plan, volatile int *at, struct report *report)
{
	struct mount_mark marks[PLAN_LINES_MAX] = { 0 };
	int made = 0;

	if (own_mounts(report) < 0)
		return ENTER_FAILED;
	if (stage_and_move(plan, marks, at, report, &made) < 0)
		return ENTER_FAILED;
	for (int i = 0; i < plan->count; i++) {
		*at = plan->mounts[i].line;
		if (mounts_verify(&plan->mounts[i], &marks[i], report) < 0)
			made = -1;
	}
	return made < 0 ? ENTER_PARTIAL : ENTER_WHOLE;
}
