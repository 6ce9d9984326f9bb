/* The why is in request.h. */
#define _GNU_SOURCE
#include "request.h"

#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bind.h"

#define TEXT(name, argument, variable, field, help) { name, argument, help, variable, offsetof(struct request, field), -1 }
#define SWITCH(name, variable, field, value, help) { name, NULL, help, variable, offsetof(struct request, field), value }

static const struct request_option options[] = {
	TEXT("container-image", "[USER@][REGISTRY#]IMAGE[:TAG]|PATH", "PYXIS_CONTAINER_IMAGE", image,
	     "image of the container: a reference in a registry, or the path of a squashfs file or of an image archive"),
	TEXT("container-mounts", "SRC:DST[:FLAGS][,SRC:DST...]", "PYXIS_CONTAINER_MOUNTS", mounts,
	     "paths of the jail to mount in the container; FLAGS are joined by \"+\", as in \"ro+nosuid\""),
	TEXT("container-workdir", "PATH", "PYXIS_CONTAINER_WORKDIR", workdir, "working folder in the container"),
	TEXT("container-name", "NAME[:auto|create|exec|no_exec]", "PYXIS_CONTAINER_NAME", name,
	     "keep the container until the job's end; later steps that name it run in it"),
	TEXT("container-save", "PATH", "PYXIS_CONTAINER_SAVE", save,
	     "write the container to a squashfs file when the step has ended"),
	SWITCH("container-mount-home", "PYXIS_CONTAINER_MOUNT_HOME", mount_home, 1, "mount your home in the container"),
	SWITCH("no-container-mount-home", NULL, mount_home, 0, "do not mount your home in the container"),
	SWITCH("container-remap-root", "PYXIS_CONTAINER_REMAP_ROOT", remap_root, 1,
	       "appear as root in the container; outside, you own all files"),
	SWITCH("no-container-remap-root", NULL, remap_root, 0, "keep your own user in the container"),
	SWITCH("container-entrypoint", "PYXIS_CONTAINER_ENTRYPOINT", entrypoint, 1, "run the image's entry point first"),
	SWITCH("no-container-entrypoint", NULL, entrypoint, 0, "do not run the image's entry point"),
	SWITCH("container-entrypoint-log", "PYXIS_CONTAINER_ENTRYPOINT_LOG", entrypoint_log, 1,
	       "show what the entry point prints"),
	SWITCH("container-writable", "PYXIS_CONTAINER_WRITABLE", writable, 1, "the container's files can be changed"),
	SWITCH("container-readonly", "PYXIS_CONTAINER_READONLY", writable, 0, "the container's files cannot be changed"),
	TEXT("container-env", "NAME[,NAME...]", "PYXIS_CONTAINER_ENV", env,
	     "your variables that override those of the image"),
	TEXT("container-unshare", "net|ipc|uts[,...]", "PYXIS_CONTAINER_UNSHARE", unshare,
	     "namespaces that the container does not share"),
};

/* What the plugin tells its helper, and no user. */
static const struct request_option further[] = {
	TEXT("job", "", NULL, job, NULL),
	TEXT("step", "", NULL, step, NULL),
	TEXT("tasks", "", NULL, tasks, NULL),
	TEXT("storage", "", NULL, storage, NULL),
	TEXT("scope", "", NULL, scope, NULL),
};

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

const struct request_option *request_option(int n)
{
	return n < COUNT(options) ? &options[n] : NULL;
}

static const struct request_option *any_option(int n)
{
	return n < COUNT(options) ? &options[n] : n < COUNT(options) + COUNT(further) ? &further[n - COUNT(options)] : NULL;
}

static char **text_of(const struct request *request, const struct request_option *option)
{
	return (char **)(uintptr_t)((const char *)request + option->field);
}

static int *switch_of(const struct request *request, const struct request_option *option)
{
	return (int *)(uintptr_t)((const char *)request + option->field);
}

static const char *const uses[] = { ":auto", ":create", ":exec", ":no_exec" };

enum name_use request_name_use(const struct request *request, size_t *length)
{
	const char *colon = strchr(request->name, ':');

	*length = colon == NULL ? strlen(request->name) : (size_t)(colon - request->name);
	for (int i = 0; colon != NULL && i < COUNT(uses); i++)
		if (strcmp(colon, uses[i]) == 0)
			return (enum name_use)i;
	return NAME_AUTO;
}

bool request_names_step(const struct request *request, char *step, size_t size)
{
	static const struct {
		const char *word;
		unsigned int number;
	} steps[] = { { "batch", 0xfffffffb }, { "interactive", 0xfffffffa } }; /* SLURM_BATCH_SCRIPT, SLURM_INTERACTIVE_STEP */
	size_t job = request->job != NULL ? strlen(request->job) : 0, length;
	const char *word;

	if (request->name == NULL || job == 0)
		return false;
	(void)request_name_use(request, &length);
	if (length < job + 2 || strncmp(request->name, request->job, job) != 0 || request->name[job] != '.')
		return false;
	word = request->name + job + 1, length -= job + 1;
	for (int i = 0; i < COUNT(steps); i++)
		if (length == strlen(steps[i].word) && strncmp(word, steps[i].word, length) == 0)
			return snprintf(step, size, "%s.%u", request->job, steps[i].number) < (int)size;
	return strspn(word, "0123456789") >= length && snprintf(step, size, "%s.%.*s", request->job, (int)length, word) < (int)size;
}

/* A name is a folder's name, and may not be one that the plugin makes itself. */
static int check_name(const char *name, struct report *report)
{
	size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");
	bool has_use = name[length] == '\0';

	for (int i = 0; i < COUNT(uses); i++)
		has_use |= strcmp(name + length, uses[i]) == 0;
	if (length == 0 || length > 64 || name[0] == '.')
		return report_fail(report, "container: --container-name=%s: a name has 1 to 64 letters, digits, '_', '-' and '.', "
					   "and does not begin with '.'", name);
	if (!has_use)
		return report_fail(report, "container: --container-name=%s: the name may be followed by :auto, :create, :exec or "
					   ":no_exec", name);
	return 0;
}

static const struct request_namespace namespaces[UNSHARE_KINDS] = {
	{ "net", "network", CLONE_NEWNET, "/proc/self/ns/net" },
	{ "ipc", "IPC", CLONE_NEWIPC, "/proc/self/ns/ipc" },
	{ "uts", "UTS", CLONE_NEWUTS, "/proc/self/ns/uts" },
};

const struct request_namespace *request_namespace(int n)
{
	return &namespaces[n];
}

/* The bit of a word of this length, or 0. */
static unsigned int namespace_bit(const char *word, size_t length)
{
	for (int i = 0; i < UNSHARE_KINDS; i++)
		if (strlen(namespaces[i].word) == length && strncmp(namespaces[i].word, word, length) == 0)
			return 1U << i;
	return 0;
}

unsigned int request_unshared(const struct request *request)
{
	unsigned int bits = 0;

	for (const char *word = request->unshare; word != NULL && *word != '\0';) {
		size_t length = strcspn(word, ",");

		bits |= namespace_bit(word, length);
		word += length + (word[length] == ',');
	}
	return bits;
}

/* Words joined by commas: none is empty, and those of --container-unshare are known. */
static int check_list(const struct request_option *option, const char *text, struct report *report)
{
	bool is_unshare = option->field == offsetof(struct request, unshare);

	for (const char *word = text;;) {
		size_t length = strcspn(word, ",");

		if (length == 0)
			return report_fail(report, "container: --%s=%.200s: a name is empty", option->name, text);
		if (is_unshare && namespace_bit(word, length) == 0)
			return report_fail(report, "container: --container-unshare: unknown namespace \"%.*s\"; known are net, ipc and uts",
					   (int)(length < 100 ? length : 100), word);
		if (word[length] == '\0')
			return 0;
		word += length + 1;
	}
}

const struct request_option *request_opposite(const struct request_option *option)
{
	for (const struct request_option *other = options; other < options + COUNT(options); other++)
		if (option->argument == NULL && other != option && other->argument == NULL && other->field == option->field)
			return other;
	return NULL;
}

static int check_text(const struct request_option *option, const char *text, struct report *report)
{
	if (text == NULL || text[0] == '\0')
		return report_fail(report, "container: --%s needs a value: %s", option->name, option->argument);
	if (option->field == offsetof(struct request, name))
		return check_name(text, report);
	if (option->field == offsetof(struct request, mounts))
		return bind_check(text, report);
	if (option->field == offsetof(struct request, env) || option->field == offsetof(struct request, unshare))
		return check_list(option, text, report);
	if (option->field == offsetof(struct request, save) && text[strlen(text) - 1] == '/')
		return report_fail(report, "container: --container-save=%s is a folder; give the path of a file", text);
	return 0;
}

int request_take(struct request *request, const struct request_option *option, const char *argument, struct report *report)
{
	if (option->argument == NULL) {
		*switch_of(request, option) = option->value;
		return 0;
	}
	char **text = text_of(request, option);

	if (check_text(option, argument, report) < 0)
		return -1;
	free(*text);
	*text = strdup(argument);
	return *text != NULL ? 0 : report_fail(report, "container: no memory for --%s", option->name);
}

static int truth(const char *word)
{
	static const char *const words[] = { "0", "1", "no", "yes", "n", "y", "false", "true" };

	for (int i = 0; i < COUNT(words); i++)
		if (strcmp(word, words[i]) == 0)
			return i % 2;
	return -1;
}

int request_take_environment(struct request *request, const char *(*look)(void *context, const char *name), void *context,
			     struct report *report)
{
	for (const struct request_option *option = options; option < options + COUNT(options); option++) {
		const char *said = option->variable ? look(context, option->variable) : NULL;
		int value;

		if (said == NULL)
			continue;
		if (option->argument != NULL) {
			if (*text_of(request, option) == NULL && request_take(request, option, said, report) < 0)
				return -1;
			continue;
		}
		value = truth(said);
		if (value < 0)
			return report_fail(report, "container: %s=%s is neither 0 nor 1", option->variable, said);
		if (*switch_of(request, option) < 0)
			*switch_of(request, option) = value ? option->value : !option->value;
	}
	return 0;
}

static const struct request_option *find(const char *word, const char **argument)
{
	size_t length = strcspn(word, "=");
	const struct request_option *option;

	*argument = word[length] == '=' ? word + length + 1 : NULL;
	for (int i = 0; (option = any_option(i)) != NULL; i++)
		if (strlen(option->name) == length && strncmp(option->name, word, length) == 0)
			return option;
	return NULL;
}

int request_read(struct request *request, int argc, char **argv, struct report *report)
{
	int i;

	for (i = 0; i < argc && strncmp(argv[i], "--", 2) == 0 && argv[i][2] != '\0'; i++) {
		const char *argument;
		const struct request_option *option = find(argv[i] + 2, &argument);

		if (option == NULL)
			return report_fail(report, "container: unknown option %s", argv[i]);
		if (request_take(request, option, argument, report) < 0)
			return -1;
	}
	return i < argc && strcmp(argv[i], "--") == 0 ? i + 1 : i;
}

char **request_words(const struct request *request, const char *program, const char *verb)
{
	char **words = calloc((size_t)(COUNT(options) + COUNT(further) + 3), sizeof(*words));
	const struct request_option *option;
	int count = 0;

	if (words == NULL)
		return NULL;
	if (asprintf(&words[count++], "%s", program) < 0 || asprintf(&words[count++], "%s", verb) < 0)
		return NULL;
	for (int i = 0; (option = any_option(i)) != NULL; i++) {
		int made = 0;

		if (option->argument != NULL && *text_of(request, option) != NULL)
			made = asprintf(&words[count++], "--%s=%s", option->name, *text_of(request, option));
		else if (option->argument == NULL && *switch_of(request, option) == option->value)
			made = asprintf(&words[count++], "--%s", option->name);
		if (made < 0)
			return NULL;
	}
	return words;
}

int request_is_wanted(const struct request *request, struct report *report)
{
	if (request->image != NULL || request->name != NULL)
		return 1;
	for (const struct request_option *option = options; option < options + COUNT(options); option++)
		if (option->argument != NULL ? *text_of(request, option) != NULL : *switch_of(request, option) == option->value)
			return report_fail(report, "container: --%s has no effect without --container-image or --container-name",
					   option->name);
	return 0;
}
