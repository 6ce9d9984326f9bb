/*
 * --container-entrypoint: the image's entry point runs once for a container, and what it exports is there for all tasks,
 * as in Pyxis. It gets as its command this helper, which writes down the environment; an entry point that does not
 * execute its command at the end is an error.
 */
#ifndef CONTAINER_ENTRYPOINT_H
#define CONTAINER_ENTRYPOINT_H

#include "config.h"
#include "request.h"

/* Runs it, inside the container, and puts its environment in the place of the image's. */
int entrypoint_run(const struct request *request, struct config *config, struct report *report);

#endif
