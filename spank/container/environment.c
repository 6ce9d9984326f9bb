/* The why is in environment.h. */
#define _GNU_SOURCE
#include "environment.h"

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

static const char *get_of_process(const char *name)
{
	return getenv(name);
}

const struct variables variables_of_process = { .get = get_of_process, .set = setenv };

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

/* Behind what is there, so that an image's own programs go first. */
static int add_folder(const char *name, const char *folder, const struct variables *variables)
{
	const char *value = variables->get(name);
	char *whole = NULL;
	int result;

	if (access(folder, F_OK) < 0 || is_listed(value, ':', folder, strlen(folder)))
		return 0;
	if (asprintf(&whole, "%s%s%s", value != NULL ? value : "", value != NULL && value[0] != '\0' ? ":" : "", folder) < 0)
		return -1;
	result = variables->set(name, whole, 1);
	free(whole);
	return result;
}

int environment_merge(const struct request *request, const struct config *config, const struct variables *variables)
{
	const char *record;

	for (int i = 0; (record = config_get(config, 'E', i)) != NULL; i++) {
		size_t length = strcspn(record, "=");
		char *name = strndup(record, length);
		const char *value = record[length] == '=' ? record + length + 1 : "";
		bool failed = name == NULL;

		if (!failed && length > 0)
			failed = variables->set(name, value, !is_listed(request->env, ',', name, length)) != 0;
		free(name);
		if (failed)
			return -1;
	}
	for (size_t i = 0; i < sizeof(added) / sizeof(added[0]); i++)
		if (add_folder(added[i].name, added[i].folder, variables) < 0)
			return -1;
	return 0;
}
