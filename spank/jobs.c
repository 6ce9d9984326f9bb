/* The why is in jobs.h. */
#define _GNU_SOURCE
#include "jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "record.h"
#include "scratch.h"

/* What is written before anything is made: so whoever finds it can take it away. */
static int write_wish(int folder_fd, const struct jobs_wish *wish, const struct plan *plan, struct report *report)
{
	char text[PLAN_BYTES_MAX / 8] = "", path[PATH_MAX];
	size_t length = 0;

	for (int i = 0; i < plan->count; i++) {
		if (plan->mounts[i].kind != PLAN_SCRATCH)
			continue;
		if (scratch_path(path, plan->job, &plan->mounts[i], report) < 0)
			return -1;
		length += (size_t)snprintf(text + length, sizeof(text) - length, "%s\n", path);
		if (length >= sizeof(text))
			return report_fail(report, "jail: the paths of the scratch folders are too long");
	}
	if (length > 0 && record_put(folder_fd, "scratch", text, report) < 0)
		return -1;
	(void)snprintf(text, sizeof(text), "%u\n", wish->uid); /* always fits */
	return record_put(folder_fd, "uid", text, report);
}

static int keep_plan(int folder_fd, const char *path, struct report *report)
{
	int from = open(path, O_RDONLY | O_CLOEXEC);
	int to = from < 0 ? -1 : openat(folder_fd, "plan", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	size_t left = PLAN_BYTES_MAX + 1;
	ssize_t got = -1;

	if (from < 0)
		return report_fail(report, "plan %s: cannot be read: %m", path);
	while (to >= 0 && left > 0 && (got = sendfile(to, from, NULL, left)) > 0)
		left -= (size_t)got;
	if (to < 0 || got < 0)
		report_fail(report, "jail: cannot keep the plan of a job: %m");
	(void)close(from); /* nothing was written to it */
	if (to >= 0 && close(to) < 0)
		report_fail(report, "jail: cannot keep the plan of a job: %m");
	return report->text[0] == '\0' ? 0 : -1;
}

int jobs_plan(uint32_t id, const char *name, struct plan *plan, struct report *report)
{
	char path[96];

	(void)snprintf(path, sizeof(path), JOBS_FOLDER "/%u/plan", id); /* always fits */
	return plan_read_as(path, name, plan, report);
}

static enum holder_made make(int folder_fd, const struct jobs_wish *wish, struct jobs_job *job, struct report *report)
{
	struct plan *plan = calloc(1, sizeof(*plan));
	enum holder_made result = HOLDER_FAILED;
	char text[64];

	if (plan == NULL)
		return report_fail(report, "jail: no memory for the plan: %m");
	if (keep_plan(folder_fd, wish->plan, report) == 0 && jobs_plan(wish->id, wish->plan, plan, report) == 0) {
		plan->job = wish->id;
		plan->spool = wish->spool;
		if (write_wish(folder_fd, wish, plan, report) == 0)
			result = holder_make(plan, wish->ipc, wish->seconds, &job->holder, report);
		plan_free(plan);
	}
	free(plan);
	if (result != HOLDER_READY)
		return result;
	(void)snprintf(text, sizeof(text), "%d %" PRIu64 "\n", job->holder.pid, job->holder.start); /* always fits */
	return record_put(folder_fd, "pid", text, report) < 0 ? HOLDER_FAILED : HOLDER_READY;
}

/* Leaves a record that is locked; takes the folder away where it is only ours. */
static void leave(int folder_fd, uint32_t id)
{
	char path[64];

	record_path(path, id);
	(void)rmdir(path); /* stays where something is in it */
	(void)close(folder_fd); /* and so unlocks it */
}

enum holder_made jobs_begin(const struct jobs_wish *wish, struct holder *holder, bool *made, struct report *report)
{
	int folder_fd = record_lock(wish->id, true, report);
	enum holder_made result = HOLDER_READY;
	struct jobs_wish other = *wish;
	struct jobs_job job;

	if (folder_fd < 0)
		return HOLDER_FAILED;
	*made = !record_read(folder_fd, wish->id, &job);
	if (*made && wish->ask != NULL && (other.id = wish->ask(wish, report)) != wish->id) {
		leave(folder_fd, wish->id);
		return other.id == 0 ? HOLDER_FAILED : jobs_begin(&other, holder, made, report);
	}
	if (*made)
		result = make(folder_fd, wish, &job, report);
	else if (job.uid != wish->uid)
		result = report_fail(report, "jail: the namespaces of job %u belong to user %u, not %u", wish->id, job.uid, wish->uid);
	if (result == HOLDER_READY && holder_open(&job.holder, holder, report) < 0)
		result = HOLDER_FAILED;
	(void)close(folder_fd); /* and so unlocks it */
	return result;
}

int jobs_get(uint32_t id, struct jobs_job *job, struct report *report)
{
	char path[64];
	bool is_there;
	int fd;

	record_path(path, id);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : report_fail(report, "jail: cannot open %s: %m", path);
	is_there = record_read(fd, id, job);
	(void)close(fd); /* nothing was written to it */
	return is_there;
}

struct visitor {
	void (*visit)(const struct jobs_job *job, void *context);
	void *context;
};

static int visit_live(uint32_t id, void *context, struct report *report)
{
	const struct visitor *visitor = context;
	struct jobs_job job;
	int got = jobs_get(id, &job, report);

	if (got == 1)
		visitor->visit(&job, visitor->context);
	return got < 0 ? -1 : 0;
}

int jobs_each(void (*visit)(const struct jobs_job *job, void *context), void *context, struct report *report)
{
	struct visitor visitor = { .visit = visit, .context = context };

	return record_each(JOBS_FOLDER, record_job, visit_live, &visitor, report);
}

struct newest {
	uid_t uid;
	struct jobs_job *job;
	int count;
};

static void keep_newest(const struct jobs_job *job, void *context)
{
	struct newest *newest = context;

	if (job->uid != newest->uid || (newest->count > 0 && job->holder.start < newest->job->holder.start))
		return;
	*newest->job = *job;
	newest->count++;
}

int jobs_find(uid_t uid, struct jobs_job *job, struct report *report)
{
	struct newest newest = { .uid = uid, .job = job };

	return jobs_each(keep_newest, &newest, report) < 0 ? -1 : newest.count > 0;
}

int jobs_join(const struct jobs_job *job, struct report *report)
{
	struct holder_folder folder;
	struct holder holder;
	int result = -1;

	if (holder_open(&job->holder, &holder, report) < 0)
		return -1;
	if (holder_aim_children(&holder, report) == 0 && holder_join_mounts(&holder, &folder, report) == 0)
		result = holder_go_back(&folder, report);
	holder_close(&holder);
	return result;
}
