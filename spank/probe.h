/*
 * Whether a file system answers, asked without hanging with it.
 *
 * A request to a storage server that is gone can wait for ever, and slurmstepd with it, so a child asks, and the caller waits
 * for the child until a deadline. statfs goes to the server with every common network file system, where stat may be answered
 * from memory. A child that is late is killed, and ends when the kernel lets it.
 */
#ifndef JAIL_PROBE_H
#define JAIL_PROBE_H

#include "report.h"

/* 1 where the file system at `path` answered (whatever it said), 0 where it did not within `seconds`, -1 with a sentence. */
int probe_answers(const char *path, int seconds, struct report *report);

#endif
