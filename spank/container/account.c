/* The why is in account.h. */
#define _GNU_SOURCE
#include "account.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mount_points.h"

/* Whether a line's third field is the number. */
static bool has_id(FILE *file, unsigned int id)
{
	char *line = NULL;
	size_t size = 0;
	bool found = false;

	while (!found && getline(&line, &size, file) > 0) {
		unsigned int number;

		found = sscanf(line, "%*[^:]:%*[^:]:%u:", &number) == 1 && number == id;
	}
	free(line);
	return found;
}

static int add_line(int root_fd, const char *path, unsigned int id, const char *line, struct report *report)
{
	int fd = mount_points_open(root_fd, path, O_RDWR | O_CREAT | O_APPEND);
	FILE *file = fd >= 0 ? fdopen(fd, "r+e") : NULL;
	bool failed;

	if (file == NULL)
		return report_fail(report, "container: cannot open %s in the container: %m", path);
	failed = !has_id(file, id) && fprintf(file, "%s\n", line) < 0;
	if (fclose(file) != 0 || failed)
		return report_fail(report, "container: cannot write %s in the container: %m", path);
	return 0;
}

/* Slurm's commands look up SlurmUser by its name before they do anything. */
static int add_slurm(int root_fd, struct report *report)
{
	const struct passwd *slurm = getpwnam("slurm");
	char line[256];

	int fd = mount_points_make(root_fd, "/etc", true, report);

	if (fd < 0)
		return -1;
	(void)close(fd);
	if (slurm == NULL)
		return 0;
	(void)snprintf(line, sizeof(line), "slurm:x:%u:%u::/nonexistent:/usr/sbin/nologin", slurm->pw_uid, slurm->pw_gid);
	return add_line(root_fd, "/etc/passwd", slurm->pw_uid, line, report);
}

/* Its own image has none, or that of the machine that built it. */
static int write_hostname(int root_fd, struct report *report)
{
	char name[72] = "";
	int fd = mount_points_open(root_fd, "/etc/hostname", O_WRONLY | O_CREAT | O_TRUNC);

	(void)gethostname(name, 65);
	(void)strcat(name, "\n");
	if (fd < 0 || write(fd, name, strlen(name)) < 0 || close(fd) < 0)
		return report_fail(report, "container: cannot write /etc/hostname in the container: %m");
	return 0;
}

int account_add(int root_fd, struct report *report)
{
	/* No password, and not "x": that would ask for a line in /etc/shadow, and sshd's PAM refuses an account without. */
	/* The order matters: each look-up overwrites what the last one returned. */
	int slurm = add_slurm(root_fd, report);
	const struct passwd *user = getpwuid(getuid());
	const char *name = user != NULL ? user->pw_name : getenv("USER"), *home = user != NULL ? user->pw_dir : getenv("HOME");
	const char *shell = "/bin/sh";
	char line[1024], path[512];
	int fd;

	if (slurm < 0 || write_hostname(root_fd, report) < 0)
		return -1;
	if (user != NULL && user->pw_shell[0] == '/' && (fd = mount_points_open(root_fd, user->pw_shell, O_PATH)) >= 0) {
		(void)close(fd);
		shell = user->pw_shell;
	}
	(void)snprintf(path, sizeof(path), "%s", name != NULL ? name : "user");
	(void)snprintf(line, sizeof(line), "%.200s:*:%u:%u::%.500s:%.200s", path, getuid(), getgid(), home != NULL ? home : "/",
		       shell);
	if (add_line(root_fd, "/etc/passwd", getuid(), line, report) < 0)
		return -1;
	const struct group *group = getgrgid(getgid());

	(void)snprintf(line, sizeof(line), "%.200s:x:%u:", group != NULL ? group->gr_name : path, getgid());
	return add_line(root_fd, "/etc/group", getgid(), line, report);
}
