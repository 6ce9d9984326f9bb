/* The why is in options.h. */
#include "options.h"

#include <stdlib.h>
#include <string.h>

#include "jobs.h"
#include "plan.h"
#include "spool.h"

static bool take_seconds(const char *text, int *seconds)
{
	char *end;

	*seconds = (int)strtol(text, &end, 10);
	return text[0] != '\0' && *end == '\0' && *seconds > 0 && *seconds <= 3600;
}

static bool take(const char *word, struct options *options)
{
	if (strncmp(word, "plan=/", 6) == 0) {
		options->plan = word + 5;
		return true;
	}
	if (strncmp(word, "spool=/", 7) == 0) {
		options->spool = word + 6;
		return true;
	}
	if (strncmp(word, "deadline=", 9) == 0)
		return take_seconds(word + 9, &options->seconds);
	if (strncmp(word, "unkillable=", 11) == 0)
		return take_seconds(word + 11, &options->unkillable);
	if (strcmp(word, "shared_ipc") == 0)
		options->ipc = false;
	options->timing |= strcmp(word, "timing") == 0;
	return strcmp(word, "shared_ipc") == 0 || strcmp(word, "ipc") == 0 || strcmp(word, "timing") == 0; /* ipc: as by default now */
}

int options_read(int count, char **words, struct options *options, struct report *report)
{
	*options = (struct options){ .plan = PLAN_DEFAULT_PATH, .spool = SPOOL_DEFAULT_PATH, .ipc = true, .seconds = JOBS_SECONDS, .unkillable = JOBS_UNKILLABLE };
	for (int i = 0; i < count; i++)
		if (!take(words[i], options))
			return report_fail(report,
					   "jail: unknown argument \"%s\" in plugstack.conf; known are plan=/PATH, spool=/PATH, "
					   "shared_ipc, deadline=SECONDS, unkillable=SECONDS, timing",
					   words[i]);
	return 0;
}
