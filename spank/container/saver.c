/* The why is in saver.h. */
#define _GNU_SOURCE
#include "saver.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/mount.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "program.h"
#include "userns.h"

static int absolute(const char *path, char *whole, struct report *report)
{
	char here[PATH_MAX] = "";

	if (path[0] != '/' && getcwd(here, sizeof(here)) == NULL)
		return report_fail(report, "container: cannot tell where %s is: %m", path);
	if (snprintf(whole, PATH_MAX, "%s%s%s", here, path[0] == '/' ? "" : "/", path) >= PATH_MAX - 16)
		return report_fail(report, "container: the path %s is too long", path);
	return 0;
}

static int save(const char *whole, struct report *report)
{
	char partial[PATH_MAX + 16];
	const char *words[] = { "mksquashfs", ".", partial, "-comp", "zstd", "-Xcompression-level", "1", "-all-root",
				"-no-xattrs", "-noappend", "-no-progress", "-quiet", "-mem", "512M", NULL };
	struct program mksquashfs = { .words = words };
	char what[PATH_MAX + 64];

	(void)snprintf(partial, sizeof(partial), "%s.partial", whole);
	(void)snprintf(what, sizeof(what), "cannot save the container to %s", whole);
	if (userns_keep_file_rights(report) < 0)
		return -1;
	if (program_run(&mksquashfs, what, report) < 0 || rename(partial, whole) < 0) {
		report_fail(report, "container: %s: %m", what);
		(void)unlink(partial);
		return -1;
	}
	return 0;
}

static void wait_and_save(const char *whole, int tree_fd, int order, int answer)
{
	struct report report = { "" };
	char word;

	program_let_go();
	if (read(order, &word, 1) != 1)
		_exit(0);
	if (fchdir(tree_fd) < 0)
		report_fail(&report, "container: cannot go to the container to save it: %m");
	else
		(void)save(whole, &report);
	(void)!write(answer, report.text, report.text[0] != '\0' ? strlen(report.text) : 1);
	_exit(0);
}

int saver_start(struct saver *saver, const char *path, int root_fd, struct report *report)
{
	int order[2], answer[2], tree_fd;
	char whole[PATH_MAX];

	if (path == NULL)
		return 0;
	if (absolute(path, whole, report) < 0)
		return -1;
	tree_fd = (int)syscall(SYS_open_tree, root_fd, "", AT_EMPTY_PATH | 1 /* OPEN_TREE_CLONE */ | O_CLOEXEC);
	if (tree_fd < 0 || pipe2(order, O_CLOEXEC) < 0 || pipe2(answer, O_CLOEXEC) < 0)
		return report_fail(report, "container: cannot prepare --container-save: %m");
	saver->pid = fork();
	if (saver->pid < 0)
		return report_fail(report, "container: cannot fork: %m");
	if (saver->pid == 0) {
		(void)close(order[1]);
		wait_and_save(whole, tree_fd, order[0], answer[1]);
	}
	(void)close(order[0]);
	(void)close(answer[1]);
	(void)close(tree_fd);
	saver->order = order[1];
	saver->answer = answer[0];
	return 0;
}

void saver_order(const struct saver *saver)
{
	if (saver->pid >= 0)
		(void)!write(saver->order, "s", 1);
}

int saver_finish(struct saver *saver, struct report *report)
{
	char said[sizeof(report->text)] = "";
	ssize_t length;

	if (saver->pid < 0)
		return 0;
	length = read(saver->answer, said, sizeof(said) - 1);
	(void)waitpid(saver->pid, NULL, 0);
	if (length == 1 && said[0] == '\0')
		return 0;
	return report_fail(report, "%s", length > 0 ? said : "container: the process that saves the container has died");
}
