/*
 * A child that shares the memory of its maker.
 *
 * Most of what a fork of slurmstepd costs is the copy of its memory (0.7 ms on a small virtual machine). Such a child saves it, on
 * terms: until it has ended, or was killed, the caller only waits, for both have one heap and one errno; and the child opens,
 * mounts and forks as it likes, for all else is its own. (Not a thread: who changes the user id has to wait for all threads.)
 */
#ifndef JAIL_SHARED_MEMORY_CHILD_H
#define JAIL_SHARED_MEMORY_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

struct shared_memory_child {
	pid_t pid;
	int pidfd;	/* readable when it has ended */
	char *stack;
};

/* Runs `run` in a child; false with errno where there is none. */
bool shared_memory_child_start(struct shared_memory_child *child, int (*run)(void *context), void *context);

/* Takes leave of a child: one that has ended is waited for, any other is killed, and ends when the kernel lets it. */
void shared_memory_child_end(struct shared_memory_child *child, bool has_ended);

#endif
