/*
 * Which variable wins: the image's over the user's, as in Pyxis, but for those that --container-env names.
 *
 * Two folders stay in reach whatever the image says: Slurm's commands, and the GPU driver of the node, whose libraries an
 * image does not bring and whose loader does not know where they are.
 */
#ifndef CONTAINER_ENVIRONMENT_H
#define CONTAINER_ENVIRONMENT_H

#include "config.h"
#include "request.h"

/* How the environment is read and changed: getenv and setenv, or Slurm's. */
struct variables {
	const char *(*get)(const char *name);
	int (*set)(const char *name, const char *value, int overwrite);
};

extern const struct variables variables_of_process;

/* Inside the container: sets the image's variables, and adds the folders to PATH and LD_LIBRARY_PATH. */
int environment_merge(const struct request *request, const struct config *config, const struct variables *variables);

#endif
