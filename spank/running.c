/* The why is in running.h. */
#define _GNU_SOURCE
#include "running.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <slurm/slurm.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "monotonic.h"

/* Where the image has Slurm's commands; slurmd's PATH does not name it. */
static char bundled[] = "/opt/soperator/bin/squeue";

enum { ANSWER_MAX = 1024 * 1024, NAME_MAX_BYTES = 256 };

extern char **environ;

/* The name of this node: what slurmd was started with (-N), otherwise the machine's. The calling process is a child of slurmd. */
static void node_name(char *name, size_t size)
{
	char words[16384];
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? 0 : read(fd, words, sizeof(words) - 1);
	const char *end = words + (got > 0 ? got : 0);

	if (fd >= 0)
		(void)close(fd); /* nothing was written to it */
	words[end - words] = '\0';
	for (const char *word = words; word < end; word += strlen(word) + 1) {
		if (strncmp(word, "-N", 2) != 0)
			continue;
		(void)snprintf(name, size, "%s", word[2] != '\0' ? word + 2 : word + 2 < end ? word + 3 : "");
		return;
	}
	if (gethostname(name, size - 1) < 0)
		name[0] = '\0';
	name[size - 1] = '\0';
	name[strcspn(name, ".")] = '\0';
}

/* Starts squeue with its output to a pipe; the end to read, or -1. */
static int start(uint32_t id, pid_t *pid)
{
	char number[16];
	char *words[] = { access(bundled, X_OK) == 0 ? bundled : "squeue", "--local", "-h", "-a", "-t", "all", "-o", "%A %U %T %i %N", "-j", number, NULL };
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t none;
	int ends[2], error;

	(void)snprintf(number, sizeof(number), "%u", id); /* always fits */
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	(void)sigemptyset(&none); /* cannot fail */
	error = posix_spawn_file_actions_init(&files);
	if (error == 0 && (error = posix_spawnattr_init(&attributes)) == 0) {
		if ((error = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0)) == 0 &&
		    (error = posix_spawn_file_actions_adddup2(&files, ends[1], 1)) == 0 &&
		    (error = posix_spawnattr_setsigmask(&attributes, &none)) == 0 &&
		    (error = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK)) == 0)
			error = posix_spawnp(pid, words[0], &files, &attributes, words, environ);
		(void)posix_spawnattr_destroy(&attributes);
		(void)posix_spawn_file_actions_destroy(&files);
	}
	(void)close(ends[1]); /* nothing was written to it */
	if (error == 0)
		return ends[0];
	(void)close(ends[0]);
	errno = error;
	return -1;
}

/* Reads all until the end of the pipe. False where that has not come in time, or there is too much. */
static bool read_all(int fd, int seconds, char *text, size_t size)
{
	int64_t end = monotonic_ms() + (int64_t)seconds * 1000;
	size_t length = 0;

	while (length < size - 1) {
		struct pollfd ready = { .fd = fd, .events = POLLIN };
		int64_t left = end - monotonic_ms();
		ssize_t got;

		if (left <= 0)
			return false;
		if (poll(&ready, 1, (int)left) <= 0)
			continue;
		got = read(fd, text + length, size - 1 - length);
		if (got < 0 && errno != EINTR)
			return false;
		if (got == 0) {
			text[length] = '\0';
			return true;
		}
		length += got > 0 ? (size_t)got : 0;
	}
	return false;
}

/* squeue's answer, whole, which the caller frees; NULL with a sentence. */
static char *ask(uint32_t id, int seconds, struct report *report)
{
	char *text = malloc(ANSWER_MAX);
	pid_t pid = -1;
	int fd = text == NULL ? -1 : start(id, &pid), status = -1;
	bool is_whole;

	if (fd < 0) {
		report_fail(report, "jail: cannot query job %u with squeue: %m", id);
		free(text);
		return NULL;
	}
	is_whole = read_all(fd, seconds, text, ANSWER_MAX);
	(void)close(fd); /* nothing was written to it */
	if (!is_whole)
		(void)kill(pid, SIGKILL); /* it is ours, and not waited for yet */
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	if (is_whole && WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return text;
	if (is_whole)
		report_fail(report, "jail: squeue failed, so it is unknown whether job %u runs", id);
	else
		report_fail(report, "jail: squeue did not report within %d s whether job %u runs", seconds, id);
	free(text);
	return NULL;
}

static bool is_among(const char *nodes, const char *name)
{
	hostlist_t *list = slurm_hostlist_create(nodes);
	bool is_found = list != NULL && slurm_hostlist_find(list, name) >= 0;

	if (list != NULL)
		slurm_hostlist_destroy(list);
	return is_found;
}

/* The job of one line where it is the one wanted, or a component of it (LEADER+OFFSET), and is here. */
static uint32_t read_line(const char *line, const struct jobs_wish *wish, const char *node)
{
	unsigned int id, uid;
	char state[32], name[64], component[16];
	int nodes = 0;

	if (sscanf(line, "%u %u %31s %63s %n", &id, &uid, state, name, &nodes) != 4 || nodes == 0)
		return 0;
	(void)snprintf(component, sizeof(component), "%u+", wish->id); /* always fits */
	if (uid != wish->uid || (strcmp(state, "RUNNING") != 0 && strcmp(state, "SUSPENDED") != 0))
		return 0;
	if (id != wish->id && strncmp(name, component, strlen(component)) != 0)
		return 0;
	return is_among(line + nodes, node) ? id : 0;
}

uint32_t running_job(const struct jobs_wish *wish, struct report *report)
{
	char node[NAME_MAX_BYTES], *text, *rest, *line;
	uint32_t found = 0;

	node_name(node, sizeof(node));
	text = rest = ask(wish->id, wish->seconds, report);
	if (text == NULL)
		return 0;
	while (found != wish->id && (line = strsep(&rest, "\n")) != NULL) {
		uint32_t id = read_line(line, wish, node);

		if (id == wish->id || found == 0)
			found = id;
	}
	free(text);
	if (found == 0)
		report_fail(report, "jail: job %u of user %u does not run on node %s, so nothing is opened for it", wish->id, wish->uid, node);
	return found;
}
