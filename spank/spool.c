/* The why is in spool.h. */
#define _GNU_SOURCE
#include "spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "scratch.h"
#include "target.h"

#define TOPOLOGY "hwloc_topo_" /* src/slurmd/slurmstepd/slurmstepd.c */

static bool is_of_job(const char *name, uint32_t job)
{
	const char *mark = strrchr(name, '_');
	char number[16];
	int length = snprintf(number, sizeof(number), "%u.", job); /* always fits */

	return mark != NULL && strncmp(mark + 1, number, (size_t)length) == 0;
}

/* The folder and the socket that mpi/pmix makes for a step; the folder is the user's. Source: src/plugins/mpi/pmix/pmixp_info.c. */
static bool is_of_pmix(const char *name, uint32_t job)
{
	char begin[40];
	int length = snprintf(begin, sizeof(begin), "stepd.slurm.pmix.%u.", job); /* always fits */
	const char *folder = begin + strlen("stepd.slurm.");

	return strncmp(name, begin, (size_t)length) == 0 || strncmp(name, folder, strlen(folder)) == 0;
}

/* Nobody listens. In doubt somebody does. */
static bool is_deserted(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool is_refused = false;

	if (fd < 0)
		return false;
	if (snprintf(address.sun_path, sizeof(address.sun_path), "%s", path) < (int)sizeof(address.sun_path))
		is_refused = connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 && errno == ECONNREFUSED;
	(void)close(fd);
	return is_refused;
}

static int clear_one(int folder_fd, const char *spool, const char *name, uint32_t job, struct report *report)
{
	struct stat status;
	char path[PATH_MAX];

	if (fstatat(folder_fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	(void)snprintf(path, sizeof(path), "%s/%s", spool, name); /* a longer path is no socket's */
	if (S_ISDIR(status.st_mode) && is_of_pmix(name, job))
		return scratch_remove(path, report);
	if (!(S_ISSOCK(status.st_mode) && is_deserted(path)) && !(S_ISREG(status.st_mode) && strncmp(name, TOPOLOGY, sizeof(TOPOLOGY) - 1) == 0))
		return 0;
	if (unlinkat(folder_fd, name, 0) < 0 && errno != ENOENT)
		return report_fail(report, "jail: cannot remove %s: %m", path);
	return 0;
}

int spool_close(const struct plan *plan, struct report *report)
{
	const char *spool = plan->spool != NULL ? plan->spool : SPOOL_DEFAULT_PATH;
	int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), result = 0;

	if (root_fd < 0)
		return report_fail(report, "jail: cannot open the root: %m");
	for (const struct plan_mount *each = plan->mounts; result == 0 && each < plan->mounts + plan->count; each++) {
		struct plan_mount closed = { .kind = each->kind, .line = each->line, .target = each->target, .read_only = true };
		int fd;

		if (strcmp(each->target, spool) != 0 || each->kind == PLAN_PATH)
			continue;
		fd = target_open(root_fd, each, report);
		result = fd < 0 ? -1 : target_restrict(fd, &closed, false, report);
		if (fd >= 0)
			(void)close(fd); /* nothing was written to it */
	}
	(void)close(root_fd); /* likewise */
	return result;
}

static unsigned long long mount_of(int at, const char *path)
{
	struct statx status;

	if (statx(at, path, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_MNT_ID, &status) < 0 || (status.stx_mask & STATX_MNT_ID) == 0)
		return 0;
	return status.stx_mnt_id;
}

unsigned long long spool_mount(const char *spool)
{
	return mount_of(AT_FDCWD, spool);
}

/* Sockets and pipes have mounts of their own, so that what is found is a file. */
static bool is_open_to_write(int fd, unsigned long long mount)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && (flags & O_PATH) == 0 && (flags & O_ACCMODE) != O_RDONLY && mount_of(fd, "") == mount;
}

int spool_check_files(unsigned long long mount, struct report *report)
{
	char path[64];
	DIR *folder;

	if (mount == 0)
		return 0;
	(void)snprintf(path, sizeof(path), "/proc/%d/fd", getpid()); /* always fits; not by /proc/self, which is a link */
	folder = opendir(path);
	if (folder == NULL)
		return report_fail(report, "jail: cannot list what slurmstepd has open: %m");
	for (struct dirent *entry; report->text[0] == '\0' && (entry = readdir(folder)) != NULL;)
		if (entry->d_name[0] != '.' && is_open_to_write((int)strtol(entry->d_name, NULL, 10), mount))
			report_fail(report, "jail: --output or --error leads into slurmd's spool, where only Slurm may write");
	(void)closedir(folder); /* nothing was written to it */
	return report->text[0] == '\0' ? 0 : -1;
}

int spool_clear(const char *spool, uint32_t job, struct report *report)
{
	DIR *folder = opendir(spool);
	char path[PATH_MAX];
	int result = 0;

	if (folder == NULL)
		return errno == ENOENT ? 0 : report_fail(report, "jail: cannot list %s: %m", spool);
	errno = 0;
	for (struct dirent *entry; result == 0 && (entry = readdir(folder)) != NULL; errno = 0)
		if (is_of_job(entry->d_name, job) || is_of_pmix(entry->d_name, job))
			result = clear_one(dirfd(folder), spool, entry->d_name, job, report);
	if (result == 0 && errno != 0)
		result = report_fail(report, "jail: cannot list %s: %m", spool);
	(void)closedir(folder); /* nothing was written to it */
	if (snprintf(path, sizeof(path), "%s/job%05u", spool, job) < (int)sizeof(path) && scratch_remove(path, report) < 0)
		result = -1;
	return result;
}
