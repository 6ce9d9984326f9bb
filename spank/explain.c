/* The why is in explain.h. */
#define _GNU_SOURCE
#include "explain.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "caps.h"
#include "mount_points.h"
#include "target.h"

static const char *source_words(const struct plan_mount *entry)
{
	switch (entry->kind) {
	case PLAN_ROOT:
	case PLAN_BIND:
	case PLAN_RBIND:
		return entry->source;
	case PLAN_TMPFS:
		return "new memory file system";
	case PLAN_PROC:
		return entry->unmasked ? "new proc, unmasked" : "new proc";
	case PLAN_DEV:
		return entry->minimal ? "new device folder, basic nodes" : "new device folder, with the pod's devices";
	case PLAN_SYS:
		return "the pod's /sys";
	case PLAN_SCRATCH:
		return entry->owner ? "a folder of each job, below its source, in one of this node" : "a folder of each job, below its source";
	case PLAN_GPUS:
	case PLAN_PATH:
		return entry->source;
	}
	return "?";
}

static int print_mount(const struct plan_mount *entry, FILE *out)
{
	return fprintf(out, "%-5s %s <- %s%s%s%s%s%s%s%s%s%s%s%s%s%s%s\n", plan_kind_name(entry->kind), entry->target,
		       source_words(entry), entry->read_only ? " ro" : "", entry->no_suid ? " nosuid" : "",
		       entry->no_dev ? " nodev" : "", entry->no_exec ? " noexec" : "", entry->optional ? " optional" : "", entry->last ? " last" : "",
		       entry->size ? " size=" : "", entry->size ? entry->size : "", entry->mode ? " mode=" : "",
		       entry->mode ? entry->mode : "", entry->owner ? " owner=" : "", entry->owner ? entry->owner : "", entry->why[0] ? "  # " : "", entry->why);
}

int explain_plan(const struct plan *plan, FILE *out, struct report *report)
{
	bool is_printed = true;

	for (int i = 0; i < plan->count; i++)
		is_printed &= print_mount(&plan->mounts[i], out) >= 0;
	is_printed &= fprintf(out, "root in the jail keeps:") >= 0;
	for (int n = 0; caps_kept_name(n) != NULL; n++)
		is_printed &= fprintf(out, " %s", caps_kept_name(n)) >= 0;
	is_printed &= fprintf(out, "\n") >= 0 && fflush(out) == 0;
	return is_printed ? 0 : report_fail(report, "jail: cannot print: %m");
}

/* "ok", "skip", or NULL with a sentence. A target below another mount of the plan can only be seen once that is made. */
static const char *verdict(const struct plan *plan, const struct plan_mount *entry, int root_fd, struct report *report)
{
	struct stat status;
	int fd;

	if (entry->kind == PLAN_GPUS)
		return "ok, what a job is given";
	if (entry->kind == PLAN_PATH)
		return "ok, a variable";
	if (entry->source[0] != '\0' && stat(entry->source, &status) < 0) {
		if (errno == ENOENT && entry->optional)
			return "skip";
		report_fail(report, "jail: cannot find %s for %s (plan line %d): %m", entry->source, entry->target,
			    entry->line);
		return NULL;
	}
	if (mount_points_holder(plan, entry) != &plan->mounts[0])
		return "ok, below an earlier mount";
	fd = target_open(root_fd, entry, report);
	if (fd < 0)
		return NULL;
	return close(fd) < 0 ? NULL : "ok";
}

int explain_check(const struct plan *plan, FILE *out, struct report *report)
{
	const struct plan_mount *root = &plan->mounts[0];
	int root_fd = open(root->source, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int result = 0;

	if (root_fd < 0)
		return report_fail(report, "jail: cannot open the root %s (plan line %d): %m", root->source, root->line);
	for (int i = 0; i < plan->count; i++) {
		struct report own = { "" };
		const char *word = verdict(plan, &plan->mounts[i], root_fd, &own);

		if (fprintf(out, "line %d: %s: %s\n", plan->mounts[i].line, plan->mounts[i].target, word ? word : own.text) < 0)
			result = report_fail(report, "jail: cannot print: %m");
		if (word == NULL)
			result = report_fail(report, "%s", own.text);
	}
	if (close(root_fd) < 0)
		return report_fail(report, "jail: cannot close the root %s: %m", root->source);
	return result;
}
