/*
 * The way between two nodes: how long a small message takes, and what several connections carry in each direction.
 *
 * The bandwidth is the middle of many short windows, after the first: a shaped link carries a burst before it slows down,
 * and a pause of the machine is not the network's.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "deep.h"
#include "meet.h"

enum { PINGS = 2000, PING_BYTES = 64, PIECE = 256 * 1024, STREAMS_MAX = 64, WINDOWS = 20 };

struct stream {
	int socket;
	atomic_llong got;
};

static atomic_int over;

static void *pour(void *argument)
{
	struct stream *mine = argument;
	char *bytes = memory(PIECE);

	memset(bytes, 'x', PIECE);
	while (!over)
		if (send(mine->socket, bytes, PIECE, MSG_NOSIGNAL) < 0 && errno != EINTR && errno != EAGAIN)
			break;	/* the other end has enough */
	shutdown(mine->socket, SHUT_WR);
	free(bytes);
	return NULL;
}

static void *drink(void *argument)
{
	struct stream *mine = argument;
	char *bytes = memory(PIECE);
	ssize_t more;

	while ((more = recv(mine->socket, bytes, PIECE, 0)) > 0)
		mine->got += more;
	free(bytes);
	return NULL;
}

/* Gbit/s as the receiver sees it; the sender returns 0. */
static double flow(int from, struct stream *streams, int count, double seconds)
{
	int sends = place.rank == from, windows = WINDOWS;
	pthread_t threads[STREAMS_MAX];
	double rates[WINDOWS], last, before = 0;

	over = 0;
	for (int i = 0; i < count; i++) {
		streams[i].got = 0;
		streams[i].socket = sends ? speak_to(1 - from) : hear_from(from);
	}
	agree(0);
	for (int i = 0; i < count; i++)
		if ((errno = pthread_create(&threads[i], NULL, sends ? pour : drink, &streams[i])))
			broken("a thread: %m");
	last = now();
	for (int i = 0; i < windows; i++) {
		double total = 0, at;

		usleep((useconds_t)(seconds / windows * 1e6));
		for (int k = 0; k < count; k++)
			total += (double)streams[k].got;
		at = now();
		rates[i] = (total - before) * 8 / 1e9 / (at - last);
		before = total;
		last = at;
	}
	over = 1;
	for (int i = 0; i < count; i++) {
		if ((errno = pthread_join(threads[i], NULL)))
			broken("a thread does not end: %m");
		close(streams[i].socket);
	}
	return sends ? 0 : middle(rates + windows / 5, windows - windows / 5);
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
	double seconds = number("seconds", 2, 0.2, 600), latency, out, in, both[4];
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
