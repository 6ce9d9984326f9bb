/*
 * A job's own folders on the node: its /tmp, for one.
 *
 * A line `scratch FOLDER TARGET` of the plan gives each job FOLDER/job-ID at TARGET: made with the job's namespaces,
 * shared by its steps, removed with all that is in it when the job has ended. FOLDER is root's alone, so that who is
 * outside a jail on the node does not see a job's files either. Without a job (`jail run`) it is FOLDER itself.
 *
 * What a user leaves there is removed by root; so the removal follows no link, never leaves the folder, and does not get
 * deeper into a tree than a few levels at a time, however deep a user has made it.
 */
#ifndef JAIL_SCRATCH_H
#define JAIL_SCRATCH_H

#include <stdint.h>

#include "plan.h"
#include "report.h"

/* Where the folder of a job is (`path` holds PATH_MAX bytes); FOLDER itself where `job` is 0. */
int scratch_path(char *path, uint32_t job, const struct plan_mount *entry, struct report *report);

/* Makes a job's folder anew, empty, with the line's mode, and FOLDER closed to all but root. A missing FOLDER of an `optional` line is no error. */
int scratch_make(uint32_t job, const struct plan_mount *entry, struct report *report);

/* Removes a folder and all below it; one that is not there is removed. */
int scratch_remove(const char *path, struct report *report);

/* The job whose folder a name in FOLDER is; 0 where it is nobody's. */
uint32_t scratch_job(const char *name);

#endif
