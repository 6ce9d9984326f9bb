/*
 * A small HTTP server for one answer, on a port that anybody may reach.
 *
 * A client that says nothing, speaks for ever or does not read costs a place and nobody's time: no call waits for it. There are
 * SERVE_CLIENTS places. Each client has SERVE_MS from its arrival; the oldest goes first where a place is needed. A client that
 * means it, such as the kubelet, has asked before its connection is accepted, so it is answered at once and needs its place for a moment.
 */
#ifndef JAIL_SERVE_H
#define JAIL_SERVE_H

#include <poll.h>
#include <stdint.h>

enum { SERVE_CLIENTS = 128, SERVE_MS = 2000, SERVE_REQUEST = 4096, SERVE_ANSWER = 1280, SERVE_FDS = 1 + SERVE_CLIENTS };

struct serve_client {
	int fd; /* -1: the place is free */
	int64_t since;
	int got; /* bytes of the request */
	char last[3];
};

struct serve {
	int listener;
	struct serve_client clients[SERVE_CLIENTS];
};

/* Listens on a port of all addresses, of both families where there are both. -1 with errno where that fails. */
int serve_open(struct serve *serve, long port);

/* Puts what to poll for into the SERVE_FDS of `fds`. */
void serve_fds(const struct serve *serve, struct pollfd *fds);

/* With those that were polled: accepts who has come, answers who has asked with `answer`, a whole HTTP answer, drops who is late. `now` in ms. */
void serve_turn(struct serve *serve, const struct pollfd *fds, int64_t now, const char *answer);

#endif
