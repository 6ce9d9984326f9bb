/* The why is in export.h. */
#define _GNU_SOURCE
#include "export.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "storage_paths.h"
#include "program.h"
#include "userns.h"

enum { PARTIAL_MAX = PATH_MAX + 128 };

static int absolute(const char *path, char *whole, struct report *report)
{
	char here[PATH_MAX] = "";

	if (path[0] != '/' && getcwd(here, sizeof(here)) == NULL)
		return report_fail(report, "container: cannot resolve the path %s: %m", path);
	if (snprintf(whole, PATH_MAX, "%s%s%s", here, path[0] == '/' ? "" : "/", path) >= PATH_MAX - 16)
		return report_fail(report, "container: the path %s is too long", path);
	return 0;
}

/* Of killed exports on this host, which hold no lock any more. Locks of other hosts are not to be trusted on every file system. */
static void forget_killed(const char *pattern)
{
	glob_t found = { 0 };
	struct report report = { "" };

	if (glob(pattern, GLOB_NOSORT, NULL, &found) != 0)
		return;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		int lock = storage_paths_lock(found.gl_pathv[i], LOCK_EX | LOCK_NB, &report);

		if (lock < 0)
			continue;
		(void)unlink(found.gl_pathv[i]);
		(void)close(lock);
	}
	globfree(&found);
}

/* `path` with what a pattern of glob() means something by escaped, and with a '*' behind it. */
static void write_pattern(const char *path, char *pattern)
{
	for (; *path != '\0'; path++) {
		if (strchr("*?[]\\", *path) != NULL)
			*pattern++ = '\\';
		*pattern++ = *path;
	}
	(void)strcpy(pattern, "*");
}

/* Makes the partial file and locks it; its descriptor, or -1 with a sentence. */
static int make_partial(const char *whole, char *partial, struct report *report)
{
	char host[65] = "", pattern[2 * PATH_MAX + 256];
	struct stat status;
	mode_t mask = umask(022);
	int fd, error = 0;

	(void)umask(mask);
	(void)gethostname(host, sizeof(host) - 1);
	if (snprintf(partial, PARTIAL_MAX, "%s.partial-%s-", whole, host) >= PARTIAL_MAX - 6)
		return report_fail(report, "container: the path %s is too long", whole);
	write_pattern(partial, pattern);
	forget_killed(pattern);
	(void)strcat(partial, "XXXXXX");
	if (stat(whole, &status) == 0 && S_ISDIR(status.st_mode))
		error = EISDIR;
	fd = error == 0 ? mkostemp(partial, O_CLOEXEC) : -1;
	if (error != 0)
		errno = error;
	if (fd < 0)
		return report_fail(report, "container: cannot save the container to %s: %m", whole);
	(void)flock(fd, LOCK_EX | LOCK_NB);
	(void)fchmod(fd, 0666 & ~mask);
	return fd;
}

static int save(const char *whole, const char *partial, struct report *report)
{
	const char *words[] = { "mksquashfs", ".", partial, "-comp", "zstd", "-Xcompression-level", "1", "-all-root",
				"-no-xattrs", "-noappend", "-no-progress", "-quiet", "-mem", "512M", NULL };
	struct program mksquashfs = { .words = words };
	char what[PATH_MAX + 64];
	struct stat status;

	(void)snprintf(what, sizeof(what), "cannot save the container to %s", whole);
	if (lstat(partial, &status) < 0)
		return report_fail(report, "container: %s: %m", what);
	if (userns_keep_file_rights(report) < 0 || program_run(&mksquashfs, what, report) < 0)
		return -1;
	return rename(partial, whole) == 0 ? 0 : report_fail(report, "container: %s: %m", what);
}

static void wait_and_save(const char *whole, const char *partial, int image_cache_fd, int order, int answer)
{
	struct report report = { "" };
	char word;

	program_let_go();
	if (read(order, &word, 1) != 1) {
		(void)unlink(partial);
		_exit(0);
	}
	if (fchdir(image_cache_fd) < 0)
		report_fail(&report, "container: cannot go to the container to save it: %m");
	else
		(void)save(whole, partial, &report);
	if (report.text[0] != '\0')
		(void)unlink(partial);
	(void)!write(answer, report.text, report.text[0] != '\0' ? strlen(report.text) : 1);
	_exit(0);
}

int export_start(struct export *export, const char *path, int root_fd, struct report *report)
{
	char whole[PATH_MAX], partial[PARTIAL_MAX];
	int order[2], answer[2], image_cache_fd, lock;

	if (path == NULL)
		return 0;
	if (absolute(path, whole, report) < 0 || (lock = make_partial(whole, partial, report)) < 0)
		return -1;
	image_cache_fd = (int)syscall(SYS_open_tree, root_fd, "", AT_EMPTY_PATH | 1 /* OPEN_TREE_CLONE */ | O_CLOEXEC);
	if (image_cache_fd < 0 || pipe2(order, O_CLOEXEC) < 0 || pipe2(answer, O_CLOEXEC) < 0 || (export->pid = fork()) < 0) {
		(void)unlink(partial);
		return report_fail(report, "container: cannot prepare --container-save: %m");
	}
	if (export->pid == 0) {
		(void)close(order[1]);
		wait_and_save(whole, partial, image_cache_fd, order[0], answer[1]);
	}
	(void)close(lock);
	(void)close(order[0]);
	(void)close(answer[1]);
	(void)close(image_cache_fd);
	export->order = order[1];
	export->answer = answer[0];
	return 0;
}

void export_order(const struct export *export)
{
	if (export->pid >= 0)
		(void)!write(export->order, "s", 1);
}

int export_finish(struct export *export, struct report *report)
{
	char said[sizeof(report->text)] = "";
	ssize_t length;

	if (export->pid < 0)
		return 0;
	length = read(export->answer, said, sizeof(said) - 1);
	(void)waitpid(export->pid, NULL, 0);
	if (length == 1 && said[0] == '\0')
		return 0;
	return report_fail(report, "%s", length > 0 ? said : "container: the process that saves the container has died");
}
