/* The why is in entrypoint.h. */
#define _GNU_SOURCE
#include "entrypoint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "environment.h"
#include "fake.h"

enum { WORDS_MAX = 256, FD = 3 };

static void run(const struct request *request, const struct config *config, int out_fd, int helper_fd)
{
	const char *words[WORDS_MAX + 2], *folder = config_get(config, 'W', 0);
	struct report report = { "" };
	char helper[64];
	int count = 0;

	while (count < WORDS_MAX - 1 && (words[count] = config_get(config, 'P', count)) != NULL)
		count++;
	/* The helper may not lie in the container, so it is handed over open. */
	(void)snprintf(helper, sizeof(helper), "/proc/self/fd/%d", helper_fd);
	words[count++] = helper;
	words[count++] = "environment";
	words[count] = NULL;
	if (request->entrypoint_log != 1) {
		int null_fd = open("/dev/null", O_RDWR);

		(void)dup2(null_fd, 1);
		(void)dup2(null_fd, 2);
	} else {
		(void)dup2(2, 1);
	}
	if (environment_merge(request, config, &variables_of_process) < 0 || dup2(out_fd, FD) < 0 || (folder != NULL && chdir(folder) < 0) ||
	    (geteuid() == 0 && fake_ownership(&report) < 0))
		_exit(126);
	(void)execvp(words[0], (char *const *)(uintptr_t)words);
	_exit(127);
}

static int take(int fd, struct config *config, struct report *report)
{
	FILE *file = fdopen(fd, "re");
	struct config made = { 0 };
	char *record = NULL;
	const char *folder = config_get(config, 'W', 0);
	size_t size = 0;
	int result = file != NULL ? 0 : -1, count = 0;

	while (result == 0 && getdelim(&record, &size, '\0', file) > 0 && ++count > 0)
		result = config_add(&made, 'E', record, report);
	free(record);
	if (file != NULL)
		(void)fclose(file);
	if (count == 0)
		return report_fail(report, "container: the image's entry point does not execute its command; try "
					   "--no-container-entrypoint");
	if (result == 0 && folder != NULL)
		result = config_add(&made, 'W', folder, report);
	*config = made;
	return result;
}

int entrypoint_run(const struct request *request, struct config *config, struct report *report)
{
	int pipe_fds[2], status, result;
	int helper_fd = open("/proc/self/exe", O_RDONLY);
	pid_t child;

	if (config_get(config, 'P', 0) == NULL)
		return 0;
	if (helper_fd < 0 || pipe2(pipe_fds, O_CLOEXEC) < 0)
		return report_fail(report, "container: cannot prepare the entry point: %m");
	if (helper_fd == FD) {
		helper_fd = dup(helper_fd);
	}
	child = fork();
	if (child < 0)
		return report_fail(report, "container: cannot fork: %m");
	if (child == 0)
		run(request, config, pipe_fds[1], helper_fd);
	(void)close(pipe_fds[1]);
	(void)close(helper_fd);
	result = take(pipe_fds[0], config, report);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return result;
}
