/*
 * Which variable wins: the image's over the user's, as in Pyxis, but for those that --container-env names. A variable that
 * Slurm sets for one task (its rank, its GPUs) wins over both: an image or an entry point has one value for all tasks.
 *
 * The user's locale does not come along, because an image rarely has it; --container-env=LANG brings it.
 *
 * Two folders stay in reach whatever the image says: Slurm's commands, and the GPU driver of the node, whose libraries an
 * image does not bring and whose loader does not know where they are.
 */
#ifndef CONTAINER_ENVIRONMENT_H
#define CONTAINER_ENVIRONMENT_H

#include <stdbool.h>

#include "config.h"
#include "request.h"

/* How the environment is read and changed: getenv, setenv and unsetenv, or Slurm's. */
struct variables {
	const char *(*get)(const char *name);
	int (*set)(const char *name, const char *value, int overwrite);
	int (*unset)(const char *name);
};

extern const struct variables variables_of_process;

/* Inside the container: sets the image's variables, and adds the folders to PATH and LD_LIBRARY_PATH. */
int environment_merge(const struct request *request, const struct config *config, const struct variables *variables);

/* Whether Slurm sets a variable of this name for each task or step. `name` ends at its '=' or at its NUL. */
bool environment_is_of_task(const char *name);

/* Removes from this process what is not for an entry point: it sees the job and what --container-env names, and no task. */
int environment_keep_for_entrypoint(const struct request *request);

/*
 * Adds to `made` what tasks get after an entry point: the records of the image's configuration, with what the entry point
 * changed, added or removed. `given` and `result` have its environment before and after as records of kind 'E'.
 */
int environment_take_back(const struct config *image, const struct config *given, const struct config *result,
			  struct config *made, struct report *report);

#endif
