/* The why is in deep.h. */
#define _GNU_SOURCE
#include "deep.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct place place;
static const char *name = "?";
static char **words;

void broken(const char *format, ...)
{
	int error = errno;
	va_list arguments;

	fprintf(stderr, "deep: %s: ", name);
	va_start(arguments, format);
	errno = error;
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	exit(2);
}

const char *given(const char *key, const char *otherwise)
{
	size_t length = strlen(key);

	for (char **word = words; *word; word++)
		if (!strncmp(*word, key, length) && (*word)[length] == '=')
			return *word + length + 1;
	return otherwise;
}

double number(const char *key, double otherwise, double least, double most)
{
	const char *text = given(key, NULL);
	char *end;
	double value = text ? strtod(text, &end) : otherwise;

	if (text && (!*text || *end || !(value >= least && value <= most)))
		broken("%s=%s is not a number from %g to %g", key, text, least, most);
	return value;
}

double now(void)
{
	struct timespec time;

	if (clock_gettime(CLOCK_MONOTONIC, &time))
		broken("cannot read the clock: %m");
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int by_size(const void *one, const void *other)
{
	double a = *(const double *)one, b = *(const double *)other;

	return (a > b) - (a < b);
}

double middle(double *values, int count)
{
	if (count < 1)
		broken("there was no time to measure anything");
	qsort(values, (size_t)count, sizeof *values, by_size);
	return values[count / 2];
}

void *memory(size_t bytes)
{
	void *found = NULL;
	int error = posix_memalign(&found, 4096, bytes);

	if (error) {
		errno = error;
		broken("%zu bytes of memory: %m", bytes);
	}
	return found;
}

int cpus(int **numbers)
{
	cpu_set_t *set = CPU_ALLOC(CPU_SETSIZE * 16);
	size_t size = CPU_ALLOC_SIZE(CPU_SETSIZE * 16);
	int count = 0;

	if (!set || sched_getaffinity(0, size, set))
		broken("cannot ask for my CPUs: %m");
	*numbers = memory(sizeof **numbers * (size_t)CPU_COUNT_S(size, set));
	for (int cpu = 0; cpu < CPU_SETSIZE * 16; cpu++)
		if (CPU_ISSET_S((size_t)cpu, size, set))
			(*numbers)[count++] = cpu;
	CPU_FREE(set);
	return count;
}

struct part {
	void (*body)(void *);
	void *argument;
	int cpu;
};

static void *run_part(void *argument)
{
	struct part *part = argument;
	cpu_set_t *set = CPU_ALLOC((size_t)part->cpu + 1);
	size_t size = CPU_ALLOC_SIZE((size_t)part->cpu + 1);

	if (!set)
		broken("a set of CPUs: %m");
	CPU_ZERO_S(size, set);
	CPU_SET_S((size_t)part->cpu, size, set);
	if (sched_setaffinity(0, size, set))
		broken("cannot run on CPU %d: %m", part->cpu);
	CPU_FREE(set);
	part->body(part->argument);
	return NULL;
}

void on_each_cpu(const int *numbers, int count, void (*body)(void *), void *each, size_t size)
{
	pthread_t *threads = memory(sizeof *threads * (size_t)count);
	struct part *parts = memory(sizeof *parts * (size_t)count);

	for (int i = 0; i < count; i++) {
		parts[i] = (struct part){ body, (char *)each + size * (size_t)i, numbers[i] };
		if ((errno = pthread_create(&threads[i], NULL, run_part, &parts[i])))
			broken("a thread for CPU %d: %m", numbers[i]);
	}
	for (int i = 0; i < count; i++)
		if ((errno = pthread_join(threads[i], NULL)))
			broken("a thread does not end: %m");
	free(parts);
	free(threads);
}

/* A number of Slurm's in the environment. */
static long number_in(const char *variable, long otherwise)
{
	const char *text = getenv(variable);

	return text && *text ? strtol(text, NULL, 10) : otherwise;
}

/* The first name of a list such as worker-[0-3,7],other-1. */
static void first_of(const char *list, char *out, size_t size)
{
	size_t used = 0;

	for (; *list && *list != ',' && used + 1 < size; list++) {
		if (*list != '[') {
			out[used++] = *list;
			continue;
		}
		for (list++; *list && !strchr("-,]", *list) && used + 1 < size; list++)
			out[used++] = *list;
		while (*list && *list != ']')
			list++;
		if (!*list)
			break;
	}
	out[used] = '\0';
}

static void look_around(void)
{
	const char *list = getenv("SLURM_STEP_NODELIST"), *node = getenv("SLURMD_NODENAME");

	place.rank = (int)number_in("SLURM_PROCID", 0);
	place.size = (int)number_in("SLURM_NTASKS", 1);
	place.job = (uint64_t)number_in("SLURM_JOB_ID", 0) << 16 ^ (uint64_t)number_in("SLURM_STEP_ID", 0);
	if (node)
		snprintf(place.node, sizeof place.node, "%s", node);
	else if (gethostname(place.node, sizeof place.node - 1))
		broken("this node has no name: %m");
	if (!list)
		list = getenv("SLURM_JOB_NODELIST");
	first_of(list ? list : place.node, place.first, sizeof place.first);
	if (place.size < 1 || place.rank < 0 || place.rank >= place.size || !place.first[0])
		broken("task %d of %d on %s is invalid", place.rank, place.size, place.first);
}

/* GPUs are measured with what is in the jail, so by scripts, which the jail's own python3 runs. */
static void run_script(char **arguments)
{
	char program[PATH_MAX], script[PATH_MAX + 64];
	ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);

	if (length < 0)
		broken("cannot find myself: %m");
	program[length] = '\0';
	snprintf(script, sizeof script, "%s/../share/deep/%s.py", dirname(program), name);
	if (access(script, R_OK))
		broken("unknown measurement: use one of memory, cpu, disk, network, allreduce, nccl, burn, dcgm");
	arguments[0] = (char *)"python3";
	arguments[1] = script;
	execvp("python3", arguments);
	broken("needs python3 in the jail, and it cannot be started: %m");
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*measure)(void);
	} measurements[] = {
		{ "memory", measure_memory },	{ "cpu", measure_cpu },		    { "disk", measure_disk },
		{ "network", measure_network }, { "allreduce", measure_allreduce },
	};

	if (argc < 2) {
		fputs("usage: deep NAME key=value…\n", stderr);
		return 2;
	}
	name = argv[1];
	words = argv + 2;
	if (strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(name))
		broken("invalid name of a measurement");
	look_around();
	for (size_t i = 0; i < sizeof measurements / sizeof *measurements; i++)
		if (!strcmp(name, measurements[i].name)) {
			measurements[i].measure();
			if (fflush(stdout) || ferror(stdout))
				broken("cannot print the readings: %m");
			return 0;
		}
	run_script(argv);
}
