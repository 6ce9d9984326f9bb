/*
 * The holder: pid 1 of a step's pid namespace.
 *
 * The first child of a new pid namespace is its init, and when the init ends the kernel kills everything in the
 * namespace. Were a task the init, the first task to end would kill the others; so slurmstepd forks this process, which
 * does nothing but hold: it owns the mount namespace with the /proc that matches, lets the kernel reap orphans, and ends
 * when slurmstepd does (a pipe closes; PR_SET_PDEATHSIG as well). Ending it is how a step ends: one SIGKILL, and no
 * process that a user left behind survives it, whatever it did to hide.
 *
 * It keeps its capabilities on purpose. The kernel lets a process look into another (/proc/1/root, ptrace) only if its
 * own capabilities are at least as wide; the tasks' are narrower, so root among them cannot look into the holder.
 *
 * The holder is found and joined by a pidfd; nothing here needs a /proc or a path. Later steps of a job, `srun
 * --overlap` and SSH sessions can join the same two namespaces with `jail enter`.
 */
#ifndef JAIL_HOLDER_H
#define JAIL_HOLDER_H

#include <sys/types.h>

#include "plan.h"
#include "report.h"

struct holder {
	pid_t pid;
	int pidfd;
	int lifeline;	/* the holder ends when the last copy of this is closed */
	int home;	/* pidfd of the process that made the holder: the way back for the pids of its children */
};

/* Makes the namespaces and the process. The caller has entered the jail and is the main thread of its process. */
int holder_start(const struct plan *plan, struct holder *holder, struct report *report);

/* Children of the calling thread are born in the holder's pid namespace from here on; _leave undoes it. */
int holder_aim_children(const struct holder *holder, struct report *report);
int holder_aim_back(const struct holder *holder, struct report *report);

/* Moves the calling process, which has one thread, into the holder's mount namespace and keeps its working folder. */
int holder_join_mounts(const struct holder *holder, struct report *report);

/* Kills the holder, and with it all that is left in its pid namespace, and waits up to 5 s until all are reaped. */
int holder_stop(struct holder *holder, struct report *report);

#endif
