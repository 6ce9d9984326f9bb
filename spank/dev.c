/* The why is in dev.h. */
#define _GNU_SOURCE
#include "dev.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "target.h"

#define DEVPTS "newinstance,ptmxmode=0666,mode=0620,gid=5"
/* Of a job: all pods of the Node share kernel.pty.max, and a program with a fault would take them all. All users of a login node share one /dev. */
#define TERMINALS "256"

static const char *const basic_nodes[] = { "null", "zero", "full", "random", "urandom", "tty" };

/* Neither devices of a job nor of a pod: the machine itself, terminals, or folders that dev_fill makes anew. */
static const char *const left_out[] = {
	".*",	  "autofs", "block", "bsg",  "btrfs-control", "bus",  "char",	"console", "core",   "cpu",   "cpu_dma_latency",
	"disk",	  "dm-*",   "fd",    "hpet", "hugepages",     "hwrng", "initctl", "input",  "kmem",   "kmsg",  "log",
	"loop*",  "mapper", "mcelog", "mem",  "mqueue",	      "nvme*", "nvram",	"oldmem",  "port",   "psaux", "ptmx",
	"pts",	  "ptp*",   "rtc*",  "sd*",  "sg*",	      "shm",  "snapshot", "snd",   "stderr", "stdin", "stdout",
	"tty*",	  "uhid",   "uinput", "userfaultfd", "vcs*",  "vd*",  "vga_arbiter", "vhci", "watchdog*", "xconsole", "pps*",
	"tpm*",	  "sev*",   "mtd*",  "ipmi*", "gpiochip*",    "i2c-*", "spidev*", "raw*",
};

static const struct {
	const char *name, *mount_points_to;
} links[] = {
	{ "fd", "/proc/self/fd" },	     { "stdin", "/proc/self/fd/0" }, { "stdout", "/proc/self/fd/1" },
	{ "stderr", "/proc/self/fd/2" }, { "ptmx", "pts/ptmx" },
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static bool is_left_out(const char *name)
{
	for (size_t i = 0; i < COUNT(basic_nodes); i++)
		if (strcmp(name, basic_nodes[i]) == 0)
			return true;
	for (size_t i = 0; i < COUNT(left_out); i++)
		if (fnmatch(left_out[i], name, 0) == 0)
			return true;
	return false;
}

bool dev_is_gpu(const struct plan *plan, const char *name)
{
	for (int i = 0; i < plan->count; i++)
		if (plan->mounts[i].kind == PLAN_GPUS && fnmatch(plan->mounts[i].source + strlen("/dev/"), name, FNM_PATHNAME) == 0)
			return true;
	return false;
}

static bool holds_gpus(const struct plan *plan, const char *folder)
{
	size_t length = strlen(folder);

	for (int i = 0; i < plan->count; i++) {
		const char *pattern = plan->mounts[i].source + strlen("/dev/");

		if (plan->mounts[i].kind == PLAN_GPUS && strncmp(pattern, folder, length) == 0 && pattern[length] == '/')
			return true;
	}
	return false;
}

/* Makes the file or folder `name` that a mount can go onto, and opens it. */
static int make_point(int dev_fd, const char *name, bool is_folder, struct report *report)
{
	int fd;

	if (is_folder && mkdirat(dev_fd, name, 0755) < 0)
		return report_fail(report, "jail: cannot make folder %s in the private /dev: %m", name);
	if (!is_folder) {
		fd = openat(dev_fd, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
		if (fd < 0 || close(fd) < 0)
			return report_fail(report, "jail: cannot make file %s in the private /dev: %m", name);
	}
	fd = openat(dev_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return report_fail(report, "jail: cannot open %s in the private /dev: %m", name);
	return fd;
}

/* A device is the pod's, and its mode too: root of the jail writes to the device, and not to its mode or owner, which others have as well. */
static int close_node(int dev_fd, const char *name, bool is_folder, struct report *report)
{
	const struct plan_mount closed = { .target = "/dev", .read_only = true, .no_suid = true };
	int fd = openat(dev_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC); /* anew: now it is the mount */
	int result;

	if (fd < 0)
		return report_fail(report, "jail: cannot open /dev/%s: %m", name);
	result = target_restrict(fd, &closed, is_folder, report);
	if (close(fd) < 0)
		return report_fail(report, "jail: cannot close /dev/%s: %m", name);
	return result;
}

static int bind_node(int dev_fd, const char *name, bool is_folder, struct report *report)
{
	char source[300], target[32];
	int fd = make_point(dev_fd, name, is_folder, report);
	int result = 0;

	if (fd < 0)
		return -1;
	target_path(target, fd);
	if (snprintf(source, sizeof(source), "/dev/%s", name) >= (int)sizeof(source))
		result = report_fail(report, "jail: device name %s is too long", name);
	else if (mount(source, target, NULL, MS_BIND | (is_folder ? MS_REC : 0), NULL) < 0)
		result = report_fail(report, "jail: cannot bind %s into the private /dev: %m", source);
	if (close(fd) < 0)
		return report_fail(report, "jail: cannot close /dev/%s: %m", name);
	return result < 0 ? result : close_node(dev_fd, name, is_folder, report);
}

static int mount_in(int dev_fd, const char *name, const char *type, const char *options, struct report *report)
{
	char target[32];
	int fd = make_point(dev_fd, name, true, report);
	int result = 0;

	if (fd < 0)
		return -1;
	target_path(target, fd);
	if (mount(type, target, type, MS_NOSUID | (strcmp(type, "tmpfs") == 0 ? MS_NODEV : MS_NOEXEC), options) < 0)
		result = report_fail(report, "jail: cannot mount %s on /dev/%s: %m", type, name);
	if (close(fd) < 0)
		return report_fail(report, "jail: cannot close /dev/%s: %m", name);
	return result;
}

/* A folder with devices of jobs in it (/dev/dri) is made anew, with all its other devices. */
static int bind_others(int dev_fd, const struct plan *plan, const char *name, struct report *report)
{
	char path[300];
	struct stat status;
	DIR *folder;
	int fd, result = 0;

	if (snprintf(path, sizeof(path), "/dev/%s", name) >= (int)sizeof(path))
		return report_fail(report, "jail: device name %s is too long", name);
	fd = make_point(dev_fd, name, true, report);
	if (fd < 0)
		return -1;
	if (close(fd) < 0)
		return report_fail(report, "jail: cannot close /dev/%s: %m", name);
	folder = opendir(path);
	if (folder == NULL)
		return report_fail(report, "jail: cannot list %s: %m", path);
	for (struct dirent *entry; result == 0 && (entry = readdir(folder)) != NULL;) {
		if (snprintf(path, sizeof(path), "%s/%s", name, entry->d_name) >= (int)sizeof(path))
			result = report_fail(report, "jail: device name %s is too long", entry->d_name);
		else if (fstatat(dirfd(folder), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISCHR(status.st_mode) &&
			 !dev_is_gpu(plan, path))
			result = bind_node(dev_fd, path, false, report);
	}
	(void)closedir(folder); /* nothing was written to it */
	return result;
}

static int bind_given(int dev_fd, const struct plan *plan, const char *name, struct report *report)
{
	char path[300];
	struct stat status;

	if (snprintf(path, sizeof(path), "/dev/%s", name) >= (int)sizeof(path))
		return report_fail(report, "jail: device name %s is too long", name);
	if (lstat(path, &status) < 0)
		return errno == ENOENT ? 0 : report_fail(report, "jail: cannot look at %s: %m", path);
	if (S_ISCHR(status.st_mode))
		return dev_is_gpu(plan, name) ? 0 : bind_node(dev_fd, name, false, report);
	if (S_ISDIR(status.st_mode))
		return holds_gpus(plan, name) ? bind_others(dev_fd, plan, name, report) : bind_node(dev_fd, name, true, report);
	return 0;
}

static int bind_all_given(int dev_fd, const struct plan *plan, struct report *report)
{
	DIR *folder = opendir("/dev");
	int result = 0;

	if (folder == NULL)
		return report_fail(report, "jail: cannot list /dev: %m");
	errno = 0;
	for (struct dirent *entry; result == 0 && (entry = readdir(folder)) != NULL; errno = 0) {
		if (!is_left_out(entry->d_name))
			result = bind_given(dev_fd, plan, entry->d_name, report);
	}
	if (result == 0 && errno != 0)
		result = report_fail(report, "jail: cannot list /dev: %m");
	if (closedir(folder) < 0 && result == 0)
		result = report_fail(report, "jail: cannot close /dev: %m");
	return result;
}

int dev_fill(int dev_fd, const struct plan *plan, const struct plan_mount *entry, struct report *report)
{
	const char *pts = plan->job == 0 ? DEVPTS : DEVPTS ",max=" TERMINALS;
	char shm[64];

	if (snprintf(shm, sizeof(shm), "mode=1777%s%s", entry->size ? ",size=" : "", entry->size ? entry->size : "") >=
	    (int)sizeof(shm))
		return report_fail(report, "jail: the size of /dev/shm is too long (plan line %d)", entry->line);
	for (size_t i = 0; i < COUNT(basic_nodes); i++)
		if (bind_node(dev_fd, basic_nodes[i], false, report) < 0)
			return -1;
	for (size_t i = 0; i < COUNT(links); i++)
		if (symlinkat(links[i].mount_points_to, dev_fd, links[i].name) < 0)
			return report_fail(report, "jail: cannot link /dev/%s: %m", links[i].name);
	if (mount_in(dev_fd, "pts", "devpts", pts, report) < 0 ||
	    mount_in(dev_fd, "shm", "tmpfs", shm, report) < 0)
		return -1;
	return entry->minimal ? 0 : bind_all_given(dev_fd, plan, report);
}
