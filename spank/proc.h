/*
 * The /proc that the user sees.
 *
 * A /proc shows the processes of the pid namespace in which it was mounted, so it can only be made by a process that is
 * in the new namespace already: the holder, or the init of `jail run`. Until then the plan's `proc` line is the pod's
 * /proc, and slurmstepd keeps that one. The new file system is made detached (fsopen), the pod's /proc is taken off,
 * and only then is the new one attached: the kernel demands that a full /proc is visible while a user namespace makes
 * another, and nothing of the pod's must lie below it afterwards.
 *
 * Files in /proc that are the machine's (sysctls, sysrq, kcore) are masked as container runtimes do: root outside a
 * user namespace could set core_pattern and run a program of its own on the Node. The option `unmasked` leaves the masks
 * out, for jobs that start containers of their own in a user namespace: a masked /proc forbids them a fresh one.
 */
#ifndef JAIL_PROC_H
#define JAIL_PROC_H

#include "plan.h"
#include "report.h"

/*
 * Puts an empty, read-only folder over `target`, the /proc of the calling thread's mount namespace. Whoever opens a file by a name
 * that a user has given has this one: no process, no magic link and no memory is there to be named.
 */
int proc_cover(const char *target, struct report *report);

/* Puts a fresh /proc where the plan has one, in the mount namespace and for the pid namespace of the caller. */
int proc_renew(const struct plan *plan, struct report *report);

#endif
