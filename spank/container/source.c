/* The why is in source.h. */
#define _GNU_SOURCE
#include "source.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int too_long(const char *image, struct report *report)
{
	return report_fail(report, "container: --container-image=%.100s… is too long", image);
}

static int read_file(const char *path, struct source *source, struct report *report)
{
	char magic[4] = "";
	char *whole = realpath(path, NULL);
	int fd;
	bool fits;

	if (whole == NULL)
		return report_fail(report, "container: cannot find the image %s: %m", path);
	fits = strlen(whole) < sizeof(source->path);
	(void)snprintf(source->path, sizeof(source->path), "%s", whole);
	free(whole);
	if (!fits)
		return too_long(path, report);
	fd = open(source->path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, magic, sizeof(magic)) < 0) {
		report_fail(report, "container: cannot read the image %s: %m", path);
		if (fd >= 0)
			(void)close(fd);
		return -1;
	}
	(void)close(fd);
	source->kind = memcmp(magic, "hsqs", sizeof(magic)) == 0 ? SOURCE_SQUASHFS : SOURCE_ARCHIVE;
	return 0;
}

static bool is_registry(const char *word, size_t length)
{
	return memchr(word, '.', length) != NULL || memchr(word, ':', length) != NULL ||
	       (length == 9 && strncmp(word, "localhost", length) == 0);
}

/* `[USER@][REGISTRY#]IMAGE` or docker's form, without docker://. An @ behind a slash begins a digest. */
static int read_registry(const char *image, struct source *source, struct report *report)
{
	const char *at = strchr(image, '@'), *hash = strchr(image, '#'), *slash = strchr(image, '/');
	const char *host, *name;
	int host_length, length;

	if (at != NULL && (hash == NULL ? slash == NULL || at < slash : at < hash) && strncmp(at, "@sha256:", 8) != 0) {
		(void)snprintf(source->user, sizeof(source->user), "%.*s", (int)(at - image), image);
		image = at + 1;
		slash = strchr(image, '/');
	}
	if (hash != NULL) {
		host = image, host_length = (int)(hash - image), name = hash + 1;
	} else if (slash != NULL && is_registry(image, (size_t)(slash - image))) {
		host = image, host_length = (int)(slash - image), name = slash + 1;
	} else {
		host = "docker.io", host_length = 9, name = image;
	}
	if (host_length == 0 || name[0] == '\0')
		return report_fail(report, "container: --container-image=%s names no image", image);
	(void)snprintf(source->registry, sizeof(source->registry), "%.*s", host_length, host);
	length = snprintf(source->reference, sizeof(source->reference), "docker://%s/%s", source->registry, name);
	if (host_length >= (int)sizeof(source->registry) || length >= (int)sizeof(source->reference))
		return too_long(image, report);
	source->kind = SOURCE_REGISTRY;
	return 0;
}

int source_read(const char *image, struct source *source, struct report *report)
{
	static const char *const transports[] = { "oci:", "dir:", "docker-archive:", "oci-archive:" };

	*source = (struct source){ 0 };
	if (image[0] == '/' || image[0] == '.')
		return read_file(image, source, report);
	for (size_t i = 0; i < sizeof(transports) / sizeof(transports[0]); i++) {
		if (strncmp(image, transports[i], strlen(transports[i])) != 0)
			continue;
		source->kind = SOURCE_LAYOUT;
		if (snprintf(source->reference, sizeof(source->reference), "%s", image) >= (int)sizeof(source->reference))
			return too_long(image, report);
		return 0;
	}
	return read_registry(strncmp(image, "docker://", 9) == 0 ? image + 9 : image, source, report);
}

int source_pin(const struct source *source, const char *digest, char *pinned, unsigned int size, struct report *report)
{
	const char *name = source->reference + strlen("docker://");
	const char *slash = strrchr(name, '/'), *at = strchr(name, '@'), *tag = slash != NULL ? strchr(slash, ':') : NULL;
	const char *end = at != NULL && (tag == NULL || at < tag) ? at : tag != NULL ? tag : name + strlen(name);

	if (snprintf(pinned, size, "docker://%.*s@%s", (int)(end - name), name, digest) >= (int)size)
		return too_long(name, report);
	return 0;
}
