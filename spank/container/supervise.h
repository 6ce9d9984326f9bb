/*
 * A task that waits for its container to be saved: the program runs in a child, and this process ends as the child ended, or
 * with 1 where the container could not be saved.
 *
 * Slurm takes a step's code from its tasks alone; no hook can change it afterwards. So for --container-save the first task on
 * the node stays until the file is written. All signals of Slurm go to the process group or to the whole step, so the child
 * gets them itself, and this process blocks them.
 */
#ifndef CONTAINER_SUPERVISE_H
#define CONTAINER_SUPERVISE_H

#include "storage_paths.h"

/*
 * Returns 0 in the child, which goes on as the task, or -1 with a sentence. The container has to run already. `say` gets the
 * sentence of what went wrong with the container; `seconds` is how long to wait for its end.
 */
int supervise(const struct storage_paths *paths, int seconds, void (*say)(const char *sentence), struct report *report);

#endif
