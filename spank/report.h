/*
 * One sentence about what went wrong.
 *
 * The same code runs in slurmstepd, where a message goes to Slurm's log and to the job's stderr, and in the helper
 * `jail`, where it goes to stderr. So nothing here prints: a function that fails writes one sentence into the report
 * and returns -1, and its caller decides where the sentence goes. The first sentence wins, for it is the cause; what
 * fails after it is a consequence.
 */
#ifndef JAIL_REPORT_H
#define JAIL_REPORT_H

struct report {
	char text[768];
};

/* Writes the sentence unless there is one already; returns -1. `%m` is the text of errno. */
int report_fail(struct report *report, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
