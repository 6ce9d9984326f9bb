/* The why is in credentials.h. */
#define _GNU_SOURCE
#include "credentials.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORD_MAX = 4096 };

struct entry {
	char machine[WORD_MAX], login[WORD_MAX], password[WORD_MAX];
};

static FILE *open_netrc(void)
{
	const char *folder = getenv("ENROOT_CONFIG_PATH"), *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	char path[4096];

	if (folder != NULL)
		(void)snprintf(path, sizeof(path), "%s/.credentials", folder);
	else if (config != NULL)
		(void)snprintf(path, sizeof(path), "%s/enroot/.credentials", config);
	else
		(void)snprintf(path, sizeof(path), "%s/.config/enroot/.credentials", home != NULL ? home : "");
	return fopen(path, "re");
}

/* `$NAME` and `${NAME}` stand for variables, as enroot has it. */
static void expand(char *word)
{
	char name[256];
	const char *value;

	if (sscanf(word, "$%255[A-Za-z0-9_]", name) != 1 && sscanf(word, "${%255[A-Za-z0-9_]}", name) != 1)
		return;
	value = getenv(name);
	if (value != NULL && strlen(value) < WORD_MAX)
		(void)strcpy(word, value);
}

static bool is_right(const struct entry *entry, const struct source *source)
{
	static const char *const hub[] = { "auth.docker.io", "registry-1.docker.io", "index.docker.io" };
	bool is_host = strcmp(entry->machine, source->registry) == 0;

	for (size_t i = 0; i < sizeof(hub) / sizeof(hub[0]); i++)
		is_host |= strcmp(source->registry, "docker.io") == 0 && strcmp(entry->machine, hub[i]) == 0;
	return is_host && entry->login[0] != '\0' && (source->user[0] == '\0' || strcmp(entry->login, source->user) == 0);
}

static bool find(FILE *netrc, const struct source *source, struct entry *entry)
{
	char word[WORD_MAX], value[WORD_MAX];

	*entry = (struct entry){ "", "", "" };
	while (fscanf(netrc, "%4095s", word) == 1) {
		if (strcmp(word, "machine") != 0 && strcmp(word, "login") != 0 && strcmp(word, "password") != 0)
			continue;
		if (fscanf(netrc, "%4095s", value) != 1)
			return false;
		if (strcmp(word, "machine") == 0) {
			*entry = (struct entry){ "", "", "" };
			(void)snprintf(entry->machine, sizeof(entry->machine), "%s", value);
			continue;
		}
		if (strcmp(word, "password") == 0)
			expand(value);
		(void)strcpy(word[0] == 'l' ? entry->login : entry->password, value);
		if (entry->password[0] != '\0' && is_right(entry, source))
			return true;
	}
	return false;
}

static void base64(const unsigned char *from, size_t length, char *to)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < length; i += 3) {
		unsigned int bits = (unsigned int)from[i] << 16 | (i + 1 < length ? (unsigned int)from[i + 1] << 8 : 0) |
				    (i + 2 < length ? from[i + 2] : 0);

		*to++ = digits[bits >> 18 & 63];
		*to++ = digits[bits >> 12 & 63];
		*to++ = i + 1 < length ? digits[bits >> 6 & 63] : '=';
		*to++ = i + 2 < length ? digits[bits & 63] : '=';
	}
	*to = '\0';
}

int credentials_write(const struct source *source, char *path, size_t size, struct report *report)
{
	FILE *netrc = open_netrc();
	static struct entry entry;
	static char pair[2 * WORD_MAX + 2], encoded[3 * WORD_MAX];
	bool found;
	int fd, length;

	if (netrc == NULL)
		return 0;
	found = find(netrc, source, &entry);
	(void)fclose(netrc);
	if (!found)
		return 0;
	length = snprintf(pair, sizeof(pair), "%s:%s", entry.login, entry.password);
	base64((const unsigned char *)pair, (size_t)length, encoded);
	if (snprintf(path, size, "/tmp/.container-auth-XXXXXX") >= (int)size || (fd = mkstemp(path)) < 0)
		return report_fail(report, "container: cannot make %s: %m", path);
	if (dprintf(fd, "{\"auths\":{\"%s\":{\"auth\":\"%s\"}}}\n", source->registry, encoded) < 0 || close(fd) < 0)
		return report_fail(report, "container: cannot write %s: %m", path);
	return 1;
}
