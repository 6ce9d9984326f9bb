/*
 * What deep checks measure, in one program: `deep NAME key=value…`, one task on each node of a Slurm job.
 *
 * It only measures; the operator judges. The last line of task 0 is one JSON object with readings. Whatever is in the
 * way ends it with exit code 2 and a sentence: that is neither pass nor failure of a node. It is C, and in the bundle,
 * because the jail belongs to its users: neither an MPI nor a Python of theirs should decide whether a node is good.
 */
#ifndef DEEP_H
#define DEEP_H

#include <stddef.h>
#include <stdint.h>

enum { NAME_MAX_BYTES = 128 };

/* Who this task is. Without Slurm it is the only one. */
struct place {
	int rank, size;
	char node[NAME_MAX_BYTES];	/* the Slurm node */
	char first[NAME_MAX_BYTES];	/* the one of task 0 */
	uint64_t job;			/* of job and step, for all tasks the same */
};

extern struct place place;

/* Ends the program with exit code 2 and a sentence; `%m` is the text of errno. */
_Noreturn void broken(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* What was given as key=value, or what stands in for it. A number that is none, or outside, is broken. */
const char *given(const char *key, const char *otherwise);
double number(const char *key, double otherwise, double least, double most);

/* Seconds that only go forward. */
double now(void);

/* For qsort, and the middle one of values, which are sorted by it. */
int by_size(const void *one, const void *other);
double middle(double *values, int count);

/* A piece of memory, or broken. */
void *memory(size_t bytes);

/* The CPUs that this task may use: how many, and their numbers, which the caller frees. */
int cpus(int **numbers);

/* Runs `body` on each CPU at the same time, bound to it, and waits; `each` are `count` pieces of `size` bytes, one for each CPU. */
void on_each_cpu(const int *numbers, int count, void (*body)(void *), void *each, size_t size);

/* The programs. */
void measure_memory(void);
void measure_cpu(void);
void measure_disk(void);
void measure_network(void);
void measure_allreduce(void);

#endif
