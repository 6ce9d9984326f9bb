/*
 * Coming into a container that runs, and waiting for its end.
 */
#ifndef CONTAINER_JOIN_H
#define CONTAINER_JOIN_H

#include <stdbool.h>

#include "config.h"
#include "place.h"

/* Asks to be let in: 1 with the namespaces and the image's configuration, 0 where no container runs, -1 with a sentence. */
struct joined {
	int user_ns, mount_ns;
	struct config config;
};

int join_ask(const struct place *place, struct joined *joined, struct report *report);

/* Whether a container runs there, without coming in. */
bool join_is_running(const struct place *place);

/* Enters the namespaces and the working folder. */
int join_enter(const struct request *request, const struct joined *joined, struct report *report);

/* Waits until the container has ended, for so many seconds at most; what went wrong there is the report. */
int join_wait(const struct place *place, int seconds, struct report *report);

#endif
