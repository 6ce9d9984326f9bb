/*
 * A tiny init: starts one program, passes signals on to it, reaps whatever else ends, and ends with its code.
 *
 * `jail run` needs it twice: as pid 1 of the new pid namespace, where orphans arrive and where a signal without a
 * handler is ignored, and outside, where the container runtime sends SIGTERM and waits for a code.
 */
#ifndef JAIL_INIT_H
#define JAIL_INIT_H

#include <sys/types.h>

#include "report.h"

/* Blocks all signals, so that none is lost before init_wait. Call it before the fork of the child. */
int init_block_signals(struct report *report);

/* In the child: unblocks them again and executes the program; returns -1 only if that fails. */
int init_execute(char **command, struct report *report);

/* Waits for `child`; returns its exit code, 128 + signal where one killed it, or -1. */
int init_wait(pid_t child, struct report *report);

#endif
