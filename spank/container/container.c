/*
 * The helper `container`: what the plugin starts for the first task of a step, and a way to run a container by hand.
 *
 *   container run --container-image=IMAGE [--container-…] -- COMMAND…
 *   container start --container-… --job=… --step=… --tasks=…
 *
 * It runs as the user, with no right that users do not have.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "environment.h"
#include "join.h"
#include "start.h"

extern char **environ;

static void say(const char *sentence)
{
	(void)fprintf(stderr, "%s\n", sentence);
}

static int usage(void)
{
	const struct request_option *option;

	say("container run --container-image=IMAGE [OPTIONS] -- COMMAND...");
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

static int start(const struct request *request, struct place *place, struct report *report)
{
	const char *home = getenv("HOME");

	if (place_find(request, geteuid(), home != NULL && home[0] == '/' ? home : "/tmp", place, report) < 0)
		return -1;
	return start_container(request, place, say, report);
}

static int run(const struct request *request, char **command, struct report *report)
{
	struct joined joined;
	struct place place;

	if (start(request, &place, report) < 0 || join_ask(&place, &joined, report) < 0)
		return -1;
	if (joined.user_ns < 0)
		return report_fail(report, "container: it ended before the command could run");
	if (join_enter(request, &joined, report) < 0)
		return -1;
	if (environment_merge(request, &joined.config, &variables_of_process) < 0)
		return report_fail(report, "container: no memory for the environment");
	(void)execvp(command[0], command);
	return report_fail(report, "container: cannot run %s: %m", command[0]);
}

/* For an entry point, which executes this as its command. */
static int write_environment(void)
{
	FILE *file = fdopen(3, "w");

	for (char **each = environ; file != NULL && *each != NULL; each++)
		if (fwrite(*each, strlen(*each) + 1, 1, file) != 1)
			return 1;
	return file == NULL || fclose(file) != 0;
}

int main(int argc, char **argv)
{
	static struct request request = REQUEST_EMPTY;
	struct report report = { "" };
	struct place place;
	bool is_run = argc > 1 && strcmp(argv[1], "run") == 0;
	int words, wanted, result = -1;
	static char step[32];

	if (argc == 2 && strcmp(argv[1], "environment") == 0)
		return write_environment();
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
		result = is_run ? run(&request, argv + 2 + words, &report) : start(&request, &place, &report);
	if (report.text[0] != '\0')
		say(report.text);
	return result < 0 ? 1 : 0;
}
