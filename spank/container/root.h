/*
 * The container's root: an overlay of what this container writes over the image's tree, and what of the jail is in it.
 *
 * No new pid namespace and no new /proc: the job has its own already, and the jail's /proc, whose masks a user may not
 * take off, comes along as it is. So do /sys, /dev with the job's devices, /tmp, and what Slurm and PMIx need to talk to
 * slurmstepd. The root moves by a mount moved onto / and chroot: the runtime's seccomp profile has no pivot_root.
 */
#ifndef CONTAINER_ROOT_H
#define CONTAINER_ROOT_H

#include "config.h"
#include "storage_paths.h"

/* Mounts the overlay on <box>/root in this process's mount namespace; returns its root, open. */
int root_stage(const struct storage_paths *paths, const char *tree, struct report *report);

/*
 * Adds the home of the container to its configuration: /root for root in name. A home that is mounted wins over the image's
 * HOME, and root's over the user's.
 */
int root_set_home(const struct request *request, struct config *config, struct report *report);

/* Mounts all else, makes the working folder and the user's account, and moves there. */
int root_enter(int root_fd, const struct request *request, const struct config *config, const struct storage_paths *paths,
	       struct report *report);

#endif
