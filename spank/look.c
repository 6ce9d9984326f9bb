/* The why is in look.h. */
#define _GNU_SOURCE
#include "look.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "monotonic.h"
#include "plan.h"
#include "mount_points.h"
#include "report.h"
#include "target.h"

enum { FULL_PERCENT = 95 };

static void tell(int channel, char what, const char *text)
{
	char message[1024];
	int length = snprintf(message, sizeof(message), "%c%s", what, text);

	if (length < 0 || send(channel, message, (size_t)length < sizeof(message) ? (size_t)length : sizeof(message) - 1, 0) < 0)
		_exit(1); /* nobody listens any more */
}

/* Some lines are no mounts, and one that is skipped where its source is missing may lack its mount point too. */
static bool is_watched(const struct plan_mount *entry)
{
	struct stat status;

	if (entry->kind == PLAN_GPUS || entry->kind == PLAN_PATH)
		return false;
	return !entry->optional || stat(entry->source, &status) == 0 || errno != ENOENT;
}

/* A source that this container lacks is another container's. */
static int look_at_source(const struct plan_mount *entry, struct report *report)
{
	struct statvfs status;

	if (entry->source[0] == '\0' || statvfs(entry->source, &status) == 0)
		return 0;
	if (errno == EACCES || (entry->kind != PLAN_ROOT && (errno == ENOENT || errno == ENOTDIR)))
		return 0;
	return report_fail(report, "jail: %s does not answer as it should (plan line %d): %m", entry->source, entry->line);
}

static int look_at_target(int root_fd, const struct plan *plan, const struct plan_mount *entry, struct report *report)
{
	struct report own = { "" };
	int fd;

	if (mount_points_holder(plan, entry) != &plan->mounts[0])
		return 0;
	fd = target_open(root_fd, entry, &own);
	if (fd < 0)
		return errno == EACCES ? 0 : report_fail(report, "%s", own.text);
	return close(fd) < 0 ? report_fail(report, "jail: cannot close %s: %m", entry->target) : 0;
}

/* As df reckons: of what ordinary users can have. */
static int percent(uint64_t all, uint64_t free, uint64_t available)
{
	uint64_t used = all - free;

	return used + available == 0 ? 0 : (int)((used * 100 + used + available - 1) / (used + available));
}

/* A file system without a number of files, such as btrfs, says 0. */
static void look_at_room(const char *root, const char *name, int channel)
{
	struct statvfs status;
	char text[200] = "";
	int bytes, files;

	if (statvfs(root, &status) < 0)
		return; /* the next question says why */
	bytes = percent(status.f_blocks, status.f_bfree, status.f_bavail);
	files = percent(status.f_files, status.f_ffree, status.f_favail);
	if (bytes >= FULL_PERCENT)
		(void)snprintf(text, sizeof(text), "jail: %s is %d %% full, %llu MiB are left", name, bytes,
			       (unsigned long long)status.f_bavail * status.f_frsize >> 20);
	else if (files >= FULL_PERCENT)
		(void)snprintf(text, sizeof(text), "jail: %s has %d %% of its maximum number of files, %llu more are possible",
			       name, files, (unsigned long long)status.f_favail);
	tell(channel, LOOK_ROOM, text);
}

static void tell_sizes(const char *root, int64_t took, int channel)
{
	struct statvfs status;
	char text[120];

	tell(channel, LOOK_ABOUT, root);
	if (statvfs(root, &status) < 0)
		return; /* the next look says why */
	(void)snprintf(text, sizeof(text), "%llu %llu %llu %llu %lld", (unsigned long long)status.f_blocks * status.f_frsize,
		       (unsigned long long)status.f_bavail * status.f_frsize, (unsigned long long)status.f_files,
		       (unsigned long long)status.f_favail, (long long)took);
	tell(channel, LOOK_SIZES, text);
}

/* The number of the mount that a path lies in, or 0. */
static unsigned long long mount_of(const char *path)
{
	struct statx status;

	if (statx(AT_FDCWD, path, AT_NO_AUTOMOUNT, STATX_MNT_ID, &status) < 0 || (status.stx_mask & STATX_MNT_ID) == 0)
		return 0;
	return status.stx_mnt_id;
}

/* Whether the options behind the dash of a line of mountinfo, which are the file system's own, begin with `ro`. Source: proc_pid_mountinfo(5). */
static bool is_file_system_read_only(const char *line)
{
	const char *rest = strstr(line, " - ");

	for (int field = 0; rest != NULL && field < 3; field++)
		rest = strchr(rest + 1, ' ');
	return rest != NULL && strncmp(rest, " ro", 3) == 0 && (rest[3] == ',' || rest[3] == '\n' || rest[3] == '\0');
}

/* Whether nobody can write to the root: by its file system, or by its mount where that is here to be written to. */
static bool is_read_only(const char *root, bool writable)
{
	FILE *mounts = fopen("/proc/self/mountinfo", "re");
	unsigned long long number = mount_of(root), found;
	struct statvfs status;
	char *line = NULL;
	bool is = false;
	size_t size = 0;

	while (mounts != NULL && number != 0 && getline(&line, &size, mounts) > 0)
		if (sscanf(line, "%llu", &found) == 1 && found == number)
			is = is_file_system_read_only(line);
	free(line);
	if (mounts != NULL)
		(void)fclose(mounts); /* nothing was written to it */
	return is || (writable && statvfs(root, &status) == 0 && (status.f_flag & ST_RDONLY) != 0);
}

static int look_at_all(const struct plan *plan, const struct look_wish *wish, int channel, struct report *report)
{
	const struct plan_mount *root = &plan->mounts[0];
	int root_fd;

	tell(channel, LOOK_ABOUT, root->source);
	look_at_room(root->source, wish->name, channel);
	tell(channel, LOOK_READ_ONLY, is_read_only(root->source, wish->is_writable) ? "1" : "0");
	root_fd = open(root->source, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0 && errno == EACCES)
		return 0; /* it answers, and lets in only root: enough to know */
	if (root_fd < 0)
		return report_fail(report, "jail: cannot open the root %s: %m", root->source);
	for (int i = 0; i < plan->count; i++) {
		tell(channel, LOOK_ABOUT, plan->mounts[i].source[0] != '\0' ? plan->mounts[i].source : plan->mounts[i].target);
		if (!is_watched(&plan->mounts[i]))
			continue;
		if (look_at_source(&plan->mounts[i], report) < 0)
			return -1;
		tell(channel, LOOK_ABOUT, plan->mounts[i].target);
		if (i > 0 && look_at_target(root_fd, plan, &plan->mounts[i], report) < 0)
			return -1;
	}
	return close(root_fd) < 0 ? report_fail(report, "jail: cannot close the root %s: %m", root->source) : 0;
}

void look_and_tell(const struct look_wish *wish, int channel)
{
	static struct plan plan;
	struct report report = { "" };
	int64_t began = monotonic_us();

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		_exit(1);
	tell(channel, LOOK_ABOUT, wish->plan);
	if (plan_read(wish->plan, &plan, &report) == 0 && look_at_all(&plan, wish, channel, &report) == 0)
		tell_sizes(plan.mounts[0].source, monotonic_us() - began, channel); /* what else it says is in the report */
	tell(channel, LOOK_RESULT, report.text);
	_exit(0);
}
