/* The why is in program.h. */
#define _GNU_SOURCE
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "userns.h"

struct sink {
	int fd;
	char text[4096];
	size_t used;
};

void program_let_go(void)
{
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; null_fd >= 0 && fd < 3; fd++)
		(void)dup2(null_fd, fd);
}

static void exec_words(const char *const *words)
{
	char path[PATH_MAX], *slash;
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 64);

	if (length > 0) {
		path[length] = '\0';
		slash = strrchr(path, '/');
		(void)snprintf(slash + 1, sizeof(path) - (size_t)(slash + 1 - path), "%s", words[0]);
		(void)execv(path, (char *const *)(uintptr_t)words);
	}
	(void)execvp(words[0], (char *const *)(uintptr_t)words);
}

/* In the child. What fails here is said on what is the parent's sink. */
static void become(const struct program *program, int out_fd, int err_fd)
{
	struct report report = { "" };
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (program->output_file != NULL)
		out_fd = open(program->output_file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (null_fd < 0 || dup2(err_fd, 2) < 0 || out_fd < 0 || dup2(null_fd, 0) < 0 || dup2(out_fd, 1) < 0)
		_exit(126);
	if (program->folder != NULL && chdir(program->folder) < 0)
		report_fail(&report, "cannot go to %s: %m", program->folder);
	if (program->folder != NULL && setenv("TMPDIR", program->folder, 1) < 0)
		report_fail(&report, "no memory");
	if (program->has_file_rights && geteuid() != 0 && userns_enter(0, geteuid(), getegid(), &report) == 0)
		(void)userns_keep_file_rights(&report);
	if (report.text[0] == '\0' && close_range(3, ~0U, 0) == 0) {
		(void)unsetenv("LD_PRELOAD");
		(void)unsetenv("LD_LIBRARY_PATH");
		(void)unsetenv("LD_AUDIT");
		exec_words(program->words);
		report_fail(&report, "cannot start %s: %m", program->words[0]);
	}
	(void)!write(2, report.text, strlen(report.text));
	_exit(126);
}

/* Keeps the end of what comes. */
static void keep(struct sink *sink, const char *text, size_t length)
{
	size_t room = sizeof(sink->text) - 1;

	if (length > room)
		text += length - room, length = room;
	if (sink->used + length > room) {
		size_t drop = sink->used + length - room;

		(void)memmove(sink->text, sink->text + drop, sink->used - drop);
		sink->used -= drop;
	}
	(void)memcpy(sink->text + sink->used, text, length);
	sink->used += length;
	sink->text[sink->used] = '\0';
}

static void listen_to(struct sink *out, struct sink *err)
{
	struct pollfd open_fds[2] = { { out->fd, POLLIN, 0 }, { err->fd, POLLIN, 0 } };
	struct sink *sinks[2] = { out, err };
	char text[1024];

	while (open_fds[0].fd >= 0 || open_fds[1].fd >= 0) {
		if (poll(open_fds, 2, -1) < 0 && errno != EINTR)
			return;
		for (int i = 0; i < 2; i++) {
			ssize_t length;

			if (open_fds[i].fd < 0 || open_fds[i].revents == 0)
				continue;
			length = read(open_fds[i].fd, text, sizeof(text));
			if (length > 0)
				keep(sinks[i], text, (size_t)length);
			else if (length == 0 || errno != EINTR)
				open_fds[i].fd = -1;
		}
	}
}

/* The last line of the text; of a line in logfmt, as skopeo and umoci write it, what stands behind msg=. */
static void last_words(char *text, char *words, size_t size)
{
	size_t length = strlen(text), used = 0;
	char *line, *message;

	while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == ' '))
		text[--length] = '\0';
	line = strrchr(text, '\n') != NULL ? strrchr(text, '\n') + 1 : text;
	message = strstr(line, "msg=\"");
	if (message != NULL) {
		line = message + 5;
		if (text[strlen(text) - 1] == '"')
			text[strlen(text) - 1] = '\0';
	}
	for (; *line != '\0' && used + 1 < size; line++)
		if (*line != '\\')
			words[used++] = *line;
	words[used] = '\0';
}

static int judge(struct program *program, int status, const struct sink *out, struct sink *err, const char *what,
		 struct report *report)
{
	last_words(err->text, program->complaint, sizeof(program->complaint));
	if (program->output != NULL) {
		size_t length = strcspn(out->text, "\n");

		(void)snprintf(program->output, program->output_size, "%.*s", (int)length, out->text);
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (WIFSIGNALED(status))
		return report_fail(report, "container: %s: %s was killed by signal %d", what, program->words[0],
				   WTERMSIG(status));
	return report_fail(report, "container: %s: %s", what, program->complaint);
}

int program_run(struct program *program, const char *what, struct report *report)
{
	struct sink out = { .fd = -1 }, err = { .fd = -1 };
	int out_pipe[2], err_pipe[2], status;
	pid_t child;

	if (pipe2(out_pipe, O_CLOEXEC) < 0 || pipe2(err_pipe, O_CLOEXEC) < 0)
		return report_fail(report, "container: %s: cannot make a pipe: %m", what);
	child = fork();
	if (child < 0)
		return report_fail(report, "container: %s: cannot fork: %m", what);
	if (child == 0)
		become(program, out_pipe[1], err_pipe[1]);
	(void)close(out_pipe[1]);
	(void)close(err_pipe[1]);
	out.fd = out_pipe[0], err.fd = err_pipe[0];
	listen_to(&out, &err);
	(void)close(out.fd);
	(void)close(err.fd);
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return report_fail(report, "container: %s: cannot wait for %s: %m", what, program->words[0]);
	return judge(program, status, &out, &err, what, report);
}
