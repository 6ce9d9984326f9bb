/*
 * The process that a container is known by while it runs: it holds its namespaces and listens on a socket.
 *
 * Whoever wants in connects and gets the namespaces as open files, and the image's environment; nothing is looked up by
 * a process id, and that somebody listens is the proof that the container runs. The daemon watches those that came in
 * (by pidfd), and when the last is gone it writes the squashfs that was asked for, removes a container without a name,
 * and ends. A process that waits for that end gets a NUL, or the sentence of what went wrong.
 */
#ifndef CONTAINER_DAEMON_H
#define CONTAINER_DAEMON_H

#include <stdint.h>

#include "config.h"
#include "image.h"
#include "storage_paths.h"

/* The first letter of a request; behind DAEMON_WAIT and DAEMON_JOIN may stand the step that asks. */
enum { DAEMON_JOIN = 'J', DAEMON_WAIT = 'W', DAEMON_ASK = '?', DAEMON_WORDS = 64 };

/*
 * What a joiner gets before `size` bytes of records, with open files in this order: the user and the mount namespace, those
 * of `unshared` (request.h), and for a container with a name the lock `alive`. The daemon ends with its step, at the latest; a
 * task that is still in the container then keeps others from mounting it a second time, as long as the lock is open.
 */
struct daemon_answer {
	uint32_t size;
	uint8_t unshared, has_alive, is_other_step, unused;
};

enum { DAEMON_FDS = 3 + UNSHARE_KINDS };

/* In the place of the size: the container belongs to another job, which alone can enter it. */
#define DAEMON_OF_OTHER_JOB UINT32_MAX

/* The socket in the container's folder. */
int daemon_address(const struct storage_paths *paths, struct report *report, void *address);

/* Starts the daemon of a container and returns when it listens; -1 with the sentence of what failed. */
int daemon_start(const struct request *request, const struct storage_paths *paths, const struct image *image, int alive,
		 struct report *report);

#endif
