/*
 * Removal of a tree that a user made, by root.
 *
 * It follows no link, never leaves the folder, and does not get deeper into a tree than a few levels at a time, however deep a user
 * has made it. Each folder becomes root's and is closed before it is listed: whoever holds it open can make nothing more in it. Two
 * removals of one tree do not disturb each other.
 */
#ifndef JAIL_REMOVE_H
#define JAIL_REMOVE_H

#include <stdint.h>

#include "report.h"

enum remove_done { REMOVE_FAILED = -1, REMOVE_WHOLE, REMOVE_LATE };

/* Removes a folder and all below it, until that time (monotonic_ms). One that is not there is removed. REMOVE_LATE says nothing in the report. */
enum remove_done remove_tree(const char *path, int64_t until, struct report *report);

#endif
