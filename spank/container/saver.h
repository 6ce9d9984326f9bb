/*
 * --container-save: a process that stays behind in the jail's root, with the container's files at hand but none of what
 * is mounted in it, and that packs them when the last task is gone. The file appears by a rename when it is whole.
 */
#ifndef CONTAINER_SAVER_H
#define CONTAINER_SAVER_H

#include <sys/types.h>

#include "../report.h"

struct saver {
	pid_t pid;
	int order, answer;
};

/* Starts it where `path` is not NULL; `root_fd` is the overlay, before anything is mounted in it. */
int saver_start(struct saver *saver, const char *path, int root_fd, struct report *report);

/* Lets it pack; `answer` can be read when it has. */
void saver_order(const struct saver *saver);

/* Waits for that. */
int saver_finish(struct saver *saver, struct report *report);

#endif
