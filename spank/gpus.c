/* The why is in gpus.h. */
#define _GNU_SOURCE
#include "gpus.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The number at the end of a device's name, or -1. */
static long number_of(const char *name)
{
	size_t end = strlen(name), begin = end;

	while (begin > 0 && name[begin - 1] >= '0' && name[begin - 1] <= '9')
		begin--;
	return begin == end || end - begin > 9 ? -1 : strtol(name + begin, NULL, 10);
}

static bool is_in(const char *list, long number)
{
	while (*list != '\0') {
		char *end;
		long first = strtol(list, &end, 10), last = first;

		if (end == list)
			return false; /* not what Slurm writes: nothing more is given */
		if (*end == '-')
			last = strtol(end + 1, &end, 10);
		if (number >= first && number <= last)
			return true;
		list = *end == ',' ? end + 1 : end;
	}
	return false;
}

static int take(const char *path, struct gpus *gpus, struct report *report)
{
	struct mount_attr read_only = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID };
	struct stat status;

	if (lstat(path, &status) < 0 || !S_ISCHR(status.st_mode))
		return 0;
	if (gpus->count == GPUS_MAX)
		return report_fail(report, "jail: more than %d devices of a job", GPUS_MAX);
	gpus->devices[gpus->count].tree = (int)syscall(SYS_open_tree, AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (gpus->devices[gpus->count].tree < 0)
		return report_fail(report, "jail: cannot clone the device %s: %m", path);
	if (mount_setattr(gpus->devices[gpus->count].tree, "", AT_EMPTY_PATH, &read_only, sizeof(read_only)) < 0) { /* its mode is the pod's (dev.c) */
		report_fail(report, "jail: cannot make the mode of the device %s read-only: %m", path);
		(void)close(gpus->devices[gpus->count].tree); /* nothing was written to it */
		return -1;
	}
	if (snprintf(gpus->devices[gpus->count++].name, sizeof(gpus->devices[0].name), "%s", path + strlen("/dev/")) >=
	    (int)sizeof(gpus->devices[0].name))
		return report_fail(report, "jail: device name %s is too long", path);
	return 0;
}

/* Finds the numbers of the devices that a pattern matches. */
static int list_numbers(DIR *folder, const char *pattern, long *numbers, struct report *report)
{
	struct dirent *entry;
	struct stat status;
	int count = 0;

	while ((entry = readdir(folder)) != NULL) {
		if (fnmatch(pattern, entry->d_name, FNM_PERIOD) != 0 || number_of(entry->d_name) < 0 ||
		    fstatat(dirfd(folder), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISCHR(status.st_mode))
			continue;
		if (count == GPUS_MAX)
			return report_fail(report, "jail: more than %d devices match %s", GPUS_MAX, pattern);
		numbers[count++] = number_of(entry->d_name);
	}
	return count;
}

/* The place of a device among those that match, by their numbers. */
static long place_of(const char *name, const long *numbers, int count)
{
	long place = 0;

	for (int i = 0; i < count; i++)
		place += numbers[i] < number_of(name);
	return place;
}

/* Takes what one pattern matches; only its last part is a pattern. */
static int take_matching(const char *pattern, const char *list, struct gpus *gpus, struct report *report)
{
	const char *last = strrchr(pattern, '/') + 1;
	char folder_path[PATH_MAX], path[PATH_MAX];
	long numbers[GPUS_MAX];
	int count, result = 0;
	DIR *folder;

	(void)snprintf(folder_path, sizeof(folder_path), "%.*s", (int)(last - pattern), pattern); /* as long as the pattern */
	folder = opendir(folder_path);
	if (folder == NULL)
		return errno == ENOENT ? 0 : report_fail(report, "jail: cannot list %s: %m", folder_path);
	count = list_numbers(folder, last, numbers, report);
	rewinddir(folder);
	for (struct dirent *entry; count > 0 && result == 0 && (entry = readdir(folder)) != NULL;) {
		if (fnmatch(last, entry->d_name, FNM_PERIOD) != 0 || number_of(entry->d_name) < 0 ||
		    !is_in(list, place_of(entry->d_name, numbers, count)))
			continue;
		if (snprintf(path, sizeof(path), "%s%s", folder_path, entry->d_name) >= (int)sizeof(path))
			result = report_fail(report, "jail: device name %s is too long", entry->d_name);
		else
			result = take(path, gpus, report);
	}
	(void)closedir(folder); /* nothing was written to it */
	return count < 0 ? -1 : result;
}

static void close_all(struct gpus *gpus)
{
	for (int i = 0; i < gpus->count; i++)
		(void)close(gpus->devices[i].tree); /* nothing was written to it */
	gpus->count = 0;
}

int gpus_take(const struct plan *plan, const char *list, struct gpus *gpus, struct report *report)
{
	gpus->count = 0;
	for (int i = 0; i < plan->count; i++) {
		if (plan->mounts[i].kind != PLAN_GPUS || take_matching(plan->mounts[i].source, list, gpus, report) == 0)
			continue;
		close_all(gpus);
		return -1;
	}
	return 0;
}

/* Opens a name below a folder whose user is root of the jail: no link is followed. */
static int open_below(int folder_fd, const char *name)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS };

	return (int)syscall(SYS_openat2, folder_fd, name, &how, sizeof(how));
}

/* Makes and opens the file that a device goes onto. */
static int open_point(int dev_fd, const char *name)
{
	const char *slash = strrchr(name, '/');
	char folder[256];
	int folder_fd, fd;

	if (slash == NULL) {
		if (mknodat(dev_fd, name, S_IFREG | 0644, 0) < 0 && errno != EEXIST)
			return -1;
		return open_below(dev_fd, name);
	}
	(void)snprintf(folder, sizeof(folder), "%.*s", (int)(slash - name), name); /* shorter than the name */
	if (mkdirat(dev_fd, folder, 0755) < 0 && errno != EEXIST)
		return -1;
	folder_fd = open_below(dev_fd, folder);
	if (folder_fd < 0)
		return -1;
	fd = mknodat(folder_fd, slash + 1, S_IFREG | 0644, 0) < 0 && errno != EEXIST ? -1 : open_below(folder_fd, slash + 1);
	(void)close(folder_fd); /* nothing was written to it */
	return fd;
}

static int give(int dev_fd, const char *name, int tree, struct report *report)
{
	int fd = open_point(dev_fd, name);
	struct stat status;
	int result = 0;

	if (fd < 0 || fstat(fd, &status) < 0)
		result = report_fail(report, "jail: cannot create a mount point for the device %s: %m", name);
	else if (!S_ISCHR(status.st_mode) && !S_ISREG(status.st_mode))
		result = report_fail(report, "jail: /dev/%s of the job is neither a device nor a mount point", name);
	else if (S_ISREG(status.st_mode) &&
		 syscall(SYS_move_mount, tree, "", fd, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		result = report_fail(report, "jail: cannot put the device %s into the job's /dev: %m", name);
	if (fd >= 0)
		(void)close(fd); /* nothing was written to it */
	return result;
}

int gpus_give(struct gpus *gpus, const struct plan *plan, const struct holder *holder, struct report *report)
{
	const struct plan_mount *dev = plan_find(plan, PLAN_DEV);
	int dev_fd = -1, result = -1;

	if (gpus->count == 0 || dev == NULL)
		return 0;
	if (holder_enter_inner(holder, report) == 0) {
		dev_fd = open(dev->target, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		result = dev_fd < 0 ? report_fail(report, "jail: cannot open %s of the job: %m", dev->target) : 0;
	}
	for (int i = 0; result == 0 && i < gpus->count; i++)
		result = give(dev_fd, gpus->devices[i].name, gpus->devices[i].tree, report);
	if (dev_fd >= 0)
		(void)close(dev_fd); /* nothing was written to it */
	close_all(gpus);
	return result;
}

static int by_number(const void *one, const void *other)
{
	long first = *(const long *)one, second = *(const long *)other;

	return (first > second) - (first < second);
}

/* The numbers of the devices here that a pattern matches, in order; their count, -1 where they cannot be told. */
static int numbers_here(const char *pattern, long *numbers)
{
	const char *last = strrchr(pattern, '/') + 1;
	struct report ignored = { "" };
	char folder_path[PATH_MAX];
	DIR *folder;
	int count;

	(void)snprintf(folder_path, sizeof(folder_path), "%.*s", (int)(last - pattern), pattern); /* as long as the pattern */
	folder = opendir(folder_path);
	if (folder == NULL)
		return -1;
	count = list_numbers(folder, last, numbers, &ignored);
	(void)closedir(folder); /* nothing was written to it */
	if (count > 0)
		qsort(numbers, (size_t)count, sizeof(numbers[0]), by_number);
	return count;
}

void gpus_of_pod(const struct plan *plan, struct gpus_pod *pod)
{
	int lines = 0;

	for (int i = 0; i < plan->count; i++)
		if (plan->mounts[i].kind == PLAN_GPUS && ++lines == 1)
			pod->pattern = plan->mounts[i].source;
	pod->count = lines == 1 ? numbers_here(pod->pattern, pod->numbers) : 0;
}

static int place_in(const long *numbers, int count, long number)
{
	for (int i = 0; i < count; i++)
		if (numbers[i] == number)
			return i;
	return -1;
}

bool gpus_count_anew(const struct gpus_pod *pod, const char *list, char *value, size_t size)
{
	long here[GPUS_MAX];
	int count = pod->count > 0 ? numbers_here(pod->pattern, here) : -1;
	size_t used = 0;

	if (count < 0 || list[0] == '\0')
		return false;
	for (;; list++) {
		char *end;
		long place = strtol(list, &end, 10);
		int found, length;

		if (end == list || list[0] < '0' || list[0] > '9' || place >= pod->count || (*end != ',' && *end != '\0'))
			return false; /* the name of a device, or what a user wrote */
		found = place_in(here, count, pod->numbers[place]);
		length = found < 0 ? -1 : snprintf(value + used, size - used, "%s%d", used > 0 ? "," : "", found);
		if (length < 0 || (size_t)length >= size - used)
			return false;
		used += (size_t)length;
		list = end;
		if (*list == '\0')
			return true;
	}
}
