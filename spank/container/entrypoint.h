/*
 * --container-entrypoint: the image's entry point runs once for a container, and what it changes in the environment is there
 * for all tasks. It starts with the image's variables, those of the job and those that --container-env names, and with a
 * command that writes the environment down (printenv.h); an entry point that does not execute its command is an error.
 *
 * Only differences are taken back, and nothing that belongs to one task (environment.h): the entry point runs before the
 * first task and knows no rank.
 */
#ifndef CONTAINER_ENTRYPOINT_H
#define CONTAINER_ENTRYPOINT_H

#include "config.h"
#include "request.h"

/* Runs it, inside the container, and puts what it changed into the image's configuration. */
int entrypoint_run(const struct request *request, struct config *config, struct report *report);

#endif
