/*
 * Coming into a container that runs, and waiting for its end.
 */
#ifndef CONTAINER_JOIN_H
#define CONTAINER_JOIN_H

#include <stdbool.h>

#include "config.h"
#include "storage_paths.h"

/* Asks to be let in: 1 with the namespaces and the image's configuration, 0 where no container runs, -1 with a sentence. */
struct joined {
	int user_ns, mount_ns, unshared[UNSHARE_KINDS]; /* -1 where the container has none of its own */
	bool is_other_step;				/* another step than the asking one has started it */
	struct config config;
};

int join_ask(const struct storage_paths *paths, const char *step, struct joined *joined, struct report *report);

/* Whether a container runs there, without coming in. */
bool join_is_running(const struct storage_paths *paths);

/* Enters the namespaces and the working folder. */
int join_enter(const struct request *request, const struct joined *joined, struct report *report);

/*
 * Waits until the container has ended, for so many seconds at most; what went wrong there is the report. In two steps for who
 * has to be known to the container before its end: a descriptor, or -1, without a sentence where no container runs. A `step`
 * that did not start the container does not wait.
 * `must_say` makes an end without a word an error.
 */
int join_wait_begin(const struct storage_paths *paths, const char *step, struct report *report);
int join_wait_end(int fd, int seconds, bool must_say, struct report *report);

/* Both in one; a container that does not run is none to wait for. */
int join_wait(const struct storage_paths *paths, const char *step, int seconds, struct report *report);

#endif
