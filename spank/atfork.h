/*
 * Every process that slurmstepd forks follows into the step's namespaces.
 *
 * A thread that has aimed its children at another pid namespace cannot start threads (the kernel refuses CLONE_THREAD
 * then), and slurmstepd starts threads all the time; so the aim may last only as long as one fork. SPANK has no hook
 * around fork, and more than tasks are forked: a TaskEpilog or `srun --task-epilog` is a user's program, run by
 * slurmstepd itself after the task, without any hook before it. pthread_atfork is exactly around each fork: before it the
 * thread aims at the holder, after it the parent aims back and the child joins the mounts and bounds its capabilities,
 * before one more line of slurmstepd runs in it. If a step of this fails, the child exits: it never runs outside.
 *
 * A child may stay what it is for long: the task of a user's --task-prolog waits for that. It has the same rights as root of the job then, and is
 * closed to it until it executes a program (PR_SET_DUMPABLE).
 *
 * Only forks of the main thread follow, for only that thread is in the jail.
 */
#ifndef JAIL_ATFORK_H
#define JAIL_ATFORK_H

#include "holder.h"
#include "report.h"

/* Begins to follow. `holder` must stay where it is until atfork_stop. `say` prints one sentence. */
int atfork_start(const struct holder *holder, void (*say)(const char *sentence), struct report *report);

/* For a step that could not be made ready: whatever the main thread forks ends at once with code 127. */
int atfork_refuse(struct report *report);

void atfork_stop(void);

#endif
