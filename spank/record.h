/*
 * The record of a job on this node: its folder in JOBS_FOLDER (job.h), locked by who makes or removes what it names. Only jobs.c
 * and release.c use it.
 */
#ifndef JAIL_RECORD_H
#define JAIL_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "job.h"
#include "report.h"

/* The path of a job's folder; `path` holds at least 64 bytes. */
void record_path(char *path, uint32_t id);

/* Opens and locks it: -1 with a sentence, or without one where it is not there and is not to be made. Closing unlocks. */
int record_lock(uint32_t id, bool makes, struct report *report);

/* A small file of it, whole; an empty text where it is missing. */
void record_get(int folder_fd, const char *name, char *text, size_t size);
int record_put(int folder_fd, const char *name, const char *text, struct report *report);

/* Returns whether the job in that folder is there, and lives. */
bool record_read(int folder_fd, uint32_t id, struct jobs_job *job);

/* The job that a name in JOBS_FOLDER stands for, or 0. */
uint32_t record_job(const char *name);

/* Calls `visit` for each name in a folder that `id` takes for a job's; stops at the first -1. A folder that is missing is empty. */
int record_each(const char *path, uint32_t (*id)(const char *name), int (*visit)(uint32_t id, void *context, struct report *report),
		void *context, struct report *report);

#endif
