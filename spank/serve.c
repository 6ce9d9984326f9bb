/* The why is in serve.h. */
#define _GNU_SOURCE
#include "serve.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 1024, ACCEPTED = 256 }; /* so many wait in the kernel, and so many are taken from it at a time */

static int bind_all(int fd, const struct sockaddr *at, socklen_t size)
{
	int on = 1;

	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 || bind(fd, at, size) < 0)
		return -1;
	return listen(fd, BACKLOG) == 0 ? fd : -1;
}

int serve_open(struct serve *serve, long port)
{
	struct sockaddr_in6 at = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port), .sin6_addr = IN6ADDR_ANY_INIT };
	struct sockaddr_in at4 = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	int off = 0;

	for (int i = 0; i < SERVE_CLIENTS; i++)
		serve->clients[i].fd = -1;
	serve->listener = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (serve->listener >= 0 && setsockopt(serve->listener, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) == 0 &&
	    bind_all(serve->listener, (struct sockaddr *)&at, sizeof(at)) >= 0)
		return 0;
	if (serve->listener >= 0)
		(void)close(serve->listener);					       /* nothing was written to it */
	serve->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); /* a machine without IPv6 */
	return serve->listener < 0 || bind_all(serve->listener, (struct sockaddr *)&at4, sizeof(at4)) < 0 ? -1 : 0;
}

void serve_fds(const struct serve *serve, struct pollfd *fds)
{
	fds[0] = (struct pollfd){ .fd = serve->listener, .events = POLLIN };
	for (int i = 0; i < SERVE_CLIENTS; i++)
		fds[1 + i] = (struct pollfd){ .fd = serve->clients[i].fd, .events = POLLIN };
}

static void drop(struct serve_client *client)
{
	(void)close(client->fd); /* who did not take the answer asks again */
	client->fd = -1;
}

/* Whether the head of the request has ended; its end may come in two pieces. */
static bool is_asked(struct serve_client *client, const char *piece, int length)
{
	char text[sizeof(client->last) + SERVE_REQUEST];
	int kept = client->got < (int)sizeof(client->last) ? client->got : (int)sizeof(client->last), all = kept + length;

	memcpy(text, client->last + sizeof(client->last) - kept, (size_t)kept);
	memcpy(text + kept, piece, (size_t)length);
	client->got += length;
	kept = all < (int)sizeof(client->last) ? all : (int)sizeof(client->last);
	memcpy(client->last + sizeof(client->last) - kept, text + all - kept, (size_t)kept);
	return memmem(text, (size_t)all, "\r\n\r\n", 4) != NULL;
}

/* Takes what a client has said, and answers once it has asked. A new socket has room for the answer, so it is sent at one go. */
static void hear(struct serve_client *client, const char *answer)
{
	char piece[SERVE_REQUEST];
	ssize_t got = recv(client->fd, piece, sizeof(piece), MSG_DONTWAIT);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got > 0 && !is_asked(client, piece, (int)got) && client->got < SERVE_REQUEST)
		return;
	if (client->got > 0 && send(client->fd, answer, strlen(answer), MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
		(void)shutdown(client->fd, SHUT_WR); /* who is gone asks again */
	drop(client);
}

/* A free place, or that of the oldest. */
static struct serve_client *make_place(struct serve *serve)
{
	struct serve_client *oldest = &serve->clients[0];

	for (int i = 0; i < SERVE_CLIENTS; i++) {
		if (serve->clients[i].fd < 0)
			return &serve->clients[i];
		if (serve->clients[i].since < oldest->since)
			oldest = &serve->clients[i];
	}
	drop(oldest);
	return oldest;
}

void serve_turn(struct serve *serve, const struct pollfd *fds, int64_t now, const char *answer)
{
	for (int i = 0; i < SERVE_CLIENTS; i++) {
		if (serve->clients[i].fd >= 0 && fds[1 + i].revents != 0)
			hear(&serve->clients[i], answer);
		if (serve->clients[i].fd >= 0 && now - serve->clients[i].since > SERVE_MS)
			drop(&serve->clients[i]);
	}
	for (int i = 0; i < ACCEPTED && fds[0].revents != 0; i++) {
		int fd = accept4(serve->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		struct serve_client *place;

		if (fd < 0 && errno != ECONNABORTED && errno != EINTR)
			return; /* nobody else has come */
		if (fd < 0)
			continue;
		place = make_place(serve);
		*place = (struct serve_client){ .fd = fd, .since = now };
		hear(place, answer);
	}
}
