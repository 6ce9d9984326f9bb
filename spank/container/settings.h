/*
 * What the administrator says in plugstack.conf behind the plugin's path: where things are, and what happens where the
 * user says nothing.
 */
#ifndef CONTAINER_SETTINGS_H
#define CONTAINER_SETTINGS_H

#include "request.h"

struct settings {
	char *program, *storage, *scope;
	int entrypoint, remap_root, mount_home;
};

#define SETTINGS_DEFAULT { .program = "/opt/soperator/libexec/container" }

/* Reads the arguments; returns the one that is not known, or NULL. They have to stay where they are. */
const char *settings_read(struct settings *settings, int ac, char **av);

/* Completes what a user has asked for. */
void settings_fill_in(const struct settings *settings, struct request *request);

#endif
