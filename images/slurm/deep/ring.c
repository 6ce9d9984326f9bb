/*
 * All-reduce over a ring, as NCCL and MPI do it for large messages: each task has a vector, and in the end all have the sum.
 *
 * The vector is cut into as many pieces as there are tasks. In n-1 steps each piece goes around and is added to, in n-1
 * more the sums go around. Each task sends and receives 2(n-1)/n of the vector, which is why bus bandwidth, that times the
 * size over the time, does not depend on n. The numbers are whole, so each sum is known exactly and each is looked at.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>

#include "deep.h"
#include "meet.h"

enum { PERIOD = 1021, LISTED = 64 };

struct ring {
	int left, right;	/* connections */
	size_t count, piece;	/* numbers, all and in a piece; the last one may have fewer */
	double *vector, *incoming;
	double adding, added;	/* seconds, and numbers */
};

static size_t begin_of(const struct ring *ring, int piece)
{
	size_t at = ring->piece * (size_t)piece;

	return at < ring->count ? at : ring->count;
}

static int modulo(int value)
{
	return ((value % place.size) + place.size) % place.size;
}

static void step(struct ring *ring, int sent, int received, int adds)
{
	size_t from = begin_of(ring, sent), to = begin_of(ring, received);
	size_t sends = begin_of(ring, sent + 1) - from, receives = begin_of(ring, received + 1) - to;
	double *into = adds ? ring->incoming : ring->vector + to, began;

	exchange(ring->right, ring->vector + from, sends * sizeof(double), ring->left, into, receives * sizeof(double));
	if (!adds)
		return;
	began = now();
	for (size_t i = 0; i < receives; i++)
		ring->vector[to + i] += ring->incoming[i];
	ring->adding += now() - began;
	ring->added += (double)receives;
}

static void allreduce(struct ring *ring)
{
	for (int i = 0; i < place.size - 1; i++)
		step(ring, modulo(place.rank - i), modulo(place.rank - i - 1), 1);
	for (int i = 0; i < place.size - 1; i++)
		step(ring, modulo(place.rank + 1 - i), modulo(place.rank - i), 0);
}

static long wrong_sums(const struct ring *ring)
{
	double all = (double)place.size * (place.size + 1) / 2;
	long wrong = 0;

	for (size_t i = 0; i < ring->count; i++)
		wrong += ring->vector[i] != all * (double)(i % PERIOD + 1);
	return wrong;
}

/* The mean counts, not the middle: a node that is throttled lets most rounds pass and stops all others in some. */
static void say(double took, int rounds, const struct ring *ring, const double *each)
{
	double bytes = (double)ring->count * sizeof(double), wrong = 0;

	for (int rank = 0; rank < place.size; rank++)
		wrong += each[2 * rank];
	fputs("{\"soperator\": 1, \"readings\": [{\"of\": \"", stdout);
	if (place.size > LISTED)	/* a line has its limit; `*` is all nodes of the job */
		fputc('*', stdout);
	for (int rank = 0; rank < place.size && place.size <= LISTED; rank++)
		printf("%s%s", rank ? " " : "", node_of(rank));
	printf("\", \"nodes\": %d, \"busbw\": %.5f, \"rounds\": %d, \"mib\": %.0f, \"wrong\": %.0f}", place.size,
	       bytes * rounds / took * 2 * (place.size - 1) / place.size / 1e9, rounds, bytes / 1048576, wrong);
	for (int rank = 0, listed = 0; rank < place.size && listed < LISTED; rank++)
		if (place.size <= LISTED || each[2 * rank] > 0) {
			printf(", {\"of\": \"%s\", \"wrong\": %.0f, \"adds\": %.3f}", node_of(rank), each[2 * rank], each[2 * rank + 1]);
			listed++;
		}
	puts("]}");
}

void measure_allreduce(void)
{
	double seconds = number("seconds", 5, 0.1, 3600), mib = number("mib", 64, 0.001, 65536), began, *each;
	struct ring ring = { .count = (size_t)(mib * 1048576 / sizeof(double)) };
	int rounds = 0, goes_on = 1;
	int liar = (int)number("spoil", -1, -1, 1 << 20);	/* a task that changes one number, to see that it is found */
	double wrong = 0, took = 0;

	if (place.size < 2)
		broken("it measures several nodes, and this step has one task");
	ring.piece = (ring.count + (size_t)place.size - 1) / (size_t)place.size;
	ring.vector = memory(ring.count * sizeof(double) + 1);
	ring.incoming = memory(ring.piece * sizeof(double) + 1);
	meet(number("patience", 60, 0.1, 600));
	ring.right = speak_to(modulo(place.rank + 1));	/* nobody has to be there yet: the connection waits at the door */
	ring.left = hear_from(modulo(place.rank - 1));
	began = now();
	while (goes_on) {
		for (size_t i = 0; i < ring.count; i++)
			ring.vector[i] = (double)(place.rank + 1) * (double)(i % PERIOD + 1);
		if (place.rank == liar)
			ring.vector[ring.count / 2] += 1;
		agree(0);
		took -= now();
		allreduce(&ring);
		agree(0);
		took += now();
		rounds++;
		wrong += (double)wrong_sums(&ring);
		goes_on = agree(now() - began < seconds);
	}
	each = memory(sizeof *each * 2 * (size_t)place.size);
	gather((double[]){ wrong, ring.adding > 0 ? ring.added * sizeof(double) / ring.adding / 1e9 : 0 }, 2, each);
	if (!place.rank)
		say(took, rounds, &ring, each);
}
