/*
 * `READER CORPUS SECONDS [FOUND]`: runs the reader on each file of CORPUS, then on inputs made from them until the time is over.
 *
 * An input that reaches code, or repeats it, as none has before is kept and changed further; with FOUND such inputs are also
 * written there, to be chosen from for the corpus. FUZZ_SEED repeats a run. An input that faults, breaks what holds or takes longer
 * than 10 s is written to crash-READER-SEED, and the code is not 0. Memory that is not freed is reported at the end (LSan).
 */
#define _GNU_SOURCE
#include "fuzz.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { MAP = 1 << 14, INPUT_MAX = 8192, KEPT_MAX = 16384, RUN_CPU_S = 10, RUN_S = 300 };

struct input {
	uint8_t *data;
	size_t size;
};

extern void __sanitizer_set_death_callback(void (*callback)(void));
void __sanitizer_cov_trace_pc(void);
const char *__ubsan_default_options(void);

static uint8_t seen[MAP], now[MAP];
static uintptr_t before;
static struct input kept[KEPT_MAX];
static size_t kept_count;
static uint8_t current[INPUT_MAX];
static size_t current_size;
static uint64_t state;
static char crash[256];

/* gcc calls it at every edge. */
void __sanitizer_cov_trace_pc(void)
{
	uintptr_t here = (uintptr_t)__builtin_return_address(0), edge = (here ^ before) * 0x9e3779b97f4a7c15ULL >> 50;

	if (now[edge % MAP] < 255)
		now[edge % MAP]++;
	before = here >> 1;
}

static uint32_t next_random(uint32_t below)
{
	state ^= state << 13, state ^= state >> 7, state ^= state << 17;
	return below > 0 ? (uint32_t)(state >> 16) % below : 0;
}

static void keep_crash(void)
{
	int fd = open(crash, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd >= 0 && write(fd, current, current_size) >= 0 && close(fd) == 0)
		(void)!write(2, "fuzz: the input is in ", 22), (void)!write(2, crash, strlen(crash)), (void)!write(2, "\n", 1);
}

/* UBSan calls no callback, but it can end with a signal. */
const char *__ubsan_default_options(void)
{
	return "abort_on_error=1:print_stacktrace=1";
}

static void on_signal(int number)
{
	keep_crash();
	_exit(128 + number);
}

/* How often, roughly: 1, 2, 3, 4-7, 8-15, … as bits. */
static uint8_t bucket(uint8_t count)
{
	return count == 0 ? 0 : count < 3 ? (uint8_t)(1 << (count - 1)) : (uint8_t)(4 << (31 - __builtin_clz(count) - 1) % 6);
}

static int is_new(void)
{
	int found = 0;

	for (size_t word = 0; word < MAP; word += 8) {
		uint64_t eight;

		(void)memcpy(&eight, now + word, 8);
		for (size_t i = word; eight != 0 && i < word + 8; i++) {
			uint8_t bits = bucket(now[i]);

			found |= (bits & ~seen[i]) != 0;
			seen[i] |= bits;
		}
	}
	return found;
}

static void keep(const char *found)
{
	struct input *input = &kept[kept_count];
	char path[512];
	int fd;

	if (kept_count == KEPT_MAX || (input->data = malloc(current_size + 1)) == NULL)
		return;
	(void)memcpy(input->data, current, current_size);
	input->size = current_size;
	kept_count++;
	if (found == NULL || snprintf(path, sizeof(path), "%s/%05zu", found, kept_count) >= (int)sizeof(path))
		return;
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd >= 0 && (write(fd, current, current_size) < 0 || close(fd) < 0))
		perror(path);
}

static void run(const char *found, int must_keep)
{
	/* A reader that turns in a circle uses CPU; on a crowded machine one at a low priority may wait for minutes. */
	static const struct itimerval cpu = { .it_value = { .tv_sec = RUN_CPU_S } };

	(void)memset(now, 0, sizeof(now));
	before = 0;
	(void)setitimer(ITIMER_PROF, &cpu, NULL);
	(void)alarm(RUN_S);
	(void)LLVMFuzzerTestOneInput(current, current_size);
	if (is_new() || must_keep)
		keep(found);
}

static void insert(size_t at, const void *data, size_t size)
{
	if (current_size + size > INPUT_MAX)
		return;
	(void)memmove(current + at + size, current + at, current_size - at);
	(void)memmove(current + at, data, size);
	current_size += size;
}

static void mutate(void)
{
	static const char marks[] = ":,+=@#/.$%\\\"' \t\n[]{}-_0a\0\x7f\xff";
	size_t words = 0, at = next_random((uint32_t)current_size + 1), length;
	uint8_t copy[64];
	uint8_t byte;

	while (fuzz_words[words] != NULL)
		words++;
	switch (next_random(8)) {
	case 0:
		if (current_size > 0)
			current[next_random((uint32_t)current_size)] ^= (uint8_t)(1U << next_random(8));
		break;
	case 1:
		if (current_size > 0)
			current[next_random((uint32_t)current_size)] = (uint8_t)marks[next_random(sizeof(marks) - 1)];
		break;
	case 2:
		byte = next_random(2) ? (uint8_t)next_random(256) : (uint8_t)marks[next_random(sizeof(marks) - 1)];
		insert(at, &byte, 1);
		break;
	case 3:
		length = current_size > at ? 1 + next_random((uint32_t)(current_size - at)) : 0;
		(void)memmove(current + at, current + at + length, current_size - at - length);
		current_size -= length;
		break;
	case 4:
		length = current_size - at < sizeof(copy) ? current_size - at : sizeof(copy);
		(void)memcpy(copy, current + at, length);
		insert(next_random((uint32_t)current_size + 1), copy, length);
		break;
	case 5: {
		const struct input *other = &kept[next_random((uint32_t)kept_count)];
		size_t from = next_random((uint32_t)other->size + 1);

		insert(at, other->data + from, other->size - from);
		break;
	}
	case 6: { /* longer than any buffer */
		static uint8_t many[4200];

		(void)memset(many, marks[next_random(sizeof(marks) - 1)], sizeof(many));
		if (next_random(16) == 0)
			insert(at, many, 1 + next_random(sizeof(many)));
		break;
	}
	default:
		if (words > 0) {
			const char *word = fuzz_words[next_random((uint32_t)words)];

			insert(at, word, strlen(word));
		}
	}
}

static void take_corpus(const char *folder)
{
	DIR *open_folder = opendir(folder);
	struct dirent *each;

	while (open_folder != NULL && (each = readdir(open_folder)) != NULL) {
		int fd = openat(dirfd(open_folder), each->d_name, O_RDONLY | O_CLOEXEC);
		ssize_t length = fd >= 0 ? read(fd, current, sizeof(current)) : -1;

		if (fd >= 0)
			(void)close(fd);
		if (length < 0)
			continue;
		current_size = (size_t)length;
		run(NULL, 1);
	}
	if (open_folder != NULL)
		(void)closedir(open_folder);
	current_size = 0;
	run(NULL, 1);
}

int main(int argc, char **argv)
{
	static const int signals[] = { SIGABRT, SIGALRM, SIGPROF, SIGSEGV, SIGBUS, SIGFPE };
	const char *name = strrchr(argv[0], '/') != NULL ? strrchr(argv[0], '/') + 1 : argv[0], *seed = getenv("FUZZ_SEED");
	time_t end = time(NULL) + (argc > 2 ? atol(argv[2]) : 10);
	unsigned long runs = 0;

	if (argc < 3)
		return fprintf(stderr, "%s CORPUS SECONDS [FOUND]\n", name), 2;
	state = seed != NULL ? strtoull(seed, NULL, 10) : (uint64_t)time(NULL) * 1000003 + (uint64_t)getpid();
	(void)snprintf(crash, sizeof(crash), "crash-%s-%llu", name, (unsigned long long)state);
	(void)printf("%s: FUZZ_SEED=%llu\n", name, (unsigned long long)state);
	(void)fflush(stdout);
	state = state != 0 ? state : 1;
	__sanitizer_set_death_callback(keep_crash);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		(void)signal(signals[i], on_signal);
	take_corpus(argv[1]);
	for (; (runs & 255) != 0 || time(NULL) < end; runs++) {
		const struct input *input = &kept[next_random((uint32_t)kept_count)];

		(void)memcpy(current, input->data, input->size);
		current_size = input->size;
		for (uint32_t count = 1 + next_random(6); count > 0; count--)
			mutate();
		run(argc > 3 ? argv[3] : NULL, 0);
	}
	(void)setitimer(ITIMER_PROF, &(struct itimerval){ 0 }, NULL);
	(void)alarm(0);
	(void)printf("%s: %lu runs, %zu inputs kept\n", name, runs, kept_count);
	__sanitizer_set_death_callback(NULL);
	return 0;
}
