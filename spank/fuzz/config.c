/* What an image says of its process: our records, or enroot's /etc/environment and /etc/rc (../container/config.c). */
#define _GNU_SOURCE
#include "fuzz.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../container/config.h"

const char *const fuzz_words[] = { "EPATH=/usr/bin", "W/work", "P/entry", "Csh", "NAME=value\n", "# comment\n", "cd \"/work\" && unset OLDPWD", "cd \"", NULL };

static void put(int folder, const char *path, const uint8_t *data, size_t size)
{
	int fd = openat(folder, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	HOLDS(fd >= 0 && write(fd, data, size) == (ssize_t)size && close(fd) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int root = -1;
	char folder[] = "fuzz-XXXXXX";
	struct report report = { "" };
	struct config config;

	if (root < 0) {
		HOLDS(mkdtemp(folder) != NULL && (root = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC)) >= 0);
		HOLDS(mkdirat(root, "etc", 0700) == 0);
	}
	(void)unlinkat(root, CONFIG_FILE + 1, 0);
	if (size > 0 && data[0] % 2)
		put(root, CONFIG_FILE + 1, data + 1, size - 1);
	else
		put(root, "etc/environment", data, size), put(root, "etc/rc", data, size);
	if (config_read(root, &config, &report) == 0) {
		HOLDS(config.size == 0 || config.records[config.size - 1] == '\0');
		for (const char *kind = "EWPC"; *kind != '\0'; kind++)
			for (int i = 0; config_get(&config, *kind, i) != NULL; i++)
				HOLDS(strlen(config_get(&config, *kind, i)) < config.size);
	}
	free(config.records);
	return 0;
}
