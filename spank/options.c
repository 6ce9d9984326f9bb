/* The why is in options.h. */
#include "options.h"

#include <stdlib.h>
#include <string.h>

#include "jobs.h"
#include "plan.h"
#include "spool.h"

static bool take(const char *word, struct options *options)
{
	char *end;

	if (strncmp(word, "plan=/", 6) == 0) {
		options->plan = word + 5;
		return true;
	}
	if (strncmp(word, "spool=/", 7) == 0) {
		options->spool = word + 6;
		return true;
	}
	if (strncmp(word, "deadline=", 9) == 0) {
		options->seconds = (int)strtol(word + 9, &end, 10);
		return word[9] != '\0' && *end == '\0' && options->seconds > 0 && options->seconds <= 3600;
	}
	options->ipc |= strcmp(word, "ipc") == 0;
	options->timing |= strcmp(word, "timing") == 0;
	return strcmp(word, "ipc") == 0 || strcmp(word, "timing") == 0;
}

int options_read(int count, char **words, struct options *options, struct report *report)
{
	*options = (struct options){ .plan = PLAN_DEFAULT_PATH, .spool = SPOOL_DEFAULT_PATH, .seconds = JOBS_SECONDS };
	for (int i = 0; i < count; i++)
		if (!take(words[i], options))
			return report_fail(report,
					   "jail: unknown argument \"%s\" in plugstack.conf; known are plan=/PATH, spool=/PATH, "
					   "ipc, deadline=SECONDS, timing",
					   words[i]);
	return 0;
}
