/*
 * --container-save: a process that stays behind in the jail's root, with the container's files at hand but none of what
 * is mounted in it, and that packs them when the last task is gone. The file appears by a rename when it is whole.
 */
#ifndef CONTAINER_EXPORT_H
#define CONTAINER_EXPORT_H

#include <sys/types.h>

#include "../report.h"

struct export {
	pid_t pid;
	int order, answer;
};

/* Starts it where `path` is not NULL; `root_fd` is the overlay, before anything is mounted in it. */
int export_start(struct export *export, const char *path, int root_fd, struct report *report);

/* Lets it pack; `answer` can be read when it has. */
void export_order(const struct export *export);

/* Waits for that. */
int export_finish(struct export *export, struct report *report);

#endif
