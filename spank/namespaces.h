/*
 * Making a namespace, with a sentence that names the limit which forbids it.
 *
 * The kernel counts namespaces for each user, and those of a user namespace also for whoever has made that one. So what users of all pods with a
 * user namespace have made counts for root of the Node, whose limit (user.max_mnt_namespaces and its kin) also holds for the jail's own. One user
 * can use it up, and the kernel says no more than "No space left on device".
 */
#ifndef JAIL_NAMESPACES_H
#define JAIL_NAMESPACES_H

#include "report.h"

/* unshare() of one of CLONE_NEWNS, CLONE_NEWPID and CLONE_NEWIPC. */
int namespaces_make(int flag, struct report *report);

#endif
