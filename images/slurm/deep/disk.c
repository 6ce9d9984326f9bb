/*
 * A file system as a job uses it: one large file written, stored and read back, small writes stored one by one, and files
 * made and removed. What is read is compared with what was written.
 *
 * The file has no name while it is used, so that nothing is left behind by whatever ends this program. It takes at most
 * a quarter of what is free.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "deep.h"

enum { BLOCK = 1 << 20, SMALL = 4096, SYNCS = 64 };

static const char *path;

static void fill(uint64_t *block, uint64_t number)
{
	uint64_t state = number * 0x9e3779b97f4a7c15 + 1;

	for (size_t i = 0; i < BLOCK / sizeof *block; i++) {	/* xorshift: a storage that compresses gains nothing */
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		block[i] = state;
	}
}

static void whole(ssize_t got, size_t wanted, const char *what)
{
	if (got < 0)
		broken("%s: cannot %s: %m", path, what);
	if ((size_t)got != wanted)
		broken("%s: could %s only %zd of %zu bytes", path, what, got, wanted);
}

/* Opens the same file so that reads go past the page cache, where the file system can. */
static int past_the_cache(int file)
{
	char name[64];
	int direct;

	snprintf(name, sizeof name, "/proc/self/fd/%d", file);
	if (posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED))
		broken("%s: cannot drop the page cache: %m", path);
	direct = open(name, O_RDONLY | O_CLOEXEC | O_DIRECT);
	return direct < 0 ? file : direct;
}

static double files_ms(int count)
{
	char folder[PATH_MAX], name[PATH_MAX + 32];
	struct stat seen;
	double began;

	snprintf(folder, sizeof folder, "%s/soperator-deep-XXXXXX", path);
	if (!mkdtemp(folder))
		broken("%s: %m", folder);
	began = now();
	for (int i = 0; i < count; i++) {
		int file;

		snprintf(name, sizeof name, "%s/%d", folder, i);
		file = open(name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
		if (file < 0 || close(file) || stat(name, &seen) || unlink(name))
			broken("%s: %m", name);
	}
	began = (now() - began) * 1000 / count;
	if (rmdir(folder))
		broken("%s: %m", folder);
	return began;
}

void measure_disk(void)
{
	double seconds = number("seconds", 10, 0.1, 3600), mib = number("mib", 512, 1, 1 << 20), began, wrote, read, syncs[SYNCS];
	int files = (int)number("files", 0, 0, 100000), file, from, count = 0;
	char name[PATH_MAX];
	uint64_t *block = memory(BLOCK), *wanted = memory(BLOCK);
	long blocks = 0, wrong = 0, seen = 0;
	struct statvfs space;

	path = given("path", "/tmp");
	if (place.size != 1)
		broken("it measures one node, and this step has %d tasks", place.size);
	if (strpbrk(path, "\"\\") || statvfs(path, &space))
		broken("%s: %m", path);
	if ((double)space.f_bavail * (double)space.f_frsize / BLOCK / 4 < mib)
		mib = (double)space.f_bavail * (double)space.f_frsize / BLOCK / 4;
	if (mib < 1)
		broken("%s: less than 4 MiB are free", path);
	snprintf(name, sizeof name, "%s/soperator-deep-XXXXXX", path);
	file = mkostemp(name, O_CLOEXEC);
	if (file < 0 || unlink(name))
		broken("%s: %m", name);

	began = now();
	for (wrote = 0; blocks < (long)mib && (!blocks || now() - began < seconds); blocks++) {
		fill(block, (uint64_t)blocks);
		wrote -= now();
		whole(pwrite(file, block, BLOCK, (off_t)blocks * BLOCK), BLOCK, "write");
		wrote += now();
	}
	wrote -= now();
	if (fdatasync(file))
		broken("%s: cannot store: %m", path);
	wrote = (double)blocks * BLOCK / (wrote + now()) / 1e6;

	from = past_the_cache(file);
	began = now();
	for (read = 0; seen < blocks && (!seen || now() - began < seconds); seen++) {
		double one = now();
		ssize_t got = pread(from, block, BLOCK, (off_t)seen * BLOCK);

		if (got < 0 && errno == EINVAL && from != file) {	/* it can be opened so, but not read */
			from = file;
			got = pread(from, block, BLOCK, (off_t)seen * BLOCK);
		}
		read += now() - one;
		whole(got, BLOCK, "read");
		fill(wanted, (uint64_t)seen);
		wrong += memcmp(block, wanted, BLOCK) != 0;
	}
	read = (double)seen * BLOCK / read / 1e6;

	began = now();
	for (; count < SYNCS && (!count || now() - began < seconds); count++) {
		double one = now();

		whole(pwrite(file, wanted, SMALL, (off_t)count * SMALL), SMALL, "write");
		if (fdatasync(file))
			broken("%s: cannot store: %m", path);
		syncs[count] = (now() - one) * 1000;
	}
	printf("{\"soperator\": 1, \"readings\": [{\"of\": \"%s\", \"path\": \"%s\", \"write\": %.1f, \"read\": %.1f, \"sync\": %.3f, \"mib\": %ld, \"wrong\": %ld",
	       place.node, path, wrote, read, middle(syncs, count), blocks, wrong);
	if (files)
		printf(", \"file\": %.3f", files_ms(files));
	puts("}]}");
}
