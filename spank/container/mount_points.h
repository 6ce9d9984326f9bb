/*
 * Opening and making paths of the container as the container means them: its links are followed, and none leads out.
 */
#ifndef CONTAINER_MOUNT_POINTS_H
#define CONTAINER_MOUNT_POINTS_H

#include <stdbool.h>

#include "../report.h"

/* Opens a path below the root; -1 with errno. */
int mount_points_open(int root_fd, const char *path, int flags);

/* Opens (O_PATH) a path below the root, made as a folder or as an empty file where it is missing. */
int mount_points_make(int root_fd, const char *path, bool is_folder, struct report *report);

#endif
