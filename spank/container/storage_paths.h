/*
 * Where things lie.
 *
 *   ~/.cache/soperator/containers/   on the shared root, of one user, for all nodes:
 *       <digest>.sqsh                an image, fetched once
 *       partial/                     what is being written
 *       steps/<step>-<image>         the digest that a tag meant when the step began, the same on all its nodes
 *   STORAGE/<uid>/                   on the node, of one user, for all of his jobs there:
 *       trees/<key>/                 an image unpacked, which nobody writes to
 *       named/<name>/                a container that outlives its job (scope=global)
 *   /tmp/.containers-<uid>/<job>/    on the node, gone with the job's own /tmp:
 *       <name>/ or step-<step>/      a container: upper, work, root, socket, lock, and fetch while its image is fetched
 *
 * STORAGE is /run/soperator/containers where the user has a folder there, and otherwise /tmp. Every folder belongs to the user
 * and is shut to others; one that is found to be somebody else's is an error, because /tmp may be open to all.
 *
 * In the pod STORAGE is STORAGE_PATHS_OF_POD. It belongs to root, and the plugin makes the user's folder in it, as root, when a step
 * begins. In a folder that is open to all (mode 1777), as storage= may name one, each user makes it, and could make that of
 * another user first, who then has no containers there.
 */
#ifndef CONTAINER_STORAGE_PATHS_H
#define CONTAINER_STORAGE_PATHS_H

#include <limits.h>
#include <stdbool.h>

#include "../report.h"
#include "request.h"

#define STORAGE_PATHS_OF_POD "/mnt/tmp/containers"

enum { STORAGE_PATHS_MAX = 512 };

struct storage_paths {
	char cache[STORAGE_PATHS_MAX];
	char node[STORAGE_PATHS_MAX];	/* STORAGE/<uid> */
	char box[STORAGE_PATHS_MAX];	/* the container's folder */
	bool is_of_step;	/* --container-name=JOB.STEP: a container that another step has started, or none */
};

/* Makes the folder of a user below STORAGE_PATHS_OF_POD, where that is; called by root. -1 with errno. */
int storage_paths_give(unsigned int uid, unsigned int gid);

/* Says where the container of the request lies, and makes nothing. `uid` is its user. */
int storage_paths_find(const struct request *request, unsigned int uid, const char *home, struct storage_paths *paths,
	       struct report *report);

/* Makes a folder and those above it which are missing below `top`, and checks that it is ours and shut. */
int storage_paths_make(const char *path, struct report *report);

/* Joins two parts; -1 with a sentence where they are too long. `to` holds STORAGE_PATHS_MAX + 128. */
int storage_paths_join(char *to, const char *folder, const char *name, struct report *report);

/* Removes a folder with all that is in it, whatever the modes; what is not there is no error. */
int storage_paths_remove(const char *path, struct report *report);

/* Opens a lock file and waits for the lock. -1 with a sentence. Where a file system has no locks, none is taken. */
int storage_paths_lock(const char *path, int operation, struct report *report);

#endif
