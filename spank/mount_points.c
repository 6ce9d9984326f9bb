/* The why is in mount_points.h. */
#define _GNU_SOURCE
#include "mount_points.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "target.h"

static bool is_below(const char *path, const char *above)
{
	size_t length = strlen(above);

	return strcmp(above, "/") == 0 || (strncmp(path, above, length) == 0 && path[length] == '/');
}

const struct plan_mount *mount_points_holder(const struct plan *plan, const struct plan_mount *entry)
{
	const struct plan_mount *holder = &plan->mounts[0];

	for (const struct plan_mount *each = plan->mounts; each != entry; each++)
		if (is_below(entry->target, each->target) && strlen(each->target) >= strlen(holder->target))
			holder = each;
	return holder;
}

/* Whether the source is a folder; a kind without a source always goes onto one. */
static bool needs_folder(const struct plan_mount *entry)
{
	struct stat status;

	return entry->source[0] == '\0' || stat(entry->source, &status) < 0 || S_ISDIR(status.st_mode);
}

/* Makes one part of the path and opens it; closes `parent_fd`. */
static int make_part(int parent_fd, const char *name, bool is_folder, const struct plan_mount *entry,
		     struct report *report)
{
	int made = is_folder ? mkdirat(parent_fd, name, 0755) : mknodat(parent_fd, name, S_IFREG | 0644, 0);
	int fd = -1;

	if (made < 0 && errno != EEXIST)
		report_fail(report, "jail: cannot make %s for %s (plan line %d): %m", name, entry->target, entry->line);
	else if ((fd = openat(parent_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC)) < 0)
		report_fail(report, "jail: cannot open %s for %s (plan line %d): %m", name, entry->target, entry->line);
	if (close(parent_fd) < 0)
		report_fail(report, "jail: cannot close the folder of %s (plan line %d): %m", entry->target, entry->line);
	return fd;
}

int mount_points_make(int root_fd, const struct plan *plan, const struct plan_mount *entry, struct report *report)
{
	const struct plan_mount *holder = mount_points_holder(plan, entry);
	char below[PATH_MAX];
	char *rest = below, *part;
	int fd;

	if (holder->kind != PLAN_TMPFS)
		return 0;
	fd = target_open(root_fd, holder, report);
	/* The plan's reader has seen that every path is shorter than PATH_MAX. */
	(void)strcpy(below, entry->target + strlen(holder->target) + 1);
	while (fd >= 0 && (part = strsep(&rest, "/")) != NULL)
		fd = make_part(fd, part, rest != NULL || needs_folder(entry), entry, report);
	if (fd < 0)
		return -1;
	if (close(fd) < 0)
		return report_fail(report, "jail: cannot close %s (plan line %d): %m", entry->target, entry->line);
	return 0;
}
