/* The why is in image.h. */
#define _GNU_SOURCE
#include "image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "credentials.h"
#include "fetch.h"
#include "program.h"
#include "source.h"
#include "image_cache.h"

enum { DIGEST_MAX = 160, STEPS_KEPT_S = 7 * 24 * 3600 };

static uint64_t hash(const char *text)
{
	uint64_t value = 0xcbf29ce484222325; /* FNV-1a: a name for a file, not a seal */

	for (; *text != '\0'; text++)
		value = (value ^ (unsigned char)*text) * 0x100000001b3;
	return value;
}

/* A file is known by where it is and when it was written: reading all of it to name it would take as long as unpacking. */
static int key_of_file(const char *path, char *key, struct report *report)
{
	struct stat status;

	if (stat(path, &status) < 0)
		return report_fail(report, "container: cannot look at the image %s: %m", path);
	(void)snprintf(key, DIGEST_MAX, "file-%016llx-%llx-%llx-%lld.%09ld", (unsigned long long)hash(path),
		       (unsigned long long)status.st_ino, (unsigned long long)status.st_size,
		       (long long)status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
	return 0;
}

/* What an earlier node of the same step found. */
static int recall(const char *path, char *digest)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length;

	if (fd < 0)
		return -1;
	length = read(fd, digest, DIGEST_MAX - 1);
	(void)close(fd);
	if (length <= 0)
		return -1;
	digest[length] = '\0';
	return 0;
}

static int remember(const char *path, const char *digest, struct report *report)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, digest, strlen(digest)) < 0 || close(fd) < 0)
		return report_fail(report, "container: cannot write %s: %m", path);
	return 0;
}

static bool is_digest(const char *text)
{
	return strncmp(text, "sha256:", 7) == 0 && strspn(text + 7, "0123456789abcdef") == 64 && text[71] == '\0';
}

/* The digest that the reference means now, for this step. */
static int resolve(const struct source *source, const struct storage_paths *paths, const char *step, char *digest,
		   struct report *report)
{
	char folder[STORAGE_PATHS_MAX + 128], path[STORAGE_PATHS_MAX + 128], name[96];
	const char *at = strstr(source->reference, "@sha256:");

	if (at != NULL && is_digest(at + 1)) {
		(void)strcpy(digest, at + 1);
		return 0;
	}
	if (storage_paths_join(folder, paths->cache, "steps", report) < 0 || storage_paths_make(folder, report) < 0)
		return -1;
	(void)snprintf(name, sizeof(name), "%.60s-%016llx", step, (unsigned long long)hash(source->reference));
	if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path))
		return report_fail(report, "container: the path %s is too long", folder);
	if (step[0] != '\0' && recall(path, digest) == 0 && is_digest(digest))
		return 0;
	if (fetch_digest(source, digest, DIGEST_MAX, report) < 0)
		return -1;
	if (!is_digest(digest))
		return report_fail(report, "container: the registry returned no digest for %s: \"%.80s\"", source->reference, digest);
	image_cache_forget_old(folder, STEPS_KEPT_S);
	return step[0] != '\0' ? remember(path, digest, report) : 0;
}

/* The squashfs in the cache; fetched and converted where it is not there. */
static int ensure(const struct source *source, const char *reference, const struct storage_paths *paths,
		  void (*said)(const char *sentence), struct image *image, struct report *report)
{
	char sentence[1200];

	if (snprintf(image->file, sizeof(image->file), "%s/%s.sqsh", paths->cache, image->key) >= (int)sizeof(image->file))
		return report_fail(report, "container: the path %s is too long", paths->cache);
	if (access(image->file, R_OK) == 0) {
		(void)utimensat(AT_FDCWD, image->file, NULL, 0);
		return 0;
	}
	(void)snprintf(sentence, sizeof(sentence), "container: fetching %.1000s",
		       source->reference[0] != '\0' ? source->reference : source->path);
	said(sentence);
	return fetch_image(source, reference, paths, image, report);
}

static int get_fetched(const struct source *source, const struct storage_paths *paths, const char *step,
		       void (*said)(const char *sentence), struct image *image, struct report *report)
{
	char name[64], path[STORAGE_PATHS_MAX + 128], digest[DIGEST_MAX], reference[1200];
	int lock, result = -1;

	if (storage_paths_make(paths->cache, report) < 0)
		return -1;
	(void)snprintf(name, sizeof(name), ".lock-%016llx",
		       (unsigned long long)hash(source->reference[0] != '\0' ? source->reference : source->path));
	if (storage_paths_join(path, paths->cache, name, report) < 0 || (lock = storage_paths_lock(path, LOCK_EX, report)) < 0)
		return -1;
	(void)snprintf(reference, sizeof(reference), "%s", source->reference);
	if (source->kind == SOURCE_ARCHIVE) {
		result = key_of_file(source->path, image->key, report);
	} else if (source->kind == SOURCE_LAYOUT) {
		result = fetch_digest(source, digest, sizeof(digest), report);
		(void)snprintf(image->key, sizeof(image->key), "%s", digest);
	} else if (resolve(source, paths, step, digest, report) == 0) {
		(void)snprintf(image->key, sizeof(image->key), "%s", digest);
		result = source_pin(source, digest, reference, sizeof(reference), report);
	}
	for (char *colon = strchr(image->key, ':'); result == 0 && colon != NULL; colon = strchr(colon, ':'))
		*colon = '-';
	if (result == 0)
		result = ensure(source, reference, paths, said, image, report);
	(void)close(lock);
	return result;
}

int image_unpack(const struct storage_paths *paths, struct image *image, struct report *report)
{
	return image_cache_get(paths, image, report);
}

int image_get(const char *words, const struct storage_paths *paths, const char *step, void (*said)(const char *sentence),
	      struct image *image, struct report *report)
{
	struct source source;

	*image = (struct image){ .lock = -1 };
	if (source_read(words, &source, report) < 0)
		return -1;
	if (source.kind == SOURCE_SQUASHFS) {
		if (snprintf(image->file, sizeof(image->file), "%s", source.path) >= (int)sizeof(image->file))
			return report_fail(report, "container: the path %s is too long", source.path);
		if (key_of_file(source.path, image->key, report) < 0)
			return -1;
	} else if (get_fetched(&source, paths, step, said, image, report) < 0) {
		return -1;
	}
	return image_cache_get(paths, image, report);
}
