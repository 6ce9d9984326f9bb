/*
 * Folders of the plan that belong into a variable of the user's environment, such as PATH.
 *
 * A line `path NAME FOLDER` of the plan puts FOLDER in front of the value of NAME, or behind it with the option `last`; a
 * variable that is not set gets it alone. A value that has the folder stays as it is: a batch script hands its
 * environment on to its steps, and it would grow with each. Nothing is mounted; that the folder is there is another line's.
 */
#ifndef JAIL_PATHS_H
#define JAIL_PATHS_H

#include <stdbool.h>
#include <stddef.h>

#include "plan.h"

/* The value that a variable is to have instead of `old` ("" where it is not set): false where that is `old` itself, or longer than `size`. */
bool paths_value(const struct plan_mount *entry, const char *old, char *value, size_t size);

#endif
