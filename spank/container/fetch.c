/* The why is in fetch.h. */
#define _GNU_SOURCE
#include "fetch.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "credentials.h"
#include "program.h"
#include "image_cache.h"

enum { PARTIALS_KEPT_S = 24 * 3600 };

/* enroot's word for registries without TLS; registries.conf has another for single ones. */
static const char *tls_verify(void)
{
	const char *said = getenv("ENROOT_ALLOW_HTTP");

	return said != NULL && (strcmp(said, "y") == 0 || strcmp(said, "yes") == 0 || strcmp(said, "1") == 0) ? "false" : "true";
}

struct words {
	const char *list[24];
	int count;
	char tls[32], authfile[STORAGE_PATHS_MAX + 160];
};

static void add(struct words *words, const char *word)
{
	words->list[words->count++] = word;
}

/* What every call of skopeo says of a registry: whether TLS is asked for, and enroot's credentials where it has some. */
static int add_access(struct words *words, const struct source *source, const char *prefix, struct report *report)
{
	int found;

	if (source->kind != SOURCE_REGISTRY)
		return 0;
	if (strcmp(tls_verify(), "false") == 0) {
		(void)snprintf(words->tls, sizeof(words->tls), "--%stls-verify=false", prefix);
		add(words, words->tls);
	}
	found = credentials_write(source, words->authfile + 11, sizeof(words->authfile) - 11, report);
	if (found < 0)
		return -1;
	if (found > 0) {
		(void)memcpy(words->authfile, "--authfile=", 11);
		add(words, words->authfile);
	}
	return found;
}

static void forget_access(const struct words *words)
{
	if (words->authfile[0] != '\0')
		(void)unlink(words->authfile + 11);
}

int fetch_digest(const struct source *source, char *digest, size_t size, struct report *report)
{
	struct words words = { .list = { "skopeo", "--insecure-policy", "inspect", "--no-tags", "--format", "{{.Digest}}" },
			       .count = 6 };
	struct program skopeo = { .words = words.list, .output = digest, .output_size = size };
	char what[1200];
	int result;

	(void)snprintf(what, sizeof(what), "cannot find the image %s", source->reference);
	if (add_access(&words, source, "", report) < 0)
		return -1;
	add(&words, source->reference);
	result = program_run(&skopeo, what, report);
	forget_access(&words);
	return result;
}

/* Layers are taken as they are, but those in zstd, which umoci 0.4.7 cannot read, become gzip on the way. */
static int bring(const struct source *source, const char *reference, const char *folder, struct report *report)
{
	struct words words = { .list = { "skopeo", "--insecure-policy", "copy", "--quiet", "--dest-compress-format", "gzip",
					 "--dest-compress-level", "1" },
			       .count = 8 };
	struct program skopeo = { .words = words.list, .folder = folder };
	char what[1300];
	int result;

	(void)snprintf(what, sizeof(what), "cannot fetch the image %s", reference);
	if (add_access(&words, source, "src-", report) < 0)
		return -1;
	add(&words, reference);
	add(&words, "oci:layout:image");
	result = program_run(&skopeo, what, report);
	forget_access(&words);
	return result;
}

/* An archive does not say whose it is: it is docker's, or else OCI's. */
static int bring_archive(const struct source *source, const char *folder, struct report *report)
{
	struct report first = { "" }, second = { "" };
	char reference[4200];

	(void)snprintf(reference, sizeof(reference), "docker-archive:%s", source->path);
	if (bring(source, reference, folder, &first) == 0)
		return 0;
	(void)snprintf(reference, sizeof(reference), "oci-archive:%s", source->path);
	if (bring(source, reference, folder, &second) == 0)
		return 0;
	return report_fail(report, "container: %s is neither a squashfs file nor an archive of docker or OCI: %.300s",
			   source->path, strstr(first.text, source->path) ? strstr(first.text, source->path) : first.text);
}

static int lay_out(const char *folder, struct report *report)
{
	static const char *const unpack[] = { "umoci", "raw", "unpack", "--rootless", "--image", "layout:image", "tree", NULL };
	static const char *const inspect[] = { "skopeo", "inspect", "--config", "--format", CONFIG_TEMPLATE, "oci:layout:image",
					       NULL };
	char path[STORAGE_PATHS_MAX + 256];
	struct program umoci = { .words = unpack, .folder = folder, .has_file_rights = true };
	struct program skopeo = { .words = inspect, .folder = folder, .output_file = path };

	if (program_run(&umoci, "cannot unpack the image", report) < 0)
		return -1;
	(void)snprintf(path, sizeof(path), "%s/tree" CONFIG_FILE, folder);
	return program_run(&skopeo, "cannot read the image's configuration", report);
}

/* /dev comes from the jail, and nobody could make the nodes again. */
static int pack(const char *folder, const struct storage_paths *paths, const struct image *image, struct report *report)
{
	char host[65] = "", partials[STORAGE_PATHS_MAX + 128], partial[STORAGE_PATHS_MAX + 256];
	const char *words[] = { "mksquashfs", "tree", partial, "-comp", "zstd", "-Xcompression-level", "1", "-all-root",
				"-no-xattrs", "-noappend", "-no-progress", "-quiet", "-mem", "512M", "-wildcards", "-e",
				"dev/*", NULL };
	struct program mksquashfs = { .words = words, .folder = folder, .has_file_rights = true };

	int fd;

	(void)gethostname(host, sizeof(host) - 1);
	if (storage_paths_join(partials, paths->cache, "partial", report) < 0 || storage_paths_make(partials, report) < 0)
		return -1;
	image_cache_forget_old(partials, PARTIALS_KEPT_S);
	/* Not a pid: each job has pids of its own. */
	(void)snprintf(partial, sizeof(partial), "%s/%s-XXXXXX", partials, host);
	fd = mkostemp(partial, O_CLOEXEC);
	if (fd < 0 || close(fd) < 0)
		return report_fail(report, "container: cannot make %s: %m", partial);
	if (program_run(&mksquashfs, "cannot pack the image", report) < 0 || rename(partial, image->file) < 0) {
		report_fail(report, "container: cannot put the image at %s: %m", image->file);
		(void)unlink(partial);
		return -1;
	}
	return 0;
}

int fetch_image(const struct source *source, const char *reference, const struct storage_paths *paths, const struct image *image,
		struct report *report)
{
	struct report later = { "" };
	char folder[STORAGE_PATHS_MAX + 128];
	int result;

	if (storage_paths_join(folder, paths->box, "fetch", report) < 0 || storage_paths_remove(folder, report) < 0 ||
	    storage_paths_make(folder, report) < 0)
		return -1;
	result = source->kind == SOURCE_ARCHIVE ? bring_archive(source, folder, report)
						: bring(source, reference, folder, report);
	if (result == 0)
		result = lay_out(folder, report);
	if (result == 0)
		result = pack(folder, paths, image, report);
	(void)storage_paths_remove(folder, &later);
	return result;
}
