/* What an image, a user and an entry point say of variables (../container/environment.c): three lists of records. */
#define _GNU_SOURCE
#include "fuzz.h"

#include "../container/environment.h"

const char *const fuzz_words[] = { "PATH=/bin", "SLURM_PROCID=9", "PMIX_RANK=9", "PMIX_MCA_gds=hash", "RANK=9", "CUDA_VISIBLE_DEVICES=9", "LANG=C", "_=x",
				   "PWD=/", "HOME=/x", "NAMED=x", "\1", "=", "X=", NULL };

static char *values[64][2];
static int count;

static const char *get(const char *name)
{
	for (int i = 0; i < count; i++)
		if (strcmp(values[i][0], name) == 0)
			return values[i][1];
	return NULL;
}

static int set(const char *name, const char *value, int overwrite)
{
	int i = 0;

	while (i < count && strcmp(values[i][0], name) != 0)
		i++;
	if (i < count && !overwrite)
		return 0;
	if (i == 64)
		return -1;
	if (i == count)
		values[count++][0] = strdup(name);
	else
		free(values[i][1]);
	values[i][1] = strdup(value);
	return 0;
}

static int unset(const char *name)
{
	for (int i = 0; i < count; i++)
		if (strcmp(values[i][0], name) == 0) {
			free(values[i][0]), free(values[i][1]);
			(void)memmove(values[i], values[count - 1], sizeof(values[i]));
			count--;
			return 0;
		}
	return 0;
}

static const struct variables variables = { get, set, unset };

/* Records that end with 0x01 each; an empty one ends the list. */
static void take(char **at, struct config *config)
{
	struct report report = { "" };
	char *record;

	while ((record = strsep(at, "\1")) != NULL && record[0] != '\0')
		HOLDS(config_add(config, 'E', record, &report) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size), *at = text;
	struct config lists[3] = { { 0 }, { 0 }, { 0 } }, made = { 0 };
	static char named[] = "NAMED,HOME";
	struct request request = { .env = named };
	struct report report = { "" };
	const char *record;

	for (int i = 0; i < 3; i++)
		take(&at, &lists[i]);
	HOLDS(environment_take_back(&lists[0], &lists[1], &lists[2], &made, &report) == 0);
	(void)set("SLURM_PROCID", "1", 1), (void)set("PMIX_RANK", "1", 1), (void)set("NAMED", "mine", 1);
	if (environment_merge(&request, &made, &variables) == 0)
		HOLDS(get("PATH") != NULL);
	HOLDS(strcmp(get("SLURM_PROCID"), "1") == 0 && strcmp(get("PMIX_RANK"), "1") == 0 && strcmp(get("NAMED"), "mine") == 0);
	for (int i = 0; (record = config_get(&made, 'E', i)) != NULL; i++)
		if (environment_is_of_task(record)) { /* then it is the image's own */
			bool is_images = false;

			for (int k = 0; config_get(&lists[0], 'E', k) != NULL; k++)
				is_images |= strcmp(config_get(&lists[0], 'E', k), record) == 0;
			HOLDS(is_images);
		}
	while (count > 0)
		(void)unset(values[0][0]);
	for (int i = 0; i < 3; i++)
		free(lists[i].records);
	free(made.records);
	free(text);
	return 0;
}
