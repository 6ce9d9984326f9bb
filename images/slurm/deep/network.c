/*
 * The way between two nodes: how long a small message takes, and what several connections carry in each direction.
 *
 * The beginning does not count: connections take their time to become fast, and a shaped link carries a burst before it
 * becomes slow.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "deep.h"
#include "meet.h"

enum { PINGS = 2000, PING_BYTES = 64, PIECE = 256 * 1024, STREAMS_MAX = 64, SILENCE = 20 };
#define WARM 0.2

struct stream {
	int socket;
	atomic_llong got;
};

static atomic_int over;

static void pause_for(double seconds)
{
	struct timespec left = { .tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9) };

	while (nanosleep(&left, &left) && errno == EINTR)
		;
}

static void *pour(void *argument)
{
	struct stream *mine = argument;
	char *bytes = memory(PIECE);

	memset(bytes, 'x', PIECE);
	while (!over)
		if (send(mine->socket, bytes, PIECE, MSG_NOSIGNAL) < 0 && errno != EINTR && errno != EAGAIN)
			break;	/* the other end has enough */
	free(bytes);
	return NULL;
}

static void *drink(void *argument)
{
	struct stream *mine = argument;
	char *bytes = memory(PIECE);
	ssize_t more;

	while (!over && (more = recv(mine->socket, bytes, PIECE, 0)) > 0)
		mine->got += more;
	free(bytes);
	return NULL;
}

static double total(const struct stream *streams, int count)
{
	double sum = 0;

	for (int i = 0; i < count; i++)
		sum += (double)streams[i].got;
	return sum;
}

/* Gbit/s as the receiver sees it; the sender returns 0, and sends until the receiver has seen enough. */
static double flow(int from, struct stream *streams, int count, double seconds)
{
	int sends = place.rank == from;
	pthread_t threads[STREAMS_MAX];
	double rate = 0, began, before;

	over = 0;
	for (int i = 0; i < count; i++) {
		streams[i].got = 0;
		streams[i].socket = sends ? speak_to(1 - from) : hear_from(from);
	}
	agree(0);
	for (int i = 0; i < count; i++)
		if ((errno = pthread_create(&threads[i], NULL, sends ? pour : drink, &streams[i])))
			broken("a thread: %m");
	if (!sends) {
		pause_for(seconds * WARM);
		before = total(streams, count);
		began = now();
		pause_for(seconds * (1 - WARM));
		while (total(streams, count) <= before)	/* nothing is no rate yet */
			if (now() - began < SILENCE)
				pause_for(0.01);
			else
				broken("for %d s no data arrived from %s", SILENCE, node_of(from));
		rate = (total(streams, count) - before) * 8 / 1e9 / (now() - began);
	}
	agree(0);
	over = 1;
	for (int i = 0; i < count; i++) {
		struct linger forget = { .l_onoff = 1 };	/* what still waits to be sent would be in the way of the next direction */

		if (setsockopt(streams[i].socket, SOL_SOCKET, SO_LINGER, &forget, sizeof forget))
			broken("a connection: %m");
		shutdown(streams[i].socket, SHUT_RDWR);	/* wakes its thread; the other end may be gone already */
		if ((errno = pthread_join(threads[i], NULL)))
			broken("a thread does not end: %m");
		close(streams[i].socket);
	}
	return rate;
}

static double latency_us(void)
{
	static double took[PINGS];
	char bytes[PING_BYTES] = "ping";
	int socket = place.rank ? speak_to(0) : hear_from(1);

	for (int i = 0; i < PINGS; i++) {
		double began = now();

		if (place.rank)
			receive_all(socket, bytes, sizeof bytes);
		send_all(socket, bytes, sizeof bytes);
		if (!place.rank)
			receive_all(socket, bytes, sizeof bytes);
		took[i] = (now() - began) / 2 * 1e6;
	}
	close(socket);
	return middle(took, PINGS);
}

void measure_network(void)
{
	double seconds = number("seconds", 2, 0.2, 20), latency, out, in, both[4];
	int count = (int)number("streams", 4, 1, STREAMS_MAX);
	struct stream *streams = memory(sizeof *streams * (size_t)count);

	if (place.size != 2)
		broken("it measures two nodes, and this step has %d tasks", place.size);
	meet(number("patience", 60, 0.1, 600));
	latency = latency_us();
	out = flow(0, streams, count, seconds);
	in = flow(1, streams, count, seconds);
	gather((double[]){ out, in }, 2, both);
	if (place.rank)
		return;
	out = both[2];	/* the second task received what the first one sent */
	printf("{\"soperator\": 1, \"readings\": [{\"of\": \"%s %s\", \"gbps\": %.4f, \"out\": %.4f, \"in\": %.4f, \"latency\": %.1f, \"streams\": %d}]}\n",
	       node_of(0), node_of(1), out < in ? out : in, out, in, latency, count);
}
