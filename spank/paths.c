/* The why is in paths.h. */
#define _GNU_SOURCE
#include "paths.h"

#include <stdio.h>
#include <string.h>

static bool has_folder(const char *value, const char *folder)
{
	size_t length = strlen(folder);

	for (const char *part = value; part != NULL; part = strchr(part, ':')) {
		part += *part == ':';
		if (strncmp(part, folder, length) == 0 && (part[length] == ':' || part[length] == '\0'))
			return true;
	}
	return false;
}

bool paths_value(const struct plan_mount *entry, const char *old, char *value, size_t size)
{
	const char *first = entry->last ? old : entry->target;
	const char *second = entry->last ? entry->target : old;
	int length;

	if (has_folder(old, entry->target))
		return false;
	if (old[0] == '\0')
		length = snprintf(value, size, "%s", entry->target);
	else
		length = snprintf(value, size, "%s:%s", first, second);
	return length > 0 && (size_t)length < size;
}
