/*
 * The helper `container`: what the plugin starts for the first task of a step, and a way to run a container by hand.
 *
 *   container run --container-image=IMAGE [--container-…] -- COMMAND…
 *   container remove [--storage=FOLDER] NAME      of container_scope=global; others go with their job
 *   container start --container-… --job=… --step=… --tasks=…
 *
 * It runs as the user, with no right that users do not have.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "environment.h"
#include "join.h"
#include "start.h"
#include "supervise.h"

enum { SAVE_S = 6 * 3600 };

static void say(const char *sentence)
{
	(void)fprintf(stderr, "%s\n", sentence);
}

static int usage(void)
{
	const struct request_option *option;

	say("container run --container-image=IMAGE [OPTIONS] -- COMMAND...\ncontainer remove [--storage=FOLDER] NAME");
	for (int i = 0; (option = request_option(i)) != NULL; i++)
		(void)fprintf(stderr, "  --%s%s%s\n        %s\n", option->name, option->argument ? "=" : "",
			      option->argument ? option->argument : "", option->help);
	return 2;
}

static const char *look(void *context, const char *name)
{
	(void)context;
	return getenv(name);
}

/* A job with --export=NONE has no HOME; the cache, credentials and skopeo are looked for there. */
static const char *home_of_user(void)
{
	const char *home = getenv("HOME");
	const struct passwd *user;

	if (home != NULL && home[0] == '/')
		return home;
	user = getpwuid(geteuid());
	home = user != NULL && user->pw_dir[0] == '/' ? user->pw_dir : "/tmp";
	return setenv("HOME", home, 1) == 0 ? getenv("HOME") : "/tmp";
}

static int start(const struct request *request, struct storage_paths *paths, struct report *report)
{
	if (storage_paths_find(request, geteuid(), home_of_user(), paths, report) < 0)
		return -1;
	return start_container(request, paths, say, report);
}

static int run(const struct request *request, char **command, struct report *report)
{
	struct joined joined;
	struct storage_paths paths;

	if (start(request, &paths, report) < 0 ||
	    (request->save != NULL && supervise(&paths, SAVE_S, say, report) < 0) || join_ask(&paths, request->step, &joined, report) < 0)
		return -1;
	if (joined.user_ns < 0)
		return report_fail(report, "container: the container ended before the command could run");
	if (join_enter(request, &joined, report) < 0)
		return -1;
	if (environment_merge(request, &joined.config, &variables_of_process) < 0)
		return report_fail(report, "container: no memory for the environment");
	(void)execvp(command[0], command);
	return report_fail(report, "container: cannot run %s: %m", command[0]);
}

/* On the node that has it. */
static int remove_named(int argc, char **argv)
{
	static struct request request = REQUEST_EMPTY;
	static char scope[] = "global";
	struct report report = { "" };
	struct storage_paths paths;
	int words = request_read(&request, argc, argv, &report);

	if (words >= 0 && words != argc - 1)
		return usage();
	request.scope = scope;
	for (int i = 0; words >= 0 && request_option(i) != NULL; i++)
		if (strcmp(request_option(i)->name, "container-name") == 0 &&
		    request_take(&request, request_option(i), argv[words], &report) < 0)
			words = -1;
	if (words >= 0 && storage_paths_find(&request, geteuid(), home_of_user(), &paths, &report) == 0)
		(void)start_remove(&request, &paths, &report);
	if (report.text[0] != '\0')
		say(report.text);
	return report.text[0] != '\0';
}

int main(int argc, char **argv)
{
	static struct request request = REQUEST_EMPTY;
	struct report report = { "" };
	struct storage_paths paths;
	bool is_run = argc > 1 && strcmp(argv[1], "run") == 0;
	int words, wanted, result = -1;
	static char step[32];

	if (argc > 2 && strcmp(argv[1], "remove") == 0)
		return remove_named(argc - 2, argv + 2);
	if (argc < 3 || (!is_run && strcmp(argv[1], "start") != 0))
		return usage();
	words = request_read(&request, argc - 2, argv + 2, &report);
	if (words >= 0 && is_run && words + 2 >= argc)
		return usage();
	if (words >= 0 && is_run && request_take_environment(&request, look, NULL, &report) < 0)
		words = -1;
	wanted = words < 0 ? -1 : request_is_wanted(&request, &report);
	if (wanted == 0)
		return usage();
	(void)snprintf(step, sizeof(step), "run-%d", getpid());
	if (request.step == NULL)
		request.step = step;
	if (wanted > 0)
		result = is_run ? run(&request, argv + 2 + words, &report) : start(&request, &paths, &report);
	if (report.text[0] != '\0')
		say(report.text);
	return result < 0 ? 1 : 0;
}
