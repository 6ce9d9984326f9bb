/*
 * One node's own parts: how fast its memory is, and how fast and how right its cores compute.
 *
 * All cores at once, for that is how a job uses them, and each thread stays on its core, so that a wrong result has a
 * number. What counts is the best window, not the mean: others may have had a share of the machine for a moment, but
 * nothing makes a machine faster than it is.
 */
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "deep.h"

static void alone(void)
{
	if (place.size != 1)
		broken("it measures one node, and this step has %d tasks", place.size);
}

/* ---- memory: the triad of STREAM, a = b + s·c, which reads two arrays and writes one ---- */

static pthread_barrier_t together;

struct triad {
	size_t count;
	double seconds;
	int leads;
	long wrong;
};

/* What the first thread writes between barriers, and all read behind them. */
static double first_began, round_began, round_best;
static int round_last;

static void triad(void *argument)
{
	struct triad *mine = argument;
	size_t count = mine->count;
	double *a = memory(count * sizeof *a), *b = memory(count * sizeof *b), *c = memory(count * sizeof *c);

	for (size_t i = 0; i < count; i++) {	/* who touches memory first has it on its side of the machine */
		a[i] = 0;
		b[i] = (double)(i % 1021);
		c[i] = (double)(i % 509);
	}
	for (int round = 0;; round++) {
		pthread_barrier_wait(&together);
		if (mine->leads)
			round_began = now();
		pthread_barrier_wait(&together);
		for (size_t i = 0; i < count; i++)
			a[i] = b[i] + 3 * c[i];
		__asm__ volatile("" ::"r"(a) : "memory");
		pthread_barrier_wait(&together);
		if (mine->leads) {
			double took = now() - round_began;

			if (!round)
				first_began = round_began;
			if (!round || took < round_best)
				round_best = took;
			round_last = now() - first_began > mine->seconds;
		}
		pthread_barrier_wait(&together);
		if (round_last)
			break;
	}
	for (size_t i = 0; i < count; i++)
		mine->wrong += a[i] != (double)(i % 1021 + 3 * (i % 509)) || b[i] != (double)(i % 1021) || c[i] != (double)(i % 509);
	free(a);
	free(b);
	free(c);
}

/* What may be used: a quarter of what is free, or of what the job was given. */
static double spare_mib(void)
{
	const char *job = getenv("SLURM_MEM_PER_NODE");
	char line[256];
	double kib = 0, least;
	FILE *file = fopen("/proc/meminfo", "r");

	if (!file)
		broken("/proc/meminfo: %m");
	while (fgets(line, sizeof line, file))
		if (sscanf(line, "MemAvailable: %lf kB", &kib) == 1)
			break;
	fclose(file);
	least = kib / 1024;
	if (job && atof(job) > 0 && atof(job) < least)
		least = atof(job);
	return least / 4;
}

void measure_memory(void)
{
	int *numbers, count = cpus(&numbers);
	/* Several times what the caches hold: no machine has more than some 12 MiB for each core. */
	double wanted = number("mib", count < 7 ? 512 : 72.0 * count, 1, 1 << 20), spare = spare_mib();
	double seconds = number("seconds", 4, 0.1, 600);
	struct triad *each = memory(sizeof *each * (size_t)count);
	double mib = wanted < spare ? wanted : spare, bytes;
	long wrong = 0;

	alone();
	if (pthread_barrier_init(&together, NULL, (unsigned)count))
		broken("a barrier: %m");
	for (int i = 0; i < count; i++)
		each[i] = (struct triad){ .count = (size_t)(mib * 1048576 / 24 / count), .seconds = seconds, .leads = !i };
	on_each_cpu(numbers, count, triad, each, sizeof *each);
	bytes = 24.0 * (double)each[0].count * count;
	for (int i = 0; i < count; i++)
		wrong += each[i].wrong;
	printf("{\"soperator\": 1, \"readings\": [{\"of\": \"%s\", \"triad\": %.3f, \"mib\": %.0f, \"cores\": %d, \"wrong\": %ld}]}\n",
	       place.node, bytes / round_best / 1e9, bytes / 1048576, count, wrong);
}

/* ---- cpu: products of matrices of whole numbers, whose results are exact, and a chain in which one wrong bit grows ---- */

enum { SIDE = 64, STEPS = 20000, WINDOWS_MAX = 4096 };
#define WINDOW 0.5
#define FLOPS_PER_ROUND (2.0 * SIDE * SIDE * SIDE)

/* What the chain ends in on any machine with IEEE 754 arithmetic; tests/unit/images/test_deep.py computes it anew. */
static const double CHAIN = 0x1.715da3308c50dp-2;

struct core {
	double started, seconds;
	int windows;
	float rounds[WINDOWS_MAX];	/* in each window */
	int wrong;
};

static double chain(int steps)
{
	double x = 0.3, y = 1;

	for (int i = 0; i < steps; i++) {
		x = 3.9375 * x * (1 - x);
		y = sqrt(y / (1 + x) + x);
	}
	return x / (1 + y);
}

static int product_is_right(double (*a)[SIDE], double (*b)[SIDE], double (*c)[SIDE], long seed)
{
	long wanted = 0, found = 0;

	for (int i = 0; i < SIDE; i++)
		for (int j = 0; j < SIDE; j++) {
			a[i][j] = (double)((i * 7 + j * 3 + seed) % 31);
			b[i][j] = (double)((i * 5 + j * 11 + seed) % 29);
			c[i][j] = 0;
		}
	for (int i = 0; i < SIDE; i++)
		for (int k = 0; k < SIDE; k++)
			for (int j = 0; j < SIDE; j++)
				c[i][j] += a[i][k] * b[k][j];
	for (int k = 0; k < SIDE; k++) {	/* the sum of all is the sum over k of (column k of a) · (row k of b) */
		long column = 0, row = 0;

		for (int i = 0; i < SIDE; i++) {
			column += (i * 7 + k * 3 + seed) % 31;
			row += (k * 5 + i * 11 + seed) % 29;
		}
		wanted += column * row;
	}
	for (int i = 0; i < SIDE; i++)
		for (int j = 0; j < SIDE; j++)
			found += (long)c[i][j];
	return found == wanted;
}

static void compute(void *argument)
{
	struct core *mine = argument;
	double (*a)[SIDE] = memory(sizeof(double[SIDE][SIDE]) * 3), (*b)[SIDE] = a + SIDE, (*c)[SIDE] = b + SIDE;
	double passed;

	for (long round = 0; (passed = now() - mine->started) < mine->seconds; round++) {
		int window = (int)(passed / WINDOW);

		mine->wrong |= !product_is_right(a, b, c, round % 97);
		if (round % 256 == 0)
			mine->wrong |= chain(STEPS) != CHAIN;
		if (window < WINDOWS_MAX)
			mine->rounds[window]++;
	}
	free(a);
}

void measure_cpu(void)
{
	double seconds = number("seconds", 5, 0.1, 1800), gflops = 0, *rates;
	int *numbers, count = cpus(&numbers), windows = (int)(seconds / WINDOW), wrong = 0, which = -1;
	struct core *each = memory(sizeof *each * (size_t)count);
	double window = windows ? WINDOW : seconds;

	alone();
	windows = windows < 1 ? 1 : windows > WINDOWS_MAX ? WINDOWS_MAX : windows;
	memset(each, 0, sizeof *each * (size_t)count);
	for (int i = 0; i < count; i++) {
		each[i].started = now();
		each[i].seconds = seconds;
	}
	on_each_cpu(numbers, count, compute, each, sizeof *each);
	for (int w = 0; w < windows; w++) {
		double sum = 0;

		for (int i = 0; i < count; i++)
			sum += each[i].rounds[w];
		if (sum * FLOPS_PER_ROUND / window / 1e9 > gflops)
			gflops = sum * FLOPS_PER_ROUND / window / 1e9;
	}
	rates = memory(sizeof *rates * (size_t)count);
	for (int i = 0; i < count; i++) {
		rates[i] = 0;
		for (int w = 0; w < windows; w++)
			rates[i] = fmax(rates[i], each[i].rounds[w]);
		if (each[i].wrong && !wrong++)
			which = numbers[i];
	}
	qsort(rates, (size_t)count, sizeof *rates, by_size);
	printf("{\"soperator\": 1, \"readings\": [{\"of\": \"%s\", \"gflops\": %.3f, \"slowest\": %.1f, \"cores\": %d, \"wrong\": %d, \"which\": %d}]}\n",
	       place.node, gflops, rates[count / 2] > 0 ? 100 * rates[0] / rates[count / 2] : 0, count, wrong, which);
}
