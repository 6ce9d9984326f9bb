/* The why is in jobs.h. */
#define _GNU_SOURCE
#include "jobs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "scratch.h"

enum { RELEASE_SECONDS = 5 };

static void folder_of(char *path, uint32_t id)
{
	(void)snprintf(path, 64, JOBS_FOLDER "/%u", id); /* always fits */
}

static int make_folder(const char *path, struct report *report)
{
	if (mkdir(path, 0700) == 0 || errno == EEXIST)
		return 0;
	return report_fail(report, "jail: cannot make %s: %m", path);
}

/* Whether the folder that is open is still the one with that name: who held the lock before may have removed it. */
static bool is_at(int fd, const char *path)
{
	struct stat opened, named;

	return fstat(fd, &opened) == 0 && lstat(path, &named) == 0 && opened.st_dev == named.st_dev &&
	       opened.st_ino == named.st_ino;
}

/* Opens a job's folder and locks it. Returns -1 with a sentence, or without one where it is not there and is not to be made. */
static int lock_job(uint32_t id, bool makes, struct report *report)
{
	char path[64];
	int fd = -1;

	folder_of(path, id);
	if (makes && (make_folder("/run/jail", report) < 0 || make_folder(JOBS_FOLDER, report) < 0))
		return -1;
	for (;;) {
		if (makes && make_folder(path, report) < 0)
			return -1;
		fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0 && errno == ENOENT) {
			if (!makes)
				return -1;
			continue;
		}
		if (fd < 0)
			return report_fail(report, "jail: cannot open %s: %m", path);
		while (flock(fd, LOCK_EX) < 0)
			if (errno != EINTR) {
				report_fail(report, "jail: cannot lock %s: %m", path);
				(void)close(fd);
				return -1;
			}
		if (is_at(fd, path))
			return fd;
		(void)close(fd);
	}
}

/* Reads a small file whole; an empty text where it is missing. */
static void read_file(int folder_fd, const char *name, char *text, size_t size)
{
	int fd = openat(folder_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	ssize_t got = fd < 0 ? 0 : read(fd, text, size - 1);

	text[got > 0 ? got : 0] = '\0';
	if (fd >= 0)
		(void)close(fd); /* nothing was written to it */
}

static int write_file(int folder_fd, const char *name, const char *text, struct report *report)
{
	int fd = openat(folder_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	size_t length = strlen(text);
	bool is_whole;

	if (fd < 0)
		return report_fail(report, "jail: cannot write %s of a job: %m", name);
	is_whole = write(fd, text, length) == (ssize_t)length;
	if (close(fd) < 0 || !is_whole)
		return report_fail(report, "jail: cannot write %s of a job: %m", name);
	return 0;
}

/* Returns whether the job in that folder is there, and lives. */
static bool read_job(int folder_fd, uint32_t id, struct jobs_job *job)
{
	char text[64];
	unsigned int uid;

	*job = (struct jobs_job){ .id = id };
	read_file(folder_fd, "uid", text, sizeof(text));
	if (sscanf(text, "%u", &uid) != 1)
		return false;
	job->uid = uid;
	read_file(folder_fd, "pid", text, sizeof(text));
	if (sscanf(text, "%d %" SCNu64, &job->holder.pid, &job->holder.start) != 2)
		return false;
	return holder_lives(&job->holder);
}

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
	if (length > 0 && write_file(folder_fd, "scratch", text, report) < 0)
		return -1;
	(void)snprintf(text, sizeof(text), "%u\n", wish->uid); /* always fits */
	return write_file(folder_fd, "uid", text, report);
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
		if (write_wish(folder_fd, wish, plan, report) == 0)
			result = holder_make(plan, wish->ipc, wish->seconds, &job->holder, report);
		plan_free(plan);
	}
	free(plan);
	if (result != HOLDER_READY)
		return result;
	(void)snprintf(text, sizeof(text), "%d %" PRIu64 "\n", job->holder.pid, job->holder.start); /* always fits */
	return write_file(folder_fd, "pid", text, report) < 0 ? HOLDER_FAILED : HOLDER_READY;
}

enum holder_made jobs_begin(const struct jobs_wish *wish, struct holder *holder, bool *made, struct report *report)
{
	int folder_fd = lock_job(wish->id, true, report);
	enum holder_made result = HOLDER_READY;
	struct jobs_job job;

	if (folder_fd < 0)
		return HOLDER_FAILED;
	*made = !read_job(folder_fd, wish->id, &job);
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

	folder_of(path, id);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : report_fail(report, "jail: cannot open %s: %m", path);
	is_there = read_job(fd, id, job);
	(void)close(fd); /* nothing was written to it */
	return is_there;
}

/* The job that a name in the folder of jobs stands for, or 0. */
static uint32_t id_of(const char *name)
{
	char *end;
	unsigned long id = strtoul(name, &end, 10);

	return name[0] >= '1' && name[0] <= '9' && *end == '\0' && id <= UINT32_MAX ? (uint32_t)id : 0;
}

/* Calls `visit` for each name in a folder that stands for a job; stops at the first -1. A folder that is missing is empty. */
static int each_name(const char *path, uint32_t (*id)(const char *name), int (*visit)(uint32_t id, void *context, struct report *),
		     void *context, struct report *report)
{
	DIR *folder = opendir(path);
	int result = 0;

	if (folder == NULL)
		return errno == ENOENT ? 0 : report_fail(report, "jail: cannot list %s: %m", path);
	errno = 0;
	for (struct dirent *entry; result == 0 && (entry = readdir(folder)) != NULL; errno = 0)
		if (id(entry->d_name) != 0)
			result = visit(id(entry->d_name), context, report);
	if (result == 0 && errno != 0)
		result = report_fail(report, "jail: cannot list %s: %m", path);
	(void)closedir(folder); /* nothing was written to it */
	return result;
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

	return each_name(JOBS_FOLDER, id_of, visit_live, &visitor, report);
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
	struct holder holder;
	int result = -1;

	if (holder_open(&job->holder, &holder, report) < 0)
		return -1;
	if (holder_aim_children(&holder, report) == 0)
		result = holder_join_mounts(&holder, report);
	holder_close(&holder);
	return result;
}

static int remove_scratch(int folder_fd, struct report *report)
{
	char text[PLAN_BYTES_MAX / 8], *rest = text, *path;
	int result = 0;

	read_file(folder_fd, "scratch", text, sizeof(text));
	while ((path = strsep(&rest, "\n")) != NULL)
		if (path[0] == '/' && scratch_remove(path, report) < 0)
			result = -1;
	return result;
}

/* Removes a job that is locked, with its processes, and unlocks it. */
static int remove_job(int folder_fd, uint32_t id, struct report *report)
{
	static const char *const files[] = { "pid", "plan", "scratch", "uid" };
	struct jobs_job job;
	char path[64];
	int result = 0;

	folder_of(path, id);
	if (read_job(folder_fd, id, &job) && holder_kill(&job.holder, RELEASE_SECONDS, report) < 0)
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

int jobs_release(uint32_t id, struct report *report)
{
	int folder_fd = lock_job(id, false, report);

	if (folder_fd < 0)
		return report->text[0] == '\0' ? 0 : -1;
	return remove_job(folder_fd, id, report);
}

/* Releases a job if it does not live. `context` is the count of those. */
static int sweep_job(uint32_t id, void *context, struct report *report)
{
	int folder_fd = lock_job(id, false, report);
	struct jobs_job job;

	if (folder_fd < 0)
		return report->text[0] == '\0' ? 0 : -1;
	if (read_job(folder_fd, id, &job)) {
		(void)close(folder_fd); /* and so unlocks it */
		return 0;
	}
	++*(int *)context;
	return remove_job(folder_fd, id, report);
}

struct leftover {
	const struct plan_mount *entry;
	int *count;
};

/* Removes a job's scratch folder of which no other trace is left: after a restart of the pod /run is empty, the folder is not. */
static int sweep_folder(uint32_t id, void *context, struct report *report)
{
	const struct leftover *leftover = context;
	int folder_fd = lock_job(id, true, report);
	char path[PATH_MAX];
	struct jobs_job job;

	if (folder_fd < 0)
		return -1;
	if (read_job(folder_fd, id, &job)) {
		(void)close(folder_fd); /* and so unlocks it */
		return 0;
	}
	++*leftover->count;
	if (scratch_path(path, id, leftover->entry, report) < 0 || scratch_remove(path, report) < 0) {
		(void)close(folder_fd);
		return -1;
	}
	return remove_job(folder_fd, id, report);
}

int jobs_sweep(const struct plan *plan, struct report *report)
{
	int count = 0;

	if (each_name(JOBS_FOLDER, id_of, sweep_job, &count, report) < 0)
		return -1;
	for (int i = 0; plan != NULL && i < plan->count; i++) {
		struct leftover leftover = { .entry = &plan->mounts[i], .count = &count };

		if (leftover.entry->kind == PLAN_SCRATCH &&
		    each_name(leftover.entry->source, scratch_job, sweep_folder, &leftover, report) < 0)
			return -1;
	}
	return count;
}
