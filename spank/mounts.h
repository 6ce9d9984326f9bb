/*
 * Carrying out one line of the plan, and looking afterwards whether it took.
 *
 * The new root is being put together at a staging point, and whoever is root in the jail decides what its folders
 * look like. So a target is never a path of the pod: it is opened inside the staged root with openat2, in which no
 * symbolic link and no `..` leads out of it, and mounts go onto that open file. A link in a target is an error and is
 * not followed: the plan says where a mount is, not the jail. Nothing is ever created in the jail; a missing mount
 * point is an error with its line (but see points.h).
 */
#ifndef JAIL_MOUNTS_H
#define JAIL_MOUNTS_H

#include <stdbool.h>
#include <sys/stat.h>

#include "plan.h"
#include "report.h"

/* What a mount has to look like after the root has moved. */
struct mount_mark {
	bool made;
	dev_t device;		/* of the source of a bind */
	ino_t inode;
};

/* Opens a mount point below the staged root (O_PATH); -1 with a sentence. */
int mounts_open_target(int root_fd, const struct plan_mount *entry, struct report *report);

/* The path under which an open file can be mounted on. `path` holds at least 32 bytes. */
void mounts_fd_path(char *path, int fd);

/* Mounts one line below the staged root. */
int mounts_make(int root_fd, const struct plan *plan, const struct plan_mount *entry, struct mount_mark *mark,
		struct report *report);

/* Sets the line's ro, nosuid, nodev, noexec on the mount that is now on `target_fd`, below it too where `deep`. */
int mounts_restrict(int target_fd, const struct plan_mount *entry, bool deep, struct report *report);

/* Compares what is at the target, seen from inside, with the line. */
int mounts_verify(const struct plan_mount *entry, const struct mount_mark *mark, struct report *report);

#endif
