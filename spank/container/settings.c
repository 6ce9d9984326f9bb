/* The why is in settings.h. */
#define _GNU_SOURCE
#include "settings.h"

#include <string.h>

static bool take_switch(const char *word, const char *name, int *value)
{
	size_t length = strlen(name);

	if (strncmp(word, name, length) != 0 || (strcmp(word + length, "0") != 0 && strcmp(word + length, "1") != 0))
		return false;
	*value = word[length] == '1';
	return true;
}

static bool take_path(char *word, const char *name, char **path)
{
	size_t length = strlen(name);

	if (strncmp(word, name, length) != 0 || word[length] != '/')
		return false;
	*path = word + length;
	return true;
}

static bool take(struct settings *settings, char *word)
{
	if (strcmp(word, "container_scope=job") == 0 || strcmp(word, "container_scope=global") == 0) {
		settings->scope = strchr(word, '=') + 1;
		return true;
	}
	return take_path(word, "program=", &settings->program) || take_path(word, "storage=", &settings->storage) ||
	       take_switch(word, "execute_entrypoint=", &settings->entrypoint) ||
	       take_switch(word, "remap_root=", &settings->remap_root) ||
	       take_switch(word, "mount_home=", &settings->mount_home);
}

const char *settings_read(struct settings *settings, int ac, char **av)
{
	for (int i = 0; i < ac; i++)
		if (!take(settings, av[i]))
			return av[i];
	return NULL;
}

static void fill_in(int *said, int otherwise)
{
	if (*said < 0)
		*said = otherwise;
}

void settings_fill_in(const struct settings *settings, struct request *request)
{
	fill_in(&request->entrypoint, settings->entrypoint);
	fill_in(&request->remap_root, settings->remap_root);
	fill_in(&request->mount_home, settings->mount_home);
	request->storage = settings->storage;
	request->scope = settings->scope;
}
