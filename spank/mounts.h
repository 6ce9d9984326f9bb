/*
 * Carrying out one line of the plan, and looking afterwards whether it took.
 *
 * The new root is being put together at a staging point. Mounts go onto targets in it that are opened as target.h says. Nothing is ever created
 * in the jail; a missing mount point is an error with its line (but see mount_points.h).
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

/* Mounts one line below the staged root. */
int mounts_make(int root_fd, const struct plan *plan, const struct plan_mount *entry, struct mount_mark *mark,
		struct report *report);

/* Compares what is at the target, seen from inside, with the line. */
int mounts_verify(const struct plan_mount *entry, const struct mount_mark *mark, struct report *report);

#endif
