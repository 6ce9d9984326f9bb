/* The why is in start.h. */
#define _GNU_SOURCE
#include "start.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "image.h"
#include "join.h"
#include "daemon.h"

static int read_note(const struct storage_paths *paths, const char *name, char *text, size_t size)
{
	char path[STORAGE_PATHS_MAX + 128];
	struct report report = { "" };
	ssize_t length = -1;
	int fd;

	if (storage_paths_join(path, paths->box, name, &report) == 0 && (fd = open(path, O_RDONLY | O_CLOEXEC)) >= 0) {
		length = read(fd, text, size - 1);
		(void)close(fd);
	}
	text[length > 0 ? length : 0] = '\0';
	return length >= 0 ? 0 : -1;
}

static int write_note(const struct storage_paths *paths, const char *name, const char *text, struct report *report)
{
	char path[STORAGE_PATHS_MAX + 128];
	int fd;

	if (storage_paths_join(path, paths->box, name, report) < 0)
		return -1;
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, text, strlen(text)) < 0 || close(fd) < 0)
		return report_fail(report, "container: cannot write %s: %m", path);
	return 0;
}

static bool is_of_this_step(const struct request *request, const struct storage_paths *paths, const char *note)
{
	char step[64];

	return request->step != NULL && read_note(paths, note, step, sizeof(step)) == 0 && strcmp(step, request->step) == 0;
}

/* What the name's use and --container-save ask of a container that runs already. */
static int check_running(const struct request *request, const struct storage_paths *paths, struct report *report)
{
	size_t length = 0;
	enum name_use use = request->name != NULL ? request_name_use(request, &length) : NAME_AUTO;

	if (is_of_this_step(request, paths, "step"))
		return 0;
	if (use == NAME_CREATE || use == NAME_NO_EXEC)
		return report_fail(report, "container: the container %.*s runs in another step of this job", (int)length,
				   request->name);
	if (request->save != NULL)
		return report_fail(report, "container: the container %.*s runs in another step, which may still write to it; save it "
					   "when that has ended", (int)length, request->name);
	return 0;
}

/* The image of a container that is not there yet, or the one that it was made from. */
static int find_image(const struct request *request, const struct storage_paths *paths, void (*said)(const char *sentence),
		      struct image *image, struct report *report)
{
	char note[STORAGE_PATHS_MAX + 400], *newline;
	size_t length = 0;
	enum name_use use = request->name != NULL ? request_name_use(request, &length) : NAME_AUTO;
	bool exists = request->name != NULL && read_note(paths, "image", note, sizeof(note)) == 0 &&
		      (newline = strchr(note, '\n')) != NULL;

	if (use == NAME_EXEC)
		return report_fail(report, "container: the container %.*s does not run", (int)length, request->name);
	if (exists && use == NAME_CREATE)
		return report_fail(report, "container: there is a container %.*s already", (int)length, request->name);
	if (exists) {
		*image = (struct image){ .lock = -1 };
		*newline = '\0';
		(void)snprintf(image->key, sizeof(image->key), "%.159s", note);
		(void)snprintf(image->file, sizeof(image->file), "%s", newline + 1);
		return image_unpack(paths, image, report);
	}
	if (request->image == NULL)
		return report_fail(report, "container: there is no container %.*s here, and no --container-image to make it from",
				   (int)length, request->name);
	if (image_get(request->image, paths, request->step != NULL ? request->step : "", said, image, report) < 0)
		return -1;
	(void)snprintf(note, sizeof(note), "%s\n%s", image->key, image->file);
	return write_note(paths, "image", note, report);
}

static int no_step(const struct request *request, struct report *report)
{
	size_t length;

	(void)request_name_use(request, &length);
	return report_fail(report, "container: no container of the step %.*s runs here", (int)length, request->name);
}

static int start_alone(const struct request *request, const struct storage_paths *paths, void (*said)(const char *sentence),
		       struct report *report)
{
	char path[STORAGE_PATHS_MAX + 128];
	struct image image;
	int alive;

	if (join_is_running(paths))
		return check_running(request, paths, report);
	if (paths->is_of_step)
		return no_step(request, report);
	if (is_of_this_step(request, paths, "failed"))
		return -1;
	if (storage_paths_join(path, paths->box, "alive", report) < 0 || (alive = storage_paths_lock(path, LOCK_EX, report)) < 0)
		return -1;
	if (find_image(request, paths, said, &image, report) < 0)
		return -1;
	if (request->step != NULL && write_note(paths, "step", request->step, report) < 0)
		return -1;
	return daemon_start(request, paths, &image, alive, report);
}

int start_container(const struct request *request, const struct storage_paths *paths, void (*said)(const char *sentence),
		    struct report *report)
{
	char path[STORAGE_PATHS_MAX + 128];
	int lock, result;

	if (paths->is_of_step && access(paths->box, F_OK) < 0)
		return no_step(request, report);
	if (storage_paths_make(paths->box, report) < 0 || storage_paths_join(path, paths->box, "lock", report) < 0)
		return -1;
	lock = storage_paths_lock(path, LOCK_EX, report);
	if (lock < 0)
		return -1;
	result = start_alone(request, paths, said, report);
	if (result < 0 && request->step != NULL && !paths->is_of_step)
		(void)write_note(paths, "failed", request->step, &(struct report){ "" });
	(void)flock(lock, LOCK_UN); /* not by closing it: the daemon has it open too */
	(void)close(lock);
	return result;
}

int start_remove(const struct request *request, const struct storage_paths *paths, struct report *report)
{
	char path[STORAGE_PATHS_MAX + 128];
	int lock, alive, result;

	if (access(paths->box, F_OK) < 0)
		return report_fail(report, "container: there is no container %s here", request->name);
	if (storage_paths_join(path, paths->box, "lock", report) < 0 || (lock = storage_paths_lock(path, LOCK_EX, report)) < 0 ||
	    storage_paths_join(path, paths->box, "alive", report) < 0)
		return -1;
	alive = storage_paths_lock(path, LOCK_EX | LOCK_NB, report);
	if (alive < 0 && report->text[0] == '\0')
		report_fail(report, "container: the container %s runs; it can be removed when it has ended", request->name);
	result = alive < 0 ? -1 : storage_paths_remove(paths->box, report);
	if (alive >= 0)
		(void)close(alive);
	(void)close(lock);
	return result;
}
