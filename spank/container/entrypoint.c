/* The why is in entrypoint.h. */
#define _GNU_SOURCE
#include "entrypoint.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "environment.h"
#include "fakeroot.h"
#include "printenv.h"

enum { WORDS_MAX = 256, TEXT_MAX = 4 << 20 };

static int prepare(const struct request *request, const struct config *config, int out_fd)
{
	const char *folder = config_get(config, 'W', 0);
	struct report report = { "" };

	if (environment_keep_for_entrypoint(request) < 0 || environment_merge(request, config, &variables_of_process) < 0)
		return -1;
	if (printenv_write(out_fd) < 0 || dup2(out_fd, PRINTENV_FD) < 0)
		return -1;
	if (folder != NULL && folder[0] != '\0' && chdir(folder) < 0)
		return -1;
	return geteuid() == 0 ? fakeroot_ownership(&report) : 0;
}

static void run(const struct request *request, const struct config *config, int out_fd, int command_fd)
{
	const char *words[WORDS_MAX + 2];
	char command[64];
	int count = 0;

	while (count < WORDS_MAX - 1 && (words[count] = config_get(config, 'P', count)) != NULL)
		count++;
	(void)snprintf(command, sizeof(command), "/proc/self/fd/%d", command_fd);
	words[count++] = command;
	words[count] = NULL;
	if (request->entrypoint_log != 1) {
		int null_fd = open("/dev/null", O_RDWR);

		(void)dup2(null_fd, 1);
		(void)dup2(null_fd, 2);
	} else {
		(void)dup2(2, 1);
	}
	if (prepare(request, config, out_fd) < 0)
		_exit(126);
	(void)execvp(words[0], (char *const *)(uintptr_t)words);
	_exit(127);
}

/*
 * All that is written until the child ends. Not until the end of the file: what the entry point left running may have it open.
 * -1 with a sentence.
 */
static int gather(int fd, pid_t child, struct config *text, int *status, struct report *report)
{
	bool is_gone = false;

	text->records = malloc(TEXT_MAX);
	if (text->records == NULL || fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		return report_fail(report, "container: no memory for the environment of the entry point");
	for (;;) {
		struct pollfd ready = { fd, POLLIN, 0 };
		int found = poll(&ready, 1, is_gone ? 0 : 10);
		ssize_t length = found > 0 ? read(fd, text->records + text->size, TEXT_MAX - text->size) : 0;

		if (length > 0) {
			text->size += (unsigned int)length;
			if (text->size == TEXT_MAX)
				return report_fail(report, "container: the environment of the entry point is longer than %d bytes", TEXT_MAX);
			continue;
		}
		if (is_gone)
			return 0;
		is_gone = waitpid(child, status, found > 0 ? 0 : WNOHANG) == child;
	}
}

/* Takes records until the empty one: 1, or 0 where the text ends before it, or -1 with a sentence. */
static int take_records(const struct config *text, unsigned int *at, struct config *config, struct report *report)
{
	while (*at < text->size) {
		const char *record = text->records + *at, *end = memchr(record, '\0', text->size - *at);

		if (end == NULL)
			return 0;
		*at += (unsigned int)(end - record) + 1;
		if (end == record)
			return 1;
		if (config_add(config, 'E', record, report) < 0)
			return -1;
	}
	return 0;
}

/* 1 with the new configuration, or 0 where the entry point did not execute its command, or -1 with a sentence. */
static int take(const struct config *text, struct config *config, struct report *report)
{
	struct config given = { 0 }, after = { 0 }, made = { 0 };
	const char *text_of_kind;
	unsigned int at = 0;
	int result = take_records(text, &at, &given, report);

	if (result > 0)
		result = take_records(text, &at, &after, report);
	if (result > 0 && environment_take_back(config, &given, &after, &made, report) < 0)
		result = -1;
	for (const char *kind = "WHh"; result > 0 && *kind != '\0'; kind++)
		if ((text_of_kind = config_get(config, *kind, 0)) != NULL && config_add(&made, *kind, text_of_kind, report) < 0)
			result = -1;
	free(given.records);
	free(after.records);
	if (result > 0) {
		free(config->records);
		*config = made;
	} else {
		free(made.records);
	}
	return result;
}

static int explain(const char *word, int status, struct report *report)
{
	if (WIFSIGNALED(status))
		return report_fail(report, "container: the image's entry point %.200s was killed by signal %d; try "
					   "--no-container-entrypoint", word, WTERMSIG(status));
	if (WEXITSTATUS(status) == 126 || WEXITSTATUS(status) == 127)
		return report_fail(report, "container: cannot run the image's entry point %.200s (code %d); try "
					   "--no-container-entrypoint", word, WEXITSTATUS(status));
	return report_fail(report, "container: the image's entry point %.200s ended with code %d and did not execute its command; "
				   "try --no-container-entrypoint", word, WEXITSTATUS(status));
}

int entrypoint_run(const struct request *request, struct config *config, struct report *report)
{
	const char *word = config_get(config, 'P', 0);
	int pipe_fds[2], status = 0, command_fd, result;
	struct config text = { 0 };
	char name[256];
	pid_t child;

	if (word == NULL)
		return 0;
	(void)snprintf(name, sizeof(name), "%s", word); /* the records change below */
	command_fd = printenv_open();
	if (command_fd == PRINTENV_FD)
		command_fd = dup(command_fd);
	if (command_fd < 0 || pipe2(pipe_fds, O_CLOEXEC) < 0)
		return report_fail(report, "container: cannot prepare the entry point: %m");
	child = fork();
	if (child < 0)
		return report_fail(report, "container: cannot fork: %m");
	if (child == 0)
		run(request, config, pipe_fds[1], command_fd);
	(void)close(pipe_fds[1]);
	(void)close(command_fd);
	result = gather(pipe_fds[0], child, &text, &status, report);
	(void)close(pipe_fds[0]);
	if (result == 0)
		result = take(&text, config, report);
	free(text.records);
	return result > 0 ? 0 : result < 0 ? -1 : explain(name, status, report);
}
