/* The why is in environment.h. */
#define _GNU_SOURCE
#include "environment.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
	const char *name, *folder;
} added[] = {
	{ "PATH", "/opt/soperator/bin" },
	{ "PATH", "/opt/soperator/driver/bin" },
	{ "LD_LIBRARY_PATH", "/opt/soperator/driver/lib" },
};

/* A '*' stands for any rest. */
static const char *const of_task[] = {
	"SLURM_*", "SLURMD_*", "PMIX_*", "PMI_*", "PMI2_*", "OMPI_COMM_WORLD_*", "RANK", "LOCAL_RANK",
	"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ZE_AFFINITY_MASK",
};

/* PMIx' parameters are the same for all tasks, and images set them. */
static const char *const of_all_tasks[] = { "PMIX_MCA_*" };

static const char *const of_shell[] = { "_", "PWD", "OLDPWD", "SHLVL" };

static const char *const for_entrypoint[] = {
	"HOME", "USER", "LOGNAME", "TERM", "SLURM_JOB*", "SLURM_NODEID", "SLURM_NNODES", "SLURM_CLUSTER_NAME", "SLURMD_NODENAME",
};

static const char *const of_locale[] = {
	"LANG", "LANGUAGE", "LC_ALL", "LC_ADDRESS", "LC_COLLATE", "LC_CTYPE", "LC_IDENTIFICATION", "LC_MEASUREMENT", "LC_MESSAGES",
	"LC_MONETARY", "LC_NAME", "LC_NUMERIC", "LC_PAPER", "LC_TELEPHONE", "LC_TIME",
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static size_t name_length(const char *variable)
{
	return strcspn(variable, "=");
}

static bool is_one_of(const char *variable, const char *const *patterns, size_t count)
{
	size_t length = name_length(variable);

	for (size_t i = 0; i < count; i++) {
		size_t fixed = strcspn(patterns[i], "*");
		bool is_prefix = patterns[i][fixed] == '*';

		if ((is_prefix ? length > fixed : length == fixed) && strncmp(variable, patterns[i], fixed) == 0)
			return true;
	}
	return false;
}

bool environment_is_of_task(const char *name)
{
	return is_one_of(name, of_task, COUNT(of_task)) && !is_one_of(name, of_all_tasks, COUNT(of_all_tasks));
}

static const char *get_of_process(const char *name)
{
	return getenv(name);
}

const struct variables variables_of_process = { .get = get_of_process, .set = setenv, .unset = unsetenv };

static bool is_listed(const char *list, char separator, const char *name, size_t length)
{
	while (list != NULL && *list != '\0') {
		const char *end = strchrnul(list, separator);

		if ((size_t)(end - list) == length && strncmp(list, name, length) == 0)
			return true;
		list = end + (*end == separator);
	}
	return false;
}

/* A node without GPUs has the driver's folders too. */
static bool holds_something(const char *folder)
{
	DIR *open_folder = opendir(folder);
	int count = 0;

	while (open_folder != NULL && count < 3 && readdir(open_folder) != NULL)
		count++;
	if (open_folder != NULL)
		(void)closedir(open_folder);
	return count == 3; /* more than . and .. */
}

/* Behind what is there, so that an image's own programs go first. */
static int add_folder(const char *name, const char *folder, const struct variables *variables)
{
	const char *value = variables->get(name);
	char *whole = NULL;
	int result;

	if (!holds_something(folder) || is_listed(value, ':', folder, strlen(folder)))
		return 0;
	if (asprintf(&whole, "%s%s%s", value != NULL ? value : "", value != NULL && value[0] != '\0' ? ":" : "", folder) < 0)
		return -1;
	result = variables->set(name, whole, 1);
	free(whole);
	return result;
}

/* PATH is completed all the same, or Slurm's commands would be out of reach. */
static bool is_named(const struct request *request, const char *name)
{
	return strcmp(name, "PATH") != 0 && is_listed(request->env, ',', name, strlen(name));
}

static int drop_locale(const struct request *request, const struct variables *variables)
{
	for (size_t i = 0; i < COUNT(of_locale); i++)
		if (!is_listed(request->env, ',', of_locale[i], strlen(of_locale[i])) && variables->unset(of_locale[i]) != 0)
			return -1;
	return 0;
}

/* The home, and a PATH where neither the image nor the user has one (Docker's). */
static int set_missing(const struct request *request, const struct config *config, const struct variables *variables)
{
	const char *mounted = config_get(config, 'H', 0), *home = config_get(config, 'h', 0);

	if (mounted != NULL && variables->set("HOME", mounted, !is_listed(request->env, ',', "HOME", 4)) != 0)
		return -1;
	if (home != NULL && variables->set("HOME", home, 0) != 0)
		return -1;
	return variables->set("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 0);
}

int environment_merge(const struct request *request, const struct config *config, const struct variables *variables)
{
	const char *record;

	if (drop_locale(request, variables) < 0)
		return -1;
	for (int i = 0; (record = config_get(config, 'E', i)) != NULL; i++) {
		size_t length = name_length(record);
		char *name = strndup(record, length);
		const char *value = record[length] == '=' ? record + length + 1 : "";
		bool failed = name == NULL;

		if (!failed && length > 0)
			failed = variables->set(name, value, !is_listed(request->env, ',', name, length) &&
							     !environment_is_of_task(name)) != 0;
		free(name);
		if (failed)
			return -1;
	}
	if (set_missing(request, config, variables) != 0)
		return -1;
	for (size_t i = 0; i < COUNT(added); i++)
		if (!is_named(request, added[i].name) && add_folder(added[i].name, added[i].folder, variables) < 0)
			return -1;
	return 0;
}

int environment_keep_for_entrypoint(const struct request *request)
{
	for (char **each = environ; *each != NULL;) {
		size_t length = name_length(*each);
		char *name;
		int removed;

		if (is_listed(request->env, ',', *each, length) || is_one_of(*each, for_entrypoint, COUNT(for_entrypoint))) {
			each++;
			continue;
		}
		name = strndup(*each, length);
		removed = name != NULL ? unsetenv(name) : -1;
		free(name);
		if (removed < 0)
			return -1;
	}
	return 0;
}

/* The record of the same name, or NULL. */
static const char *find(const struct config *config, const char *variable)
{
	size_t length = name_length(variable);
	const char *record;

	for (int i = 0; (record = config_get(config, 'E', i)) != NULL; i++)
		if (name_length(record) == length && strncmp(record, variable, length) == 0)
			return record;
	return NULL;
}

static bool is_changed(const struct config *given, const char *variable)
{
	const char *before = find(given, variable);

	return before == NULL || strcmp(before, variable) != 0;
}

static bool is_for_tasks(const char *variable)
{
	return name_length(variable) > 0 && !environment_is_of_task(variable) && !is_one_of(variable, of_shell, COUNT(of_shell));
}

int environment_take_back(const struct config *image, const struct config *given, const struct config *result,
			  struct config *made, struct report *report)
{
	const char *record;

	for (int i = 0; (record = config_get(image, 'E', i)) != NULL; i++) {
		const char *after = find(result, record);

		if (after == NULL && is_for_tasks(record))
			continue;
		if (config_add(made, 'E', after != NULL && is_for_tasks(record) && is_changed(given, after) ? after : record, report) < 0)
			return -1;
	}
	for (int i = 0; (record = config_get(result, 'E', i)) != NULL; i++)
		if (is_for_tasks(record) && find(image, record) == NULL && is_changed(given, record) &&
		    config_add(made, 'E', record, report) < 0)
			return -1;
	return 0;
}
