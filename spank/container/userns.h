/*
 * A user namespace of one user, which needs no right and no range of subordinate ids: the user is the only one there.
 *
 * Outside nothing changes: every file that is made belongs to the user. Inside the user has all capabilities over his
 * own files and mounts. Programs that unpack, pack and remove images get just enough of them to pass by modes that shut
 * out even the owner (a /etc/shadow of mode 000, folders without w).
 */
#ifndef CONTAINER_USERNS_H
#define CONTAINER_USERNS_H

#include <sys/types.h>

#include "../report.h"

/* A new user namespace, with `flags` (CLONE_NEW…) more; the caller is `uid` and `gid` in it. */
int userns_enter(int flags, uid_t uid, gid_t gid, struct report *report);

/* Hands dac_override and fowner on to programs that are executed from here, although they do not run as root. */
int userns_keep_file_rights(struct report *report);

#endif
