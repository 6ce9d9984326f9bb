/*
 * Moving the calling thread into the jail.
 *
 * A new mount namespace, whose mounts nobody else sees; the plan carried out below the staged root; then that root
 * becomes `/`. pivot_root does this where it is allowed. The default seccomp profile of container runtimes forbids it
 * even to a container that may mount, and there the staged root is moved onto `/` and chroot follows it, as an initrd
 * does. Both end the same for whoever has no CAP_SYS_ADMIN: `..` of the root is the root, the mount on top cannot be
 * taken off, and a new user namespace gets all mounts locked together. In the second case the old root still lies
 * below, so every other mount of it (volumes, keys, the claim) is detached from the namespace first.
 *
 * Only the calling thread moves. slurmstepd has threads already when its plugins are called; those serve slurmd and
 * poll /proc, and are right to stay outside. unshare(CLONE_NEWNS) gives the thread its own root and working folder.
 */
#ifndef JAIL_ENTER_H
#define JAIL_ENTER_H

#include "plan.h"
#include "report.h"

enum enter_result {
	ENTER_FAILED = -1,	/* the thread is outside; the report says why */
	ENTER_WHOLE = 0,	/* the thread is inside and every mount is as planned */
	ENTER_PARTIAL = 1,	/* inside, but a mount behind the root failed; the report says which: run nothing of a user */
};

/* For a thread that could not go in: everything that it sees of the pod becomes read-only to it. */
int enter_nothing(struct report *report);

/* Leaves the working folder at `/`. `at` always holds the line of the plan that is being carried out, for who waits for it. */
enum enter_result enter_jail(const struct plan *plan, volatile int *at, struct report *report);

#endif
