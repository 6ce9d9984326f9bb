/*
 * Mount points inside the plan's own memory file systems.
 *
 * A node never writes to the jail, so a mount point that the jail lacks is an error. A tmpfs of the plan (`/run`) is not the
 * jail: it is new and empty, nobody else sees it yet, and what is to be mounted below it (`/run/slurm`) cannot be there
 * already. There, and only there, mount points are made: a folder or an empty file, as the source is.
 */
#ifndef JAIL_MOUNT_POINTS_H
#define JAIL_MOUNT_POINTS_H

#include "plan.h"
#include "report.h"

/* The mount of the plan, made before `entry`, in which the target of `entry` lies. */
const struct plan_mount *mount_points_holder(const struct plan *plan, const struct plan_mount *entry);

/* Makes the target of `entry` if it lies in a tmpfs of the plan; does nothing otherwise. */
int mount_points_make(int root_fd, const struct plan *plan, const struct plan_mount *entry, struct report *report);

#endif
