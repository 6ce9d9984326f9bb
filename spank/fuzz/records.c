/* What lies in a job's record (../record.c). */
#define _GNU_SOURCE
#include "fuzz.h"

#include <fcntl.h>
#include <unistd.h>

#include "../record.h"

const char *const fuzz_words[] = { "1000\n", "1 2\n", "4294967295", "-1", "99999999999999999999", NULL };

static void put(int folder, const char *name, const uint8_t *data, size_t size)
{
	int fd = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	HOLDS(fd >= 0 && write(fd, data, size) == (ssize_t)size && close(fd) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int folder = -1;
	char path[] = "fuzz-XXXXXX", *name = fuzz_text(data, size);
	struct jobs_job job;

	if (folder < 0)
		HOLDS(mkdtemp(path) != NULL && (folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) >= 0);
	put(folder, "uid", data, size / 2);
	put(folder, "pid", data + size / 2, size - size / 2);
	(void)record_read(folder, 7, &job);
	HOLDS(job.id == 7);
	(void)record_job(name);
	free(name);
	return 0;
}
