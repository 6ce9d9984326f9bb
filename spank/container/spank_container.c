/*
 * The SPANK plugin: srun, sbatch and salloc learn --container-…, and a task moves into its container before it becomes
 * the user's program.
 *
 * It happens in slurm_spank_task_init: there the process is the user already, in the jail, with bounded capabilities, and
 * Slurm looks for the program only afterwards, so in the container. The first task of a step on a node has the helper
 * `container` start the container, the others wait for it; each comes in by the keeper's socket (join.h). A failure is
 * one sentence on the step's stderr and the task's code 1: the job fails, the node is none the worse.
 *
 * slurmstepd waits after the last task until the container is saved and gone, for a step that has ended leaves nothing.
 *
 * Use in plugstack.conf, before spank_jail.so, which ends all processes of a step in the hook where this one waits:
 *   required spank_container.so [program=/opt/soperator/libexec/container] [storage=/PATH] [container_scope=job|global]
 *            [execute_entrypoint=0|1] [remap_root=0|1] [mount_home=0|1]
 */
#define _GNU_SOURCE
#pragma GCC visibility push(default) /* what Slurm looks up; all else stays hidden */
#include <slurm/spank.h>

SPANK_PLUGIN(container, 1);
#pragma GCC visibility pop

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "environment.h"
#include "join.h"
#include "settings.h"

enum { DONE = 0, FAILED = -1 }; /* slurmstepd looks only for negative codes */
enum { CLEAR_UP_S = 10, SAVE_S = 6 * 3600 };

static struct request request = REQUEST_EMPTY;
static struct settings settings = SETTINGS_DEFAULT;
static bool is_wanted;
static uint32_t tasks_left;
static spank_t here;

static int take_option(int value, const char *argument, int remote)
{
	struct report report = { "" };

	(void)remote;
	if (request_take(&request, request_option(value), argument, &report) == 0)
		return DONE;
	slurm_error("%s", report.text);
	return FAILED;
}

int slurm_spank_init(spank_t spank, int ac, char **av)
{
	spank_context_t context = spank_context();
	const struct request_option *option;
	const char *unknown;

	if (context != S_CTX_LOCAL && context != S_CTX_ALLOCATOR && context != S_CTX_REMOTE)
		return DONE;
	unknown = settings_read(&settings, ac, av);
	if (unknown != NULL) {
		slurm_error("container: unknown argument \"%s\" in plugstack.conf", unknown);
		return FAILED;
	}
	for (int i = 0; (option = request_option(i)) != NULL; i++) {
		struct spank_option made = {
			.name = (char *)(uintptr_t)option->name,
			.arginfo = (char *)(uintptr_t)option->argument,
			.usage = (char *)(uintptr_t)option->help,
			.has_arg = option->argument != NULL,
			.val = i,
			.cb = take_option,
		};

		if (spank_option_register(spank, &made) != ESPANK_SUCCESS) {
			slurm_error("container: Slurm does not take the option --%s", option->name);
			return FAILED;
		}
	}
	return DONE;
}

static const char *look(void *context, const char *name)
{
	static char value[65536];

	if (spank_context() != S_CTX_REMOTE)
		return getenv(name);
	return spank_getenv(context, name, value, sizeof(value)) == ESPANK_SUCCESS ? value : NULL;
}

/* What the request needs to know of the step. */
static int take_step(spank_t spank)
{
	uint32_t job = 0, step = 0;
	const bool is_known = spank_get_item(spank, S_JOB_ID, &job) == ESPANK_SUCCESS &&
			spank_get_item(spank, S_JOB_STEPID, &step) == ESPANK_SUCCESS &&
			spank_get_item(spank, S_JOB_LOCAL_TASK_COUNT, &tasks_left) == ESPANK_SUCCESS;

	if (!is_known || asprintf(&request.job, "%u", job) < 0 || asprintf(&request.step, "%u.%u", job, step) < 0 ||
	    asprintf(&request.tasks, "%u", tasks_left) < 0) {
		slurm_error("container: Slurm does not say which step this is");
		return FAILED;
	}
	return DONE;
}

int slurm_spank_init_post_opt(spank_t spank, int ac, char **av)
{
	struct report report = { "" };
	int wanted;

	(void)ac, (void)av;
	if (request_take_environment(&request, look, spank, &report) < 0 ||
	    (wanted = request_is_wanted(&request, &report)) < 0) {
		slurm_error("%s", report.text);
		return FAILED;
	}
	if (wanted == 0 || spank_context() != S_CTX_REMOTE)
		return DONE;
	is_wanted = true;
	settings_fill_in(&settings, &request);
	return take_step(spank);
}

static int find_place(struct place *place, struct report *report)
{
	uid_t uid = 0;

	if (spank_get_item(here, S_JOB_UID, &uid) != ESPANK_SUCCESS)
		return report_fail(report, "container: Slurm does not say whose step this is");
	return place_find(&request, uid, "/", place, report);
}

/* What the helper says, line by line, while it works. */
static void pass_on(int fd)
{
	FILE *file = fdopen(fd, "re");
	char *line = NULL;
	size_t size = 0;

	while (file != NULL && getline(&line, &size, file) > 0) {
		line[strcspn(line, "\n")] = '\0';
		slurm_spank_log("%s", line);
	}
	free(line);
	if (file != NULL)
		(void)fclose(file);
}

/* Not fork: slurmstepd's hooks around it are for slurmstepd. The environment is the job's, for proxies and credentials. */
static int start(struct report *report)
{
	char **words = request_words(&request, settings.program, "start"), **environment = NULL;
	posix_spawn_file_actions_t actions;
	int pipe_fds[2], status, error;
	pid_t child;

	if (words == NULL || pipe2(pipe_fds, O_CLOEXEC) < 0 || posix_spawn_file_actions_init(&actions) != 0 ||
	    spank_get_item(here, S_JOB_ENV, &environment) != ESPANK_SUCCESS)
		return report_fail(report, "container: cannot prepare to start %s: %m", settings.program);
	error = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDWR, 0);
	error = error ? error : posix_spawn_file_actions_adddup2(&actions, pipe_fds[1], 2);
	error = error ? error : posix_spawn_file_actions_adddup2(&actions, 0, 1);
	error = error ? error : posix_spawn_file_actions_addclosefrom_np(&actions, 3);
	errno = error ? error : posix_spawn(&child, settings.program, &actions, NULL, words, environment);
	if (errno != 0)
		return report_fail(report, "container: cannot start %s: %m", settings.program);
	(void)close(pipe_fds[1]);
	pass_on(pipe_fds[0]);
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return report_fail(report, "container: cannot wait for %s: %m", settings.program);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1; /* the helper has said why */
}

/* A use of the name that is not "whatever there is", and saving, are looked at by the helper also where one runs. */
static bool needs_look(void)
{
	size_t length;

	return request.save != NULL ||
	       (request.name != NULL && (request_name_use(&request, &length) == NAME_CREATE ||
					 request_name_use(&request, &length) == NAME_NO_EXEC));
}

static int set(const char *name, const char *value, int overwrite)
{
	spank_err_t done = spank_setenv(here, name, value, overwrite);

	return done == ESPANK_SUCCESS || done == ESPANK_ENV_EXISTS ? 0 : -1;
}

static const char *get(const char *name)
{
	static char value[65536];

	return spank_getenv(here, name, value, sizeof(value)) == ESPANK_SUCCESS ? value : NULL;
}

static const struct variables variables = { .get = get, .set = set };

/* PyTorch looks for these two, and Pyxis sets them for its images. */
static int set_for_pytorch(void)
{
	static const char *const names[][2] = { { "SLURM_PROCID", "RANK" }, { "SLURM_LOCALID", "LOCAL_RANK" } };
	char value[32];

	if (spank_getenv(here, "PYTORCH_VERSION", value, sizeof(value)) == ESPANK_ENV_NOEXIST)
		return 0;
	for (int i = 0; i < 2; i++)
		if (spank_getenv(here, names[i][0], value, sizeof(value)) == ESPANK_SUCCESS && set(names[i][1], value, 0) < 0)
			return -1;
	return 0;
}

static int come_in(struct report *report)
{
	struct joined joined = { .user_ns = -1 };
	struct place place;

	if (find_place(&place, report) < 0 || (!needs_look() && join_ask(&place, &joined, report) < 0))
		return -1;
	for (int attempt = 0; joined.user_ns < 0; attempt++) {
		if (attempt == 3)
			return report_fail(report, "container: it ended before the task came in");
		if (start(report) < 0 || join_ask(&place, &joined, report) < 0)
			return -1;
	}
	if (join_enter(&request, &joined, report) < 0)
		return -1;
	if (environment_merge(&request, &joined.config, &variables) < 0 || set_for_pytorch() < 0)
		return report_fail(report, "container: Slurm does not take the image's environment");
	return 0;
}

int slurm_spank_task_init(spank_t spank, int ac, char **av)
{
	struct report report = { "" };

	(void)ac, (void)av;
	if (!is_wanted)
		return DONE;
	here = spank;
	if (come_in(&report) == 0)
		return DONE;
	if (report.text[0] != '\0')
		slurm_spank_log("%s", report.text);
	/* As slurmstepd would do it after a failed hook, but without its two sentences behind the one that says why. */
	_exit(1);
}

int slurm_spank_task_exit(spank_t spank, int ac, char **av)
{
	struct report report = { "" };
	struct place place;

	(void)ac, (void)av;
	if (!is_wanted || tasks_left == 0 || --tasks_left > 0)
		return DONE;
	here = spank;
	if (find_place(&place, &report) < 0 || join_wait(&place, request.save != NULL ? SAVE_S : CLEAR_UP_S, &report) < 0)
		slurm_error("%s", report.text);
	return DONE;
}
