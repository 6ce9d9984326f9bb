/*
 * Where a mount of the plan goes, in a root that is being put together.
 *
 * Whoever is root in the jail decides what its folders look like. So a target is never a path of the pod: it is opened inside the staged
 * root with openat2, in which no symbolic link and no `..` leads out of it, and mounts go onto that open file. A link in a target is an
 * error and is not followed: the plan says where a mount is, not the jail.
 */
#ifndef JAIL_TARGET_H
#define JAIL_TARGET_H

#include <stdbool.h>

#include "plan.h"
#include "report.h"

/* Opens a mount point below the staged root (O_PATH); -1 with a sentence. */
int target_open(int root_fd, const struct plan_mount *entry, struct report *report);

/* The path under which an open file can be mounted on. `path` holds at least 32 bytes. */
void target_path(char *path, int fd);

/* Sets the line's ro, nosuid, nodev, noexec on the mount that is now on `target_fd`, below it too where `deep`. */
int target_restrict(int target_fd, const struct plan_mount *entry, bool deep, struct report *report);

#endif
