/*
 * Having a container run: the first task of a step on a node makes it, the others find it.
 *
 * Beside what the overlay needs, a container's folder has `image` (the squashfs it began with, so that a container with a
 * name goes on after its tree was taken for room), `step` (that started it), `failed` (the step for which it could not be
 * started: its other tasks end without trying again), `lock` (held while it is started) and `alive` (held by the daemon,
 * also while it saves and clears up).
 */
#ifndef CONTAINER_START_H
#define CONTAINER_START_H

#include "storage_paths.h"

/* Returns when the container runs; -1 with a sentence, or without one where an earlier task has said it. */
int start_container(const struct request *request, const struct storage_paths *paths, void (*said)(const char *sentence),
		    struct report *report);

/* Removes a container with a name that does not run. */
int start_remove(const struct request *request, const struct storage_paths *paths, struct report *report);

#endif
