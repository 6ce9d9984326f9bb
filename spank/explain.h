/* The plan in words, for people: what would be mounted where and why, and what is missing for it. Nothing is mounted. */
#ifndef JAIL_EXPLAIN_H
#define JAIL_EXPLAIN_H

#include <stdio.h>

#include "plan.h"
#include "report.h"

/* Prints each mount in the plan's order, and the capabilities that root in the jail keeps. */
int explain_plan(const struct plan *plan, FILE *out, struct report *report);

/* Prints each mount with `ok`, `skip` or what is missing; fails with the first that is missing. */
int explain_check(const struct plan *plan, FILE *out, struct report *report);

#endif
