/*
 * Reading a mount plan; the format and its why are in plan.h.
 *
 * The text is kept whole and cut in place, so a plan is one allocation and every string in it lives as long as the
 * plan does. Each check answers with the line and the words that it did not like.
 */
#define _GNU_SOURCE
#include "plan.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIELDS = 5 };

static const char *const kind_names[] = {
	[PLAN_ROOT] = "root",
	[PLAN_BIND] = "bind",
	[PLAN_RBIND] = "rbind",
	[PLAN_TMPFS] = "tmpfs",
	[PLAN_PROC] = "proc",
	[PLAN_DEV] = "dev",
	[PLAN_SYS] = "sys",
	[PLAN_SCRATCH] = "scratch",
	[PLAN_GPUS] = "gpus",
	[PLAN_PATH] = "path",
};

const char *plan_kind_name(enum plan_kind kind)
{
	return kind_names[kind];
}

/* Whether a line mounts something; the others say something about what is mounted. */
static bool is_mount(enum plan_kind kind)
{
	return kind != PLAN_GPUS && kind != PLAN_PATH;
}

const struct plan_mount *plan_find(const struct plan *plan, enum plan_kind kind)
{
	for (int i = 0; i < plan->count; i++)
		if (plan->mounts[i].kind == kind)
			return &plan->mounts[i];
	return NULL;
}

static int parse_kind(const char *word, enum plan_kind *kind)
{
	for (size_t i = 0; i < sizeof(kind_names) / sizeof(kind_names[0]); i++) {
		if (strcmp(word, kind_names[i]) == 0) {
			*kind = (enum plan_kind)i;
			return 0;
		}
	}
	return -1;
}

/* What is wrong with a path, in words, or NULL. `..`, `.` and empty parts would let two names mean one place. */
static const char *path_problem(const char *path)
{
	const char *part = path + 1;

	if (path[0] != '/')
		return "is not absolute";
	if (strlen(path) >= PATH_MAX)
		return "is too long";
	if (path[1] == '\0')
		return NULL;
	for (;;) {
		size_t length = strcspn(part, "/");

		if (length == 0)
			return "has an empty part";
		if (strncmp(part, "..", length) == 0 && length <= 2)
			return length == 2 ? "contains \"..\"" : "contains \".\"";
		if (part[length] == '\0')
			return NULL;
		part += length + 1;
	}
}

static bool is_size(const char *text)
{
	size_t digits = strspn(text, "0123456789");

	return digits > 0 && digits < 16 && strspn(text + digits, "kmgKMG%") <= 1 &&
	       text[digits + strspn(text + digits, "kmgKMG%")] == '\0';
}

static bool is_mode(const char *text)
{
	size_t digits = strspn(text, "01234567");

	return digits >= 3 && digits <= 5 && text[digits] == '\0';
}

/* Part of a folder's name, with room for the host's behind it: a file name has 255 bytes. */
static bool is_owner(const char *text)
{
	size_t length = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._");

	return length > 0 && length <= 150 && text[length] == '\0' && text[0] != '.';
}

/* Takes one option into the mount; returns false where the word is unknown or its value is not what it has to be. */
static bool take_option(struct plan_mount *mount, const char *word)
{
	const struct { const char *name; bool *flag; bool allowed; } flags[] = {
		{ "ro", &mount->read_only, is_mount(mount->kind) },
		{ "nosuid", &mount->no_suid, is_mount(mount->kind) },
		{ "nodev", &mount->no_dev, is_mount(mount->kind) },
		{ "noexec", &mount->no_exec, is_mount(mount->kind) },
		{ "optional", &mount->optional, mount->kind != PLAN_ROOT && is_mount(mount->kind) },
		{ "unmasked", &mount->unmasked, mount->kind == PLAN_PROC },
		{ "minimal", &mount->minimal, mount->kind == PLAN_DEV },
		{ "last", &mount->last, mount->kind == PLAN_PATH },
	};

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		if (strcmp(word, flags[i].name) == 0) {
			*flags[i].flag = flags[i].allowed;
			return flags[i].allowed;
		}
	}
	if ((mount->kind == PLAN_TMPFS || mount->kind == PLAN_DEV) && strncmp(word, "size=", 5) == 0) {
		mount->size = word + 5;
		return is_size(mount->size);
	}
	if ((mount->kind == PLAN_TMPFS || mount->kind == PLAN_SCRATCH) && strncmp(word, "mode=", 5) == 0) {
		mount->mode = word + 5;
		return is_mode(mount->mode);
	}
	if (mount->kind == PLAN_SCRATCH && strncmp(word, "owner=", 6) == 0) {
		mount->owner = word + 6;
		return is_owner(mount->owner);
	}
	return false;
}

static int parse_options(const struct plan *plan, struct plan_mount *mount, char *options, struct report *report)
{
	char *word;

	if (strcmp(options, "-") == 0)
		return 0;
	while ((word = strsep(&options, ",")) != NULL) {
		if (!take_option(mount, word))
			return report_fail(report, "plan %s line %d: option \"%.60s\" does not fit kind \"%s\"", plan->path,
					   mount->line, word, plan_kind_name(mount->kind));
	}
	return 0;
}

static bool kind_has_source(enum plan_kind kind)
{
	return kind == PLAN_ROOT || kind == PLAN_BIND || kind == PLAN_RBIND || kind == PLAN_SCRATCH || kind == PLAN_GPUS;
}

/* The pod's own folder that a kind stands for may be named as its source, for readers; nothing else may. */
static const char *implied_source(enum plan_kind kind)
{
	switch (kind) {
	case PLAN_PROC:
		return "/proc";
	case PLAN_DEV:
		return "/dev";
	case PLAN_SYS:
		return "/sys";
	default:
		return "";
	}
}

/* The name of a variable as shells take it. */
static int check_variable(const struct plan *plan, const struct plan_mount *mount, struct report *report)
{
	size_t length = strspn(mount->source, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789");

	if (length == 0 || mount->source[length] != '\0' || strchr("0123456789", mount->source[0]) != NULL)
		return report_fail(report, "plan %s line %d: \"%.60s\" is no name of a variable", plan->path, mount->line,
				   mount->source);
	if (strchr(mount->target, ':') != NULL)
		return report_fail(report, "plan %s line %d: target \"%.200s\" contains \":\"", plan->path, mount->line,
				   mount->target);
	return 0;
}

static int check_paths(const struct plan *plan, const struct plan_mount *mount, struct report *report)
{
	const char *problem;

	if (mount->kind == PLAN_PATH && check_variable(plan, mount, report) < 0)
		return -1;
	if (kind_has_source(mount->kind)) {
		problem = path_problem(mount->source);
		if (problem)
			return report_fail(report, "plan %s line %d: source \"%.200s\" %s", plan->path, mount->line,
					   mount->source, problem);
	} else if (mount->source[0] != '\0' && mount->kind != PLAN_PATH) {
		return report_fail(report, "plan %s line %d: kind \"%s\" takes no source, but has \"%.200s\"", plan->path,
				   mount->line, plan_kind_name(mount->kind), mount->source);
	}
	problem = path_problem(mount->target);
	if (problem)
		return report_fail(report, "plan %s line %d: target \"%.200s\" %s", plan->path, mount->line, mount->target,
				   problem);
	return 0;
}

/* A pattern of devices belongs to the private /dev that an earlier line makes. */
static int check_gpus(const struct plan *plan, const struct plan_mount *mount, struct report *report)
{
	const struct plan_mount *dev = plan_find(plan, PLAN_DEV);

	if (dev == NULL || strcmp(dev->target, mount->target) != 0)
		return report_fail(report, "plan %s line %d: target \"%.200s\" is not that of an earlier line of kind \"dev\"",
				   plan->path, mount->line, mount->target);
	if (strncmp(mount->source, "/dev/", 5) != 0)
		return report_fail(report, "plan %s line %d: pattern \"%.200s\" does not begin with /dev/", plan->path,
				   mount->line, mount->source);
	return 0;
}

static int check_place(const struct plan *plan, const struct plan_mount *mount, struct report *report)
{
	bool is_first = plan->count == 0;
	bool is_slash = strcmp(mount->target, "/") == 0;

	if (is_first && (mount->kind != PLAN_ROOT || !is_slash))
		return report_fail(report, "plan %s line %d: the first mount has to be kind \"root\" on \"/\"", plan->path,
				   mount->line);
	if (!is_first && (mount->kind == PLAN_ROOT || is_slash))
		return report_fail(report, "plan %s line %d: only the first mount can be the root", plan->path, mount->line);
	if (mount->kind == PLAN_GPUS)
		return check_gpus(plan, mount, report);
	if (mount->kind == PLAN_PATH)
		return 0;
	for (int i = 0; i < plan->count; i++) {
		if (is_mount(plan->mounts[i].kind) && strcmp(plan->mounts[i].target, mount->target) == 0)
			return report_fail(report, "plan %s line %d: target \"%.200s\" is already taken by line %d", plan->path,
					   mount->line, mount->target, plan->mounts[i].line);
	}
	return 0;
}

static int parse_line(struct plan *plan, char *line, int number, struct report *report)
{
	struct plan_mount mount = { .line = number };
	char *fields[FIELDS];
	char *rest = line;
	int count = 0;

	for (char *field; (field = strsep(&rest, "\t")) != NULL; count++) {
		if (count < FIELDS)
			fields[count] = field;
	}
	if (count != FIELDS)
		return report_fail(report, "plan %s line %d: has %d fields, not %d separated by tabs", plan->path, number,
				   count, FIELDS);
	if (parse_kind(fields[0], &mount.kind) < 0)
		return report_fail(report, "plan %s line %d: unknown kind \"%.60s\"", plan->path, number, fields[0]);
	mount.source = strcmp(fields[1], "-") == 0 ? "" : fields[1];
	if (strcmp(mount.source, implied_source(mount.kind)) == 0)
		mount.source = "";
	mount.target = fields[2];
	mount.why = strcmp(fields[4], "-") == 0 ? "" : fields[4];
	if (check_paths(plan, &mount, report) < 0 || check_place(plan, &mount, report) < 0 ||
	    parse_options(plan, &mount, fields[3], report) < 0)
		return -1;
	if (plan->count == PLAN_LINES_MAX)
		return report_fail(report, "plan %s line %d: more than %d mounts", plan->path, number, PLAN_LINES_MAX);
	plan->mounts[plan->count++] = mount;
	return 0;
}

static int parse_text(struct plan *plan, struct report *report)
{
	char *rest = plan->text;
	int number = 0;

	for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
		number++;
		if (line[0] == '\0' || line[0] == '#')
			continue;
		if (parse_line(plan, line, number, report) < 0)
			return -1;
	}
	if (plan->count == 0)
		return report_fail(report, "plan %s: holds no mount, not even the root", plan->path);
	return 0;
}

int plan_parse(const char *path, const char *text, size_t length, struct plan *plan, struct report *report)
{
	memset(plan, 0, sizeof(*plan));
	plan->path = path;
	if (memchr(text, '\0', length) != NULL)
		return report_fail(report, "plan %s: contains a NUL byte", path);
	plan->text = strndup(text, length);
	if (plan->text == NULL)
		return report_fail(report, "plan %s: cannot be kept in memory: %m", path);
	if (parse_text(plan, report) == 0)
		return 0;
	plan_free(plan);
	return -1;
}

int plan_read_as(const char *path, const char *name, struct plan *plan, struct report *report)
{
	char *text = malloc(PLAN_BYTES_MAX + 1);
	size_t length = 0;
	ssize_t got = -1;
	int result = -1;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd >= 0 && text != NULL) {
		while (length <= PLAN_BYTES_MAX &&
		       (got = read(fd, text + length, PLAN_BYTES_MAX + 1 - length)) > 0)
			length += (size_t)got;
	}
	if (fd < 0 || text == NULL || got < 0)
		report_fail(report, "plan %s: cannot be read: %m", name);
	else if (length > PLAN_BYTES_MAX)
		report_fail(report, "plan %s: is larger than %d bytes", name, PLAN_BYTES_MAX);
	else
		result = plan_parse(name, text, length, plan, report);
	if (fd >= 0 && close(fd) < 0 && result == 0) {
		plan_free(plan);
		result = report_fail(report, "plan %s: cannot be closed: %m", name);
	}
	free(text);
	return result;
}

int plan_read(const char *path, struct plan *plan, struct report *report)
{
	return plan_read_as(path, path, plan, report);
}

void plan_free(struct plan *plan)
{
	free(plan->text);
	plan->text = NULL;
	plan->count = 0;
}
