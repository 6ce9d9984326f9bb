/* The why is in root.h. */
#define _GNU_SOURCE
#include "root.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "account.h"
#include "bind.h"
#include "mount_points.h"

#define RO MOUNT_ATTR_RDONLY
#define ROOT_HOME "/root"

/* What a container of ours always has, where the jail has it. The GPU's driver is mounted below the bundle. */
static const struct {
	const char *path;
	uint64_t set;
} system_binds[] = {
	{ "/proc", 0 },
	{ "/sys", 0 },
	{ "/dev", 0 },
	{ "/tmp", 0 },
	{ "/etc/resolv.conf", RO },
	{ "/etc/hosts", RO },
	{ "/etc/localtime", RO },
	{ "/etc/slurm", RO },
	{ "/run/slurm", RO },
	{ "/run/munge", RO },
	{ "/var/spool/slurmd", 0 },
	{ "/opt/soperator", RO },
};

static void fd_path(char *path, int fd)
{
	(void)snprintf(path, 32, "/proc/self/fd/%d", fd);
}

int root_stage(const struct storage_paths *paths, const char *tree, struct report *report)
{
	char root[STORAGE_PATHS_MAX + 128], options[4 * STORAGE_PATHS_MAX];
	static const char *const parts[] = { "upper", "work", "root" };
	int fd;

	for (int i = 0; i < 3; i++)
		if (storage_paths_join(root, paths->box, parts[i], report) < 0 || storage_paths_make(root, report) < 0)
			return -1;
	(void)chmod(root, 0755);
	if (snprintf(options, sizeof(options), "userxattr,lowerdir=%s,upperdir=%s/upper,workdir=%s/work", tree, paths->box,
		     paths->box) >= (int)sizeof(options))
		return report_fail(report, "container: the paths of the overlay are too long");
	if (mount("container", root, "overlay", 0, options) < 0)
		return report_fail(report, "container: cannot mount an overlay at %s (it needs Linux 5.11 and a local disk): %m",
				   root);
	fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd >= 0 ? fd : report_fail(report, "container: cannot open %s: %m", root);
}

static int restrict_mount(int root_fd, const char *target, uint64_t set, uint64_t clear, unsigned long propagation, bool deep,
			  struct report *report)
{
	struct mount_attr attr = { .attr_set = set, .attr_clr = clear, .propagation = propagation & ~(unsigned long)MS_REC };
	int fd, result;

	if (set == 0 && clear == 0 && propagation == 0)
		return 0;
	fd = mount_points_open(root_fd, target, O_PATH); /* anew: now it is the mount */
	if (fd < 0)
		return report_fail(report, "container: cannot open %s in the container: %m", target);
	result = (int)syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH | (deep ? AT_RECURSIVE : 0), &attr, sizeof(attr));
	if (result < 0)
		report_fail(report, "container: cannot set the flags of %s in the container: %m", target);
	(void)close(fd);
	return result;
}

static int bind_one(int root_fd, const struct bind *bind, struct report *report)
{
	char path[32];
	struct stat status;
	int fd, result;
	bool is_folder;

	if (stat(bind->source, &status) < 0)
		return bind->is_optional ? 0 : report_fail(report, "container: cannot mount %s, which is not in the jail: %m",
							   bind->source);
	is_folder = S_ISDIR(status.st_mode);
	fd = mount_points_make(root_fd, bind->target, is_folder, report);
	if (fd < 0)
		return -1;
	fd_path(path, fd);
	result = mount(bind->source, path, NULL, MS_BIND | (bind->is_flat ? 0 : MS_REC), NULL);
	if (result < 0)
		report_fail(report, "container: cannot mount %s at %s: %m", bind->source, bind->target);
	(void)close(fd);
	if (result < 0)
		return -1;
	return restrict_mount(root_fd, bind->target, bind->set, bind->clear, bind->propagation, !bind->is_flat, report);
}

static int tmpfs_one(int root_fd, const struct bind *bind, struct report *report)
{
	int fd = mount_points_make(root_fd, bind->target, true, report);
	char path[32];
	int result;

	if (fd < 0)
		return -1;
	fd_path(path, fd);
	result = mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV, bind->data[0] == ',' ? bind->data + 1 : "");
	if (result < 0)
		report_fail(report, "container: cannot mount a tmpfs at %s: %m", bind->target);
	(void)close(fd);
	return result < 0 ? -1 : restrict_mount(root_fd, bind->target, bind->set, bind->clear, bind->propagation, false, report);
}

static int umount_one(int root_fd, const struct bind *bind, struct report *report)
{
	int fd = mount_points_open(root_fd, bind->target, O_PATH);
	char path[32];
	int result;

	if (fd < 0)
		return errno == ENOENT ? 0 : report_fail(report, "container: cannot open %s in the container: %m", bind->target);
	fd_path(path, fd);
	result = umount2(path, MNT_DETACH);
	if (result < 0)
		report_fail(report, "container: cannot unmount %s: %m", bind->target);
	(void)close(fd);
	return result;
}

static int bind_system(int root_fd, struct report *report)
{
	for (size_t i = 0; i < sizeof(system_binds) / sizeof(system_binds[0]); i++) {
		struct bind bind = { .kind = BIND_PATH, .set = system_binds[i].set, .is_optional = true };

		(void)strcpy(bind.source, system_binds[i].path);
		(void)strcpy(bind.target, system_binds[i].path);
		if (bind_one(root_fd, &bind, report) < 0)
			return -1;
	}
	return 0;
}

/* What is shared by name with an IPC namespace, where the jail's /dev has a place for it. */
static int mount_ipc(int root_fd, struct report *report)
{
	static const struct {
		const char *path, *type, *data;
	} mounts[] = { { "/dev/shm", "tmpfs", "mode=1777" }, { "/dev/mqueue", "mqueue", "" } };

	for (size_t i = 0; i < sizeof(mounts) / sizeof(mounts[0]); i++) {
		int fd = mount_points_open(root_fd, mounts[i].path, O_PATH | O_DIRECTORY), result;
		char path[32];

		if (fd < 0)
			continue;
		fd_path(path, fd);
		result = mount(mounts[i].type, path, mounts[i].type, MS_NOSUID | MS_NODEV | MS_NOEXEC, mounts[i].data);
		if (result < 0)
			report_fail(report, "container: cannot mount %s in the container: %m", mounts[i].path);
		(void)close(fd);
		if (result < 0)
			return -1;
	}
	return 0;
}

static int bind_wanted(int root_fd, const char *list, struct report *report)
{
	struct bind bind;
	int got;

	while (list != NULL && (got = bind_next(&list, &bind, report)) != 0) {
		if (got < 0)
			return -1;
		got = bind.kind == BIND_TMPFS ? tmpfs_one(root_fd, &bind, report)
		      : bind.kind == BIND_UMOUNT ? umount_one(root_fd, &bind, report)
						 : bind_one(root_fd, &bind, report);
		if (got < 0)
			return -1;
	}
	return 0;
}

/* The overlay itself lies below /tmp, and came along with it. */
static int hide_overlay(int root_fd, const struct storage_paths *paths, struct report *report)
{
	struct bind bind = { .kind = BIND_UMOUNT };

	if (strncmp(paths->box, "/tmp/", 5) != 0)
		return 0;
	(void)snprintf(bind.target, sizeof(bind.target), "%s/root", paths->box);
	return umount_one(root_fd, &bind, report);
}

int root_set_home(const struct request *request, struct config *config, struct report *report)
{
	const char *home = request->remap_root == 1 ? ROOT_HOME : getenv("HOME"), *record;
	bool has_own = false;

	if (home == NULL || home[0] != '/')
		return 0;
	if (request->mount_home == 1)
		return config_add(config, 'H', home, report);
	if (request->remap_root != 1)
		return config_add(config, 'h', home, report);
	for (int i = 0; (record = config_get(config, 'E', i)) != NULL; i++)
		has_own |= strncmp(record, "HOME=", 5) == 0;
	return has_own ? 0 : config_add(config, 'E', "HOME=" ROOT_HOME, report);
}

/* The home of the jail, or an empty folder in its place: a program that looks for $HOME finds one. */
static int give_home(int root_fd, const char *home, const char *target, bool is_mounted, struct report *report)
{
	struct bind bind = { .kind = BIND_PATH };
	int fd;

	if (home == NULL || home[0] != '/' || home[1] == '\0' || strlen(home) >= sizeof(bind.source))
		return 0;
	if (is_mounted) {
		(void)strcpy(bind.source, home);
		(void)strcpy(bind.target, target);
		return bind_one(root_fd, &bind, report);
	}
	fd = mount_points_make(root_fd, target, true, report);
	if (fd >= 0)
		(void)close(fd);
	return fd < 0 ? -1 : 0;
}

/* Root in name has it where passwd says it is, which ssh and others look at, and at its own path, which scripts know. */
static int give_homes(int root_fd, const struct request *request, struct report *report)
{
	const char *home = getenv("HOME");

	if (give_home(root_fd, home, home, request->mount_home == 1, report) < 0)
		return -1;
	return request->remap_root == 1 ? give_home(root_fd, home, ROOT_HOME, request->mount_home == 1, report) : 0;
}

/*
 * apt changes to a user of its own for downloads and looks whether it did, which nobody can who is root in name only.
 * (Debian and its kin have the first file.)
 */
static int let_apt_be_root(int root_fd, struct report *report)
{
	static const char text[] = "// The container has only one user id, so apt cannot change its user.\nAPT::Sandbox::User \"root\";\n";
	int fd = mount_points_open(root_fd, "/etc/debian_version", O_PATH);

	if (fd < 0)
		return 0;
	(void)close(fd);
	fd = mount_points_make(root_fd, "/etc/apt/apt.conf.d", true, report);
	if (fd < 0)
		return -1;
	(void)close(fd);
	fd = mount_points_open(root_fd, "/etc/apt/apt.conf.d/99container-remap-root", O_WRONLY | O_CREAT | O_TRUNC);
	if (fd < 0 || write(fd, text, sizeof(text) - 1) < 0 || close(fd) < 0)
		return report_fail(report, "container: cannot write the configuration of apt in the container: %m");
	return 0;
}

static int move(int root_fd, struct report *report)
{
	if (fchdir(root_fd) < 0 || mount(".", "/", NULL, MS_MOVE, NULL) < 0 || chroot(".") < 0 || chdir("/") < 0)
		return report_fail(report, "container: cannot move to the container's root: %m");
	return 0;
}

int root_enter(int root_fd, const struct request *request, const struct config *config, const struct storage_paths *paths,
	       struct report *report)
{
	const char *folder = config_get(config, 'W', 0);
	int fd;

	if (account_add(root_fd, report) < 0 || bind_system(root_fd, report) < 0 ||
	    (request_unshared(request) & UNSHARE_IPC && mount_ipc(root_fd, report) < 0) || hide_overlay(root_fd, paths, report) < 0 ||
	    give_homes(root_fd, request, report) < 0 || (request->remap_root == 1 && let_apt_be_root(root_fd, report) < 0))
		return -1;
	if (folder != NULL && folder[0] == '/') {
		fd = mount_points_make(root_fd, folder, true, report);
		if (fd < 0)
			return -1;
		(void)close(fd);
	}
	if (bind_wanted(root_fd, request->mounts, report) < 0)
		return -1;
	if (request->writable == 0 && restrict_mount(root_fd, "/", RO, 0, 0, false, report) < 0)
		return -1;
	return move(root_fd, report);
}
