/* The end of jobs on this node; what it promises is in jobs.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "jobs.h"
#include "record.h"
#include "scratch.h"

static int remove_scratch(int folder_fd, struct report *report)
{
	char text[PLAN_BYTES_MAX / 8], *rest = text, *path;
	int result = 0;

	record_get(folder_fd, "scratch", text, sizeof(text));
	while ((path = strsep(&rest, "\n")) != NULL)
		if (path[0] == '/' && scratch_end(path, report) < 0)
			result = -1;
	return result;
}

/* Removes a job that is locked, with its processes, and unlocks it. */
static int remove_job(int folder_fd, uint32_t id, int unkillable, struct report *report)
{
	static const char *const files[] = { "pid", "plan", "scratch", "uid" };
	struct jobs_job job;
	char path[64];
	int result = 0;

	record_path(path, id);
	if (record_read(folder_fd, id, &job) && holder_kill(&job.holder, unkillable, report) < 0)
		result = -1;
	if (result == 0 && remove_scratch(folder_fd, report) == 0) {
		for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
			if (unlinkat(folder_fd, files[i], 0) < 0 && errno != ENOENT)
				result = report_fail(report, "jail: cannot remove %s/%s: %m", path, files[i]);
		if (result == 0 && rmdir(path) < 0)
			result = report_fail(report, "jail: cannot remove %s: %m", path);
	} else {
		result = -1;
	}
	(void)close(folder_fd); /* and so unlocks it */
	return result;
}

int jobs_release(uint32_t id, int unkillable, struct report *report)
{
	int folder_fd = record_lock(id, false, report);

	if (folder_fd < 0)
		return report->text[0] == '\0' ? 0 : -1;
	return remove_job(folder_fd, id, unkillable, report);
}

/* Releases a job if it does not live. `context` is the count of those. */
static int sweep_job(uint32_t id, void *context, struct report *report)
{
	int folder_fd = record_lock(id, false, report);
	struct jobs_job job;

	if (folder_fd < 0)
		return report->text[0] == '\0' ? 0 : -1;
	if (record_read(folder_fd, id, &job)) {
		(void)close(folder_fd); /* and so unlocks it */
		return 0;
	}
	++*(int *)context;
	return remove_job(folder_fd, id, JOBS_UNKILLABLE, report);
}

struct leftover {
	const struct plan_mount *entry;
	int *count;
};

/* Removes a job's scratch folder of which no other trace is left: after a restart of the pod /run is empty, the folder is not. */
static int sweep_folder(uint32_t id, void *context, struct report *report)
{
	const struct leftover *leftover = context;
	int folder_fd = record_lock(id, true, report);
	char path[PATH_MAX];
	struct jobs_job job;

	if (folder_fd < 0)
		return -1;
	if (record_read(folder_fd, id, &job)) {
		(void)close(folder_fd); /* and so unlocks it */
		return 0;
	}
	++*leftover->count;
	if (scratch_path(path, id, leftover->entry, report) < 0 || scratch_end(path, report) < 0) {
		(void)close(folder_fd);
		return -1;
	}
	return remove_job(folder_fd, id, JOBS_UNKILLABLE, report);
}

/* The folders of this node's jobs, and only those: others' jobs live where we cannot see them. */
static int sweep_scratch(const struct plan_mount *entry, int *count, struct report *report)
{
	struct leftover leftover = { .entry = entry, .count = count };
	char own[PATH_MAX];

	if (scratch_own(own, entry, report) < 0 || record_each(own, scratch_job, sweep_folder, &leftover, report) < 0)
		return -1;
	return scratch_clear(entry, report);
}

int jobs_sweep(const struct plan *plan, struct report *report)
{
	int count = 0;

	if (record_each(JOBS_FOLDER, record_job, sweep_job, &count, report) < 0)
		return -1;
	for (int i = 0; plan != NULL && i < plan->count; i++)
		if (plan->mounts[i].kind == PLAN_SCRATCH && sweep_scratch(&plan->mounts[i], &count, report) < 0)
			return -1;
	return count;
}
