/*
 * The words behind the plugin in plugstack.conf. One that is not known is an error, never ignored: it may be a misspelt wish
 * for less.
 */
#ifndef JAIL_OPTIONS_H
#define JAIL_OPTIONS_H

#include <stdbool.h>

#include "report.h"

struct options {
	const char *plan;	/* plan=/PATH */
	const char *spool;	/* spool=/PATH: SlurmdSpoolDir */
	bool ipc;		/* jobs have a System V and message queue namespace of their own, and what they leave in it goes with them */
	bool timing;		/* tell in slurmd's log, and not only in its debug log, how long things took */
	int seconds;		/* deadline=SECONDS: how long to wait for a file system */
	int unkillable;		/* unkillable=SECONDS: how long killed processes may make no progress until the end of the job has failed */
};

int options_read(int count, char **words, struct options *options, struct report *report);

#endif
