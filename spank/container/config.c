/* The why is in config.h. */
#define _GNU_SOURCE
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mount_points.h"

enum { CONFIG_MAX = 1 << 20 };

int config_add(struct config *config, char kind, const char *text, struct report *report)
{
	size_t length = strlen(text) + 2;
	char *more;

	if (config->size + length > CONFIG_MAX)
		return report_fail(report, "container: the image's environment is longer than %d bytes", CONFIG_MAX);
	more = realloc(config->records, config->size + length);
	if (more == NULL)
		return report_fail(report, "container: no memory for the image's environment");
	more[config->size] = kind;
	(void)memcpy(more + config->size + 1, text, length - 1);
	config->records = more;
	config->size += (unsigned int)length;
	return 0;
}

const char *config_get(const struct config *config, char kind, int n)
{
	const char *end = config->records + config->size;

	for (const char *record = config->records; record < end; record += strlen(record) + 1)
		if (record[0] == kind && n-- == 0)
			return record + 1;
	return NULL;
}

/* Lines `NAME=VALUE`; blank ones, comments and anything else are not for us. */
static int add_environment_line(struct config *config, const char *line, struct report *report)
{
	const char *equals = strchr(line, '=');

	if (equals == NULL || equals == line || strcspn(line, " #\t\"'") < (size_t)(equals - line))
		return 0;
	return config_add(config, 'E', line, report);
}

/* enroot's /etc/rc has a line `cd "FOLDER" && unset OLDPWD || exit 1`. */
static int add_rc_line(struct config *config, const char *line, struct report *report)
{
	const char *from = strstr(line, "cd \"");
	const char *to = from ? strchr(from + 4, '"') : NULL;
	char folder[1024];

	if (to == NULL || from[4] != '/')
		return 0;
	(void)snprintf(folder, sizeof(folder), "%.*s", (int)(to - from - 4), from + 4);
	return config_add(config, 'W', folder, report);
}

static int read_lines(int root_fd, const char *path, struct config *config,
		      int (*take)(struct config *config, const char *line, struct report *report), struct report *report)
{
	int fd = mount_points_open(root_fd, path, O_RDONLY);
	FILE *file = fd >= 0 ? fdopen(fd, "re") : NULL;
	char *line = NULL;
	size_t size = 0;
	int result = 0;

	while (file != NULL && result == 0 && getline(&line, &size, file) > 0) {
		line[strcspn(line, "\n")] = '\0';
		result = take(config, line, report);
	}
	free(line);
	if (file != NULL)
		(void)fclose(file);
	return result;
}

int config_read(int root_fd, struct config *config, struct report *report)
{
	int fd = mount_points_open(root_fd, CONFIG_FILE, O_RDONLY);
	struct stat status;
	ssize_t length;

	*config = (struct config){ 0 };
	if (fd < 0) {
		if (read_lines(root_fd, "/etc/environment", config, add_environment_line, report) < 0)
			return -1;
		return read_lines(root_fd, "/etc/rc", config, add_rc_line, report);
	}
	if (fstat(fd, &status) < 0 || status.st_size > CONFIG_MAX ||
	    (config->records = malloc((size_t)status.st_size + 1)) == NULL ||
	    (length = read(fd, config->records, (size_t)status.st_size)) < 0) {
		report_fail(report, "container: cannot read the image's " CONFIG_FILE ": %m");
		(void)close(fd);
		return -1;
	}
	(void)close(fd);
	/* skopeo ends with a newline; what stands behind the last NUL is not a record. */
	while (length > 0 && config->records[length - 1] != '\0')
		length--;
	config->size = (unsigned int)length;
	return 0;
}
