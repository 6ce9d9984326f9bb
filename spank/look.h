/*
 * One look of jail-watch at the mounts of a plan, in a process of its own.
 *
 * Whoever touches a storage that is gone may sleep for ever. So this process tells what it is about to touch before it does, and
 * its parent, which has a deadline, never touches anything.
 *
 * It needs no rights. What it may not see (a folder of root's above a mount point) is not its to judge, and neither is a
 * source that only slurmd's container has.
 */
#ifndef JAIL_LOOK_H
#define JAIL_LOOK_H

#include <stdbool.h>

/* What the first byte of a message says of the rest. */
enum look_message {
	LOOK_ABOUT = '?',     /* the path that is touched next */
	LOOK_ROOM = '%',      /* a sentence where the root is almost full, otherwise nothing */
	LOOK_SIZES = '#',     /* bytes, free ones, files, free ones, microseconds of the look */
	LOOK_READ_ONLY = '!', /* 1 where the root takes no writes, otherwise 0 */
	LOOK_RESULT = '=',    /* the last one: a sentence where something is wrong, otherwise nothing */
};

struct look_wish {
	const char *plan;
	const char *name; /* of the root, in sentences */
	bool is_writable; /* the root is mounted here to be written to */
};

/* The life of that process: looks, sends messages on the channel, a socket that keeps their borders, and ends. */
_Noreturn void look_and_tell(const struct look_wish *wish, int channel);

#endif
