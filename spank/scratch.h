/*
 * A job's own folders on the node: its /tmp, for one.
 *
 * A line `scratch FOLDER TARGET` of the plan gives each job FOLDER/job-ID at TARGET: made with the job's namespaces,
 * shared by its steps, removed with all that is in it when the job has ended. FOLDER is root's alone, so that who is
 * outside a jail on the node does not see a job's files either. Without a job (`jail run`) it is an empty folder in memory.
 *
 * Nodes may share a FOLDER: a file system of the network, or a disk below two pods. Numbers of jobs tell nothing then: a job of two
 * nodes has one number, and two clusters have equal ones. So the option `owner=WORD` puts the jobs' folders into
 * FOLDER/WORD.HOSTNAME, which is this node's own: only what lies in there is ever removed. A node that comes back under its
 * name finds its leftovers there. Without the option FOLDER itself is this node's own.
 *
 * A folder that is to go is first set aside under another name, so that a next job of its number finds none, and then removed.
 * A process of another job may hold it open (a descriptor passed over a socket) and make files in it for as long as it likes. So
 * every folder becomes root's, closed to others, before it is emptied; and the removal has a time. What is left then is removed by a
 * process in the background, and by the ends of later jobs.
 */
#ifndef JAIL_SCRATCH_H
#define JAIL_SCRATCH_H

#include <stdint.h>

#include "plan.h"
#include "report.h"

/* Where the folder of a job is (`path` holds PATH_MAX bytes). */
int scratch_path(char *path, uint32_t job, const struct plan_mount *entry, struct report *report);

/* Where the folders of this node's jobs are: FOLDER, or the owner's folder in it. `path` holds PATH_MAX bytes. */
int scratch_own(char *path, const struct plan_mount *entry, struct report *report);

/* Makes a job's folder anew, empty, with the line's mode, and FOLDER closed to all but root. A missing FOLDER of an `optional` line is no error. */
int scratch_make(uint32_t job, const struct plan_mount *entry, struct report *report);

/* Sets a job's folder aside and removes it, and what earlier jobs left beside it; what takes too long goes on in the background. */
int scratch_end(const char *path, struct report *report);

/* Removes what was set aside in the folder of a line; that which has no job any more is for `scratch_end`. */
int scratch_clear(const struct plan_mount *entry, struct report *report);

/* Removes a folder and all below it; one that is not there is removed. Fails where that takes too long. */
int scratch_remove(const char *path, struct report *report);

/* The job whose folder a name in FOLDER is; 0 where it is nobody's. */
uint32_t scratch_job(const char *name);

#endif
