/*
 * A stand-in for slurmstepd: loads the plugin and calls its hooks in the order and under the identities of Slurm 24.11
 * (src/slurmd/slurmstepd/mgr.c). `stepd PLUGIN CONTEXT STEP UID PLAN COMMAND...`; each COMMAND is a task for /bin/sh.
 * STEPD_JOB is the job's number (7), STEPD_FOLDER the working folder while tasks are forked, STEPD_ARGUMENTS are further words of the plugin's line in plugstack.conf. In the contexts
 * `slurmd` and `epilog` it is one of those processes instead, and only calls the hook that they call.
 *
 * As there, threads run before the first hook and are started after it; the effective user id is the user's while tasks
 * are forked; only a negative code of a hook is a failure; wait() takes any child; an epilog is forked without a hook.
 * What it does itself it says on stdout, one word and value per line, for the tests to read.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <slurm/spank.h>

enum { TASKS_MAX = 64 };

static const char *context, *plan;
static uint32_t step_id, job_id = 7, task_count;
static uid_t user;
static void *plugin;

spank_context_t spank_context(void)
{
	if (strcmp(context, "slurmd") == 0)
		return S_CTX_SLURMD;
	if (strcmp(context, "epilog") == 0)
		return S_CTX_JOB_SCRIPT;
	return strcmp(context, "remote") == 0 ? S_CTX_REMOTE : S_CTX_LOCAL;
}

/* A job's environment is this program's. */
spank_err_t spank_getenv(spank_t spank, const char *name, char *value, int length)
{
	const char *found = getenv(name);

	(void)spank;
	if (found == NULL)
		return ESPANK_ENV_NOEXIST;
	return snprintf(value, (size_t)length, "%s", found) < length ? ESPANK_SUCCESS : ESPANK_ERROR;
}

spank_err_t spank_unsetenv(spank_t spank, const char *name)
{
	(void)spank;
	if (getenv(name) == NULL)
		return ESPANK_ENV_NOEXIST;
	return unsetenv(name) == 0 ? ESPANK_SUCCESS : ESPANK_ERROR;
}

spank_err_t spank_setenv(spank_t spank, const char *name, const char *value, int overwrite)
{
	(void)spank;
	return setenv(name, value, overwrite) == 0 ? ESPANK_SUCCESS : ESPANK_ERROR;
}

spank_err_t spank_get_item(spank_t spank, spank_item_t item, ...)
{
	va_list arguments;

	(void)spank;
	va_start(arguments, item);
	*va_arg(arguments, uint32_t *) = item == S_JOB_STEPID ? step_id : item == S_JOB_UID ? user :
		item == S_JOB_LOCAL_TASK_COUNT ? task_count : job_id;
	va_end(arguments);
	return ESPANK_SUCCESS;
}

void slurm_error(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	(void)vfprintf(stderr, format, arguments);
	va_end(arguments);
	(void)fputc('\n', stderr);
}

void slurm_info(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	(void)vfprintf(stdout, format, arguments);
	va_end(arguments);
	(void)fputc('\n', stdout);
}

void slurm_debug(const char *format, ...)
{
	(void)format;
}

static void demand(bool is_right, const char *what)
{
	if (is_right)
		return;
	(void)fprintf(stderr, "stepd: %s: %s\n", what, strerror(errno));
	exit(99);
}

static int hook(const char *name)
{
	spank_f *function = (spank_f *)dlsym(plugin, name);
	char argument[4096], more[256];
	char *av[16] = { argument }, *rest = more, *word;
	int ac = 1;

	demand(function != NULL, name);
	demand(snprintf(argument, sizeof(argument), "plan=%s", plan) < (int)sizeof(argument), "plan is too long");
	demand(snprintf(more, sizeof(more), "%s", getenv("STEPD_ARGUMENTS") ? getenv("STEPD_ARGUMENTS") : "") < (int)sizeof(more),
	       "arguments are too long");
	while (ac < 15 && (word = strsep(&rest, " ")) != NULL)
		if (word[0] != '\0')
			av[ac++] = word;
	return function(NULL, ac, av);
}

static void *idle(void *unused)
{
	for (;;)
		(void)pause();
	return unused;
}

static void start_thread(void)
{
	pthread_t thread;

	errno = pthread_create(&thread, NULL, idle, NULL);
	demand(errno == 0, "pthread_create");
}

static void drop(void)
{
	demand(setegid(user) == 0 && seteuid(user) == 0, "seteuid");
}

static void reclaim(void)
{
	demand(seteuid(0) == 0 && setegid(0) == 0, "seteuid(0)");
}

static pid_t fork_task(const char *command)
{
	pid_t pid = fork();

	demand(pid >= 0, "fork");
	if (pid > 0)
		return pid;
	reclaim();
	if (hook("slurm_spank_task_init_privileged") < 0)
		_exit(98);
	demand(setgroups(0, NULL) == 0 && setresgid(user, user, user) == 0 && setresuid(user, user, user) == 0, "setresuid");
	if (hook("slurm_spank_task_init") < 0)
		_exit(94);
	(void)execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	_exit(97);
}

/* As slurmstepd's _run_script_as_user: it only forks and becomes the user. */
static int run_epilog(const char *command)
{
	int status;
	pid_t pid = fork();

	demand(pid >= 0, "fork");
	if (pid == 0) {
		demand(setresgid(user, user, user) == 0 && setresuid(user, user, user) == 0, "setresuid");
		(void)execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(97);
	}
	demand(waitpid(pid, &status, 0) == pid, "waitpid");
	return WEXITSTATUS(status);
}

static void run_tasks(char **commands, int count)
{
	pid_t pids[TASKS_MAX];
	int status, left = count;

	drop();
	if (hook("slurm_spank_user_init") < 0)
		exit(96);
	if (getenv("STEPD_FOLDER") != NULL) { /* what was the user's to enter when slurmstepd went there, and is not any more */
		reclaim();
		demand(chdir(getenv("STEPD_FOLDER")) == 0, "chdir");
		drop();
	}
	for (int i = 0; i < count; i++)
		pids[i] = fork_task(commands[i]);
	reclaim();
	start_thread();
	while (left > 0) {
		pid_t pid = wait(&status);

		demand(pid > 0, "wait");
		for (int i = 0; i < count; i++) {
			if (pids[i] == pid) {
				left--;
				(void)hook("slurm_spank_task_exit");
				(void)printf("task%d %d\n", i, WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
			}
		}
	}
}

int main(int argc, char **argv)
{
	int count = argc - 6;
	const char *epilog = getenv("STEPD_EPILOG");

	demand(argc > 5 && count <= TASKS_MAX, "usage");
	if (getenv("STEPD_JOB") != NULL)
		job_id = (uint32_t)strtoul(getenv("STEPD_JOB"), NULL, 10);
	context = argv[2], plan = argv[5];
	step_id = (uint32_t)strtoul(argv[3], NULL, 0);
	task_count = (uint32_t)count;
	user = (uid_t)strtoul(argv[4], NULL, 10);
	(void)setvbuf(stdout, NULL, _IONBF, 0);
	start_thread();
	plugin = dlopen(argv[1], RTLD_NOW);
	demand(plugin != NULL, "dlopen");
	if (spank_context() == S_CTX_SLURMD || spank_context() == S_CTX_JOB_SCRIPT) {
		int result = hook(spank_context() == S_CTX_SLURMD ? "slurm_spank_init" : "slurm_spank_job_epilog");

		return result < 0 ? 93 : 0;
	}
	if (hook("slurm_spank_init_post_opt") < 0) {
		(void)printf("init failed\n");
		return 95;
	}
	start_thread();
	(void)printf("inside %d\n", access("/marker-of-the-jail", F_OK) == 0);
	run_tasks(argv + 6, count);
	if (epilog != NULL)
		(void)printf("epilog %d\n", run_epilog(epilog));
	(void)printf("exit %d\n", hook("slurm_spank_exit"));
	while (waitpid(-1, NULL, WNOHANG) > 0)
		continue;
	(void)printf("children %d\n", waitpid(-1, NULL, WNOHANG) != -1);
	return 0;
}
