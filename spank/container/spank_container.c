/*
 * The SPANK plugin: srun, sbatch and salloc learn --container-…, and a task moves into its container before it becomes
 * the user's program.
 *
 * It happens in slurm_spank_task_init: there the process is the user already, in the jail, with bounded capabilities, and
 * Slurm looks for the program only afterwards, so in the container. The first task of a step on a node has the helper
 * `container` start the container, the others wait for it; each comes in by the daemon's socket (join.h). A failure is
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
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "environment.h"
#include "frameworks.h"
#include "join.h"
#include "settings.h"
#include "supervise.h"

enum { DONE = 0, FAILED = -1 }; /* slurmstepd looks only for negative codes */
/* In slurm.h SLURM_BATCH_SCRIPT and SLURM_INTERACTIVE_STEP */
#define BATCH_STEP 0xfffffffb
#define INTERACTIVE_STEP 0xfffffffa

enum { CLEAR_UP_S = 10, SAVE_S = 6 * 3600, LINE = 4096 };

static struct request request = REQUEST_EMPTY;
static struct settings settings = SETTINGS_DEFAULT;
static bool is_wanted;
static uint32_t tasks_left, nodes = 1;
static spank_t here;

/* An srun in a batch script has those of sbatch in its environment, and may say the opposite. */
static bool is_inherited(const struct request_option *option)
{
	char name[128] = "_SLURM_SPANK_OPTION_container_";
	size_t length = strlen(name);

	(void)snprintf(name + length, sizeof(name) - length, "%s", option->name);
	for (char *letter = name + length; *letter != '\0'; letter++)
		*letter = *letter == '-' ? '_' : *letter;
	return getenv(name) != NULL;
}

/* Within one command line; a remote step gets the options of sbatch and its own. */
static int check_opposite(int value, int remote, struct report *report)
{
	static const struct request_option *given[32];
	const struct request_option *option = request_option(value), *opposite = request_opposite(option);

	if (remote || is_inherited(option) || value >= 32)
		return 0;
	given[value] = option;
	for (int i = 0; opposite != NULL && i < 32; i++)
		if (given[i] == opposite)
			return report_fail(report, "container: --%s and --%s contradict each other", opposite->name, option->name);
	return 0;
}

static int take_option(int value, const char *argument, int remote)
{
	struct report report = { "" };

	if (check_opposite(value, remote, &report) == 0 &&
	    request_take(&request, request_option(value), argument, &report) == 0)
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
			slurm_error("container: Slurm does not accept the option --%s", option->name);
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

/* Each node of a step has a container of its own, and one file can hold one: that of the first node. */
static void take_save(spank_t spank, uint32_t step)
{
	uint32_t node = 0;

	(void)spank_get_item(spank, S_JOB_NODEID, &node);
	(void)spank_get_item(spank, S_JOB_NNODES, &nodes);
	if (step == BATCH_STEP || step == INTERACTIVE_STEP)
		nodes = 1;
	if (node > 0) {
		free(request.save);
		request.save = NULL;
	}
}

/* What the request needs to know of the step. */
static int take_step(spank_t spank)
{
	uint32_t job = 0, step = 0;
	const bool is_known = spank_get_item(spank, S_JOB_ID, &job) == ESPANK_SUCCESS &&
			spank_get_item(spank, S_JOB_STEPID, &step) == ESPANK_SUCCESS &&
			spank_get_item(spank, S_JOB_LOCAL_TASK_COUNT, &tasks_left) == ESPANK_SUCCESS;

	take_save(spank, step);
	if (!is_known || asprintf(&request.job, "%u", job) < 0 || asprintf(&request.step, "%u.%u", job, step) < 0 ||
	    asprintf(&request.tasks, "%u", tasks_left) < 0) {
		slurm_error("container: Slurm does not report the id of this step");
		return FAILED;
	}
	return DONE;
}

/*
 * The user's folder for unpacked images (storage_paths.h). Here the process is still outside the jail, as root: nobody else can have made
 * it before. What cannot be done here is the helper's to find out.
 */
static void make_folder(spank_t spank)
{
	uid_t uid = 0;
	gid_t gid = 0;

	if (spank_get_item(spank, S_JOB_UID, &uid) == ESPANK_SUCCESS && spank_get_item(spank, S_JOB_GID, &gid) == ESPANK_SUCCESS &&
	    storage_paths_give(uid, gid) < 0)
		slurm_error("container: cannot make the folder of user %u in " STORAGE_PATHS_OF_POD ": %m", uid);
}

int slurm_spank_init_post_opt(spank_t spank, int ac, char **av)
{
	struct report report = { "" };
	int wanted;

	(void)ac, (void)av;
	if (spank_context() == S_CTX_REMOTE)
		make_folder(spank);
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

static int find_paths(struct storage_paths *paths, struct report *report)
{
	uid_t uid = 0;

	if (spank_get_item(here, S_JOB_UID, &uid) != ESPANK_SUCCESS)
		return report_fail(report, "container: Slurm does not report the user of this step");
	return storage_paths_find(&request, uid, "/", paths, report);
}

/* Whole lines of what has come so far; the rest moves to the front. */
static size_t say_lines(char *text, size_t length, bool is_end)
{
	size_t begin = 0;

	for (size_t i = 0; i < length; i++)
		if (text[i] == '\n') {
			slurm_spank_log("%.*s", (int)(i - begin), text + begin);
			begin = i + 1;
		}
	if (begin < length && (is_end || (begin == 0 && length == LINE))) {
		slurm_spank_log("%.*s", (int)(length - begin), text + begin);
		begin = length;
	}
	(void)memmove(text, text + begin, length - begin);
	return length - begin;
}

/*
 * What the helper says while it works, and its status. Its end is the end, not that of the pipe: what an entry point left
 * running may have that open.
 */
static int listen_to(pid_t child, int fd, int *status)
{
	static char text[LINE];
	size_t length = 0;
	bool is_gone = false;

	for (;;) {
		struct pollfd ready = { fd, POLLIN, 0 };
		int found = poll(&ready, 1, is_gone ? 0 : 20);
		ssize_t more = found > 0 ? read(fd, text + length, sizeof(text) - length) : 0;

		if (more > 0) {
			length = say_lines(text, length + (size_t)more, false);
			continue;
		}
		if (is_gone) {
			(void)say_lines(text, length, true);
			return close(fd);
		}
		/* At the end of the pipe the helper is about to go; until then it may yet speak. */
		pid_t gone = waitpid(child, status, found > 0 ? 0 : WNOHANG);

		if (gone < 0 && errno != EINTR)
			return -1;
		is_gone = gone == child;
	}
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
	if (listen_to(child, pipe_fds[0], &status) < 0)
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

static int unset(const char *name)
{
	spank_err_t done = spank_unsetenv(here, name);

	return done == ESPANK_SUCCESS || done == ESPANK_ENV_NOEXIST ? 0 : -1;
}

static const char *get(const char *name)
{
	static char value[65536];

	return spank_getenv(here, name, value, sizeof(value)) == ESPANK_SUCCESS ? value : NULL;
}

static const struct variables variables = { .get = get, .set = set, .unset = unset };

static void say(const char *sentence)
{
	slurm_spank_log("%s", sentence);
}

/* The first task on the node has the container started, and goes on in a child that it waits for. */
static int begin_saving(const struct storage_paths *paths, struct report *report)
{
	char pid[32];

	if (nodes > 1)
		slurm_spank_log("container: each of the %u nodes has a container of its own; %s gets that of the first", nodes,
				request.save);
	if (start(report) < 0 || supervise(paths, SAVE_S, say, report) < 0)
		return -1;
	(void)snprintf(pid, sizeof(pid), "%d", getpid());
	return set("SLURM_TASK_PID", pid, 1);
}

static bool is_first_task(void)
{
	int task = -1;

	return spank_get_item(here, S_TASK_ID, &task) == ESPANK_SUCCESS && task == 0;
}

/*
 * An srun in the container of a batch script asks for the folder that the script is in, which the next step looks for outside. Its
 * paths, as in --container-mounts, are of the jail, and so is the folder that they begin at: that of the job.
 */
static int keep_folder(void)
{
	uint32_t step = 0;
	char folder[4096];

	if (spank_get_item(here, S_JOB_STEPID, &step) != ESPANK_SUCCESS || (step != BATCH_STEP && step != INTERACTIVE_STEP) ||
	    getcwd(folder, sizeof(folder)) == NULL)
		return 0;
	return set("SLURM_WORKING_DIR", folder, 0);
}

static int come_in(struct report *report)
{
	struct joined joined = { .user_ns = -1 };
	bool is_saving = request.save != NULL && is_first_task();
	struct storage_paths paths;

	if (find_paths(&paths, report) < 0 || (is_saving && begin_saving(&paths, report) < 0) ||
	    ((is_saving || !needs_look()) && join_ask(&paths, request.step, &joined, report) < 0))
		return -1;
	for (int attempt = 0; joined.user_ns < 0; attempt++) {
		if (attempt == 3)
			return report_fail(report, "container: the container ended before the task entered it");
		if (start(report) < 0 || join_ask(&paths, request.step, &joined, report) < 0)
			return -1;
	}
	if (joined.is_other_step && request.mounts != NULL && is_first_task())
		slurm_spank_log("container: the container runs already, so --container-mounts is ignored");
	if (keep_folder() < 0)
		return report_fail(report, "container: Slurm does not accept SLURM_WORKING_DIR");
	if (join_enter(&request, &joined, report) < 0)
		return -1;
	if (environment_merge(&request, &joined.config, &variables) < 0 || frameworks_set(&variables) < 0)
		return report_fail(report, "container: Slurm does not accept the image's environment");
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

/* In a child: whatever the user has put there, a link out of the jail or a socket that does not answer, is met as the user, and for a while. */
static void wait_as_user(uid_t uid, gid_t gid, int seconds, int told)
{
	struct report report = { "" };
	struct storage_paths paths;

	if ((geteuid() == 0 && setgroups(0, NULL) < 0) || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
		report_fail(&report, "container: cannot become user %u to wait for the container: %m", uid);
	else if (find_paths(&paths, &report) == 0)
		(void)join_wait(&paths, request.step, seconds, &report);
	(void)!write(told, report.text, strlen(report.text));
	_exit(0);
}

/* slurmstepd must end in any case: one that hangs has its node drained (Kill task failed). */
static int wait_for_container(int seconds, struct report *report)
{
	char said[sizeof(report->text)] = "";
	struct pollfd answer = { .events = POLLIN };
	uid_t uid = 0;
	gid_t gid = 0;
	ssize_t length = 0;
	int ends[2];
	pid_t child;

	if (spank_get_item(here, S_JOB_UID, &uid) != ESPANK_SUCCESS || spank_get_item(here, S_JOB_GID, &gid) != ESPANK_SUCCESS)
		return report_fail(report, "container: Slurm does not report the user of this step");
	if (pipe2(ends, O_CLOEXEC) < 0 || (child = fork()) < 0)
		return report_fail(report, "container: cannot wait for the container: %m");
	if (child == 0)
		wait_as_user(uid, gid, seconds, ends[1]);
	(void)close(ends[1]);
	answer.fd = ends[0];
	if (poll(&answer, 1, (seconds + 1) * 1000) > 0)
		length = read(ends[0], said, sizeof(said) - 1);
	(void)close(ends[0]);
	(void)kill(child, SIGKILL);
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		continue;
	return length > 0 ? report_fail(report, "%s", said) : 0;
}

int slurm_spank_task_exit(spank_t spank, int ac, char **av)
{
	struct report report = { "" };

	(void)ac, (void)av;
	if (!is_wanted || tasks_left == 0 || --tasks_left > 0)
		return DONE;
	here = spank;
	/* The first task has waited for a save, and said what came of it; where it was killed nothing is saved any more. */
	if (wait_for_container(CLEAR_UP_S, &report) < 0 && request.save == NULL)
		slurm_error("%s", report.text);
	return DONE;
}
