/*
 * The process that a container is known by while it runs: it holds its namespaces and listens on a socket.
 *
 * Whoever wants in connects and gets the namespaces as open files, and the image's environment; nothing is looked up by
 * a process id, and that somebody listens is the proof that the container runs. The keeper watches those that came in
 * (by pidfd), and when the last is gone it writes the squashfs that was asked for, removes a container without a name,
 * and ends. A process that waits for that end gets a NUL, or the sentence of what went wrong.
 */
#ifndef CONTAINER_KEEPER_H
#define CONTAINER_KEEPER_H

#include <stdint.h>

#include "config.h"
#include "image.h"
#include "place.h"

/* The first letter of a request; behind KEEPER_WAIT and KEEPER_JOIN may stand the step that asks. */
enum { KEEPER_JOIN = 'J', KEEPER_WAIT = 'W', KEEPER_ASK = '?', KEEPER_WORDS = 64 };

/*
 * What a joiner gets before `size` bytes of records, with open files in this order: the user and the mount namespace, those
 * of `unshared` (request.h), and for a container with a name the lock `alive`. The keeper ends with its step, at the latest; a
 * task that is still in the container then keeps others from mounting it a second time, as long as the lock is open.
 */
struct keeper_answer {
	uint32_t size;
	uint8_t unshared, has_alive, is_other_step, unused;
};

enum { KEEPER_FDS = 3 + UNSHARE_KINDS };

/* In the place of the size: the container belongs to another job, which alone can enter it. */
#define KEEPER_OF_OTHER_JOB UINT32_MAX

/* The socket in the container's folder. */
int keeper_address(const struct place *place, struct report *report, void *address);

/* Starts the keeper of a container and returns when it listens; -1 with the sentence of what failed. */
int keeper_start(const struct request *request, const struct place *place, const struct image *image, int alive,
		 struct report *report);

#endif
