/* The why is in meet.h. */
#define _GNU_SOURCE
#include "meet.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "deep.h"

/* Ports below those that Linux gives to clients, eight for each job in case that some are taken. */
enum { FIRST_PORT = 20480, PORTS = 12288, TRIES = 8, PATIENCE_MS = 30000, HELLO_SECONDS = 2 };
static const uint64_t MAGIC = 0x736f7065722d6470;

struct hello {
	uint64_t magic, job;
	int32_t rank, port;
	char node[NAME_MAX_BYTES];
};

struct member {
	struct sockaddr_storage address;
	char node[NAME_MAX_BYTES];
	int hub;	/* task 0: the connection to that task; others: to task 0 */
};

static struct member *members;
static int door = -1;	/* where this task listens for the others */

static uint16_t port_of(int attempt)
{
	return (uint16_t)(FIRST_PORT + (place.job * 0x9e3779b97f4a7c15 >> 40) % (PORTS - TRIES) + (uint64_t)attempt);
}

static void set_port(struct sockaddr_storage *address, int port)
{
	if (address->ss_family == AF_INET6)
		((struct sockaddr_in6 *)address)->sin6_port = htons((uint16_t)port);
	else
		((struct sockaddr_in *)address)->sin_port = htons((uint16_t)port);
}

static socklen_t length_of(const struct sockaddr_storage *address)
{
	return address->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

/* Bounds every call on a connection, so that a task that is gone ends the others. */
static void ready(int socket, int seconds)
{
	struct timeval patience = { .tv_sec = seconds };
	int yes = 1;

	if (setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) ||
	    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) ||
	    setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience))
		broken("a connection: %m");
}

/* Listens at a port, or at any; -1 where it is taken. */
static int listen_at(int port)
{
	struct sockaddr_storage any = { .ss_family = AF_INET6 };
	int yes = 1, no = 0, found = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (found >= 0 && setsockopt(found, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no))
		broken("a socket: %m");
	if (found < 0) {	/* a kernel without IPv6 */
		any.ss_family = AF_INET;
		found = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	}
	set_port(&any, port);
	if (found < 0 || setsockopt(found, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes))
		broken("a socket: %m");
	if (bind(found, (struct sockaddr *)&any, length_of(&any)) || listen(found, 1024)) {
		if (errno != EADDRINUSE)
			broken("cannot listen: %m");
		close(found);
		return -1;
	}
	return found;
}

static int own_port(void)
{
	struct sockaddr_storage address;
	socklen_t length = sizeof address;

	if (getsockname(door, (struct sockaddr *)&address, &length))
		broken("a socket: %m");
	return ntohs(address.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&address)->sin6_port :
						     ((struct sockaddr_in *)&address)->sin_port);
}

static struct hello hello(void)
{
	struct hello own = { .magic = MAGIC, .job = place.job, .rank = place.rank, .port = door < 0 ? 0 : own_port() };

	snprintf(own.node, sizeof own.node, "%s", place.node);
	return own;
}

/* Whether a whole hello of this job came in time. */
static int receive_hello(int socket, struct hello *peer)
{
	size_t got = 0;

	while (got < sizeof *peer) {
		ssize_t more = recv(socket, (char *)peer + got, sizeof *peer - got, 0);

		if (more <= 0)
			return 0;
		got += (size_t)more;
	}
	peer->node[sizeof peer->node - 1] = '\0';
	return peer->magic == MAGIC && peer->job == place.job && peer->rank >= 0 && peer->rank < place.size &&
	       strspn(peer->node, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._") == strlen(peer->node);
}

static int accept_before(int listening, double end)
{
	struct pollfd asked = { .fd = listening, .events = POLLIN };
	double left = end - now();

	if (left <= 0 || poll(&asked, 1, (int)(left * 1000) + 1) <= 0)
		return -1;
	return accept4(listening, NULL, NULL, SOCK_CLOEXEC);
}

static void host(double end)
{
	int listening = -1, there = 1;

	for (int attempt = 0; listening < 0 && attempt < TRIES; attempt++)
		listening = listen_at(port_of(attempt));
	if (listening < 0)
		broken("the ports %d to %d are all taken", port_of(0), port_of(TRIES - 1));
	snprintf(members[0].node, sizeof members[0].node, "%s", place.node);
	while (there < place.size) {
		struct hello peer, mine = hello();
		int come = accept_before(listening, end);
		socklen_t length = sizeof members[0].address;

		if (come < 0 && now() < end)
			continue;
		if (come < 0) {
			for (int rank = 1; rank < place.size; rank++)
				if (members[rank].hub < 0)
					broken("%d of %d tasks came to %s, task %d did not", there, place.size, place.node, rank);
		}
		ready(come, HELLO_SECONDS);
		if (send(come, &mine, sizeof mine, MSG_NOSIGNAL) != sizeof mine || !receive_hello(come, &peer) || !peer.rank ||
		    members[peer.rank].hub >= 0 || getpeername(come, (struct sockaddr *)&members[peer.rank].address, &length)) {
			close(come);
			continue;
		}
		ready(come, PATIENCE_MS / 1000);
		set_port(&members[peer.rank].address, peer.port);
		memcpy(members[peer.rank].node, peer.node, sizeof peer.node);
		members[peer.rank].hub = come;
		there++;
	}
	close(listening);
	for (int rank = 1; rank < place.size; rank++) {
		int port = own_port();

		send_all(members[rank].hub, &port, sizeof port);
		send_all(members[rank].hub, members, sizeof *members * (size_t)place.size);
	}
}

/* Comes to task 0, if it is what answers there. */
static int come_to(const struct addrinfo *found, int attempt)
{
	struct sockaddr_storage address = { 0 };
	struct hello mine = hello(), peer;
	int made = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (made < 0)
		return -1;
	memcpy(&address, found->ai_addr, found->ai_addrlen);
	set_port(&address, port_of(attempt));
	ready(made, HELLO_SECONDS);
	if (connect(made, (struct sockaddr *)&address, length_of(&address)) || !receive_hello(made, &peer) || peer.rank ||
	    send(made, &mine, sizeof mine, MSG_NOSIGNAL) != sizeof mine) {
		close(made);
		return -1;
	}
	ready(made, PATIENCE_MS / 1000);
	return made;
}

static void join(double end)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found = NULL;
	struct member *listed = memory(sizeof *listed * (size_t)place.size);
	socklen_t length = sizeof members[0].address;
	int hub = -1, error = 0, port;

	for (int attempt = 0; hub < 0; attempt = (attempt + 1) % TRIES) {
		if (now() > end)
			broken("task 0 on %s does not answer: %s", place.first, error ? gai_strerror(error) : strerror(errno));
		error = getaddrinfo(place.first, NULL, &hints, &found);
		for (struct addrinfo *each = error ? NULL : found; each && hub < 0; each = each->ai_next)
			hub = come_to(each, attempt);
		if (!error)
			freeaddrinfo(found);
		if (hub < 0)
			usleep(50000);
	}
	receive_all(hub, &port, sizeof port);
	receive_all(hub, listed, sizeof *listed * (size_t)place.size);
	memcpy(members, listed, sizeof *listed * (size_t)place.size);
	free(listed);
	if (getpeername(hub, (struct sockaddr *)&members[0].address, &length))
		broken("a connection: %m");
	set_port(&members[0].address, port);
	members[0].hub = hub;
}

void meet(double seconds)
{
	double end = now() + seconds;

	members = memory(sizeof *members * (size_t)place.size);
	memset(members, 0, sizeof *members * (size_t)place.size);
	for (int rank = 0; rank < place.size; rank++)
		members[rank].hub = -1;
	door = listen_at(0);
	if (door < 0)
		broken("no port is free");
	if (place.rank)
		join(end);
	else
		host(end);
}

const char *node_of(int rank)
{
	return members[rank].node;
}

int speak_to(int rank)
{
	struct sockaddr_storage *address = &members[rank].address;
	struct hello mine = hello();
	int made = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (made < 0)
		broken("a socket: %m");
	ready(made, PATIENCE_MS / 1000);
	if (connect(made, (struct sockaddr *)address, length_of(address)))
		broken("cannot reach task %d on %s: %m", rank, members[rank].node);
	send_all(made, &mine, sizeof mine);
	return made;
}

int hear_from(int rank)
{
	double end = now() + PATIENCE_MS / 1e3;
	struct hello peer;

	while (now() < end) {
		int come = accept_before(door, end);

		if (come < 0)
			continue;
		ready(come, HELLO_SECONDS);
		if (receive_hello(come, &peer) && peer.rank == rank) {
			ready(come, PATIENCE_MS / 1000);
			return come;
		}
		close(come);
	}
	broken("task %d on %s does not connect", rank, members[rank].node);
}

void send_all(int socket, const void *bytes, size_t length)
{
	for (size_t sent = 0; sent < length;) {
		ssize_t more = send(socket, (const char *)bytes + sent, length - sent, MSG_NOSIGNAL);

		if (more < 0 && errno == EINTR)
			continue;
		if (more <= 0)
			broken("another task is gone: %m");
		sent += (size_t)more;
	}
}

void receive_all(int socket, void *bytes, size_t length)
{
	for (size_t got = 0; got < length;) {
		ssize_t more = recv(socket, (char *)bytes + got, length - got, 0);

		if (more < 0 && errno == EINTR)
			continue;
		if (more <= 0)
			broken("another task is gone: %s", more ? strerror(errno) : "it closed the connection");
		got += (size_t)more;
	}
}

void exchange(int out, const void *sent, size_t sends, int in, void *received, size_t receives)
{
	while (sends || receives) {
		struct pollfd both[2] = { { .fd = sends ? out : -1, .events = POLLOUT }, { .fd = receives ? in : -1, .events = POLLIN } };
		ssize_t more;

		if (poll(both, 2, PATIENCE_MS) <= 0)
			broken("no data was transferred for %d s", PATIENCE_MS / 1000);
		if (both[0].revents) {
			more = send(out, sent, sends, MSG_NOSIGNAL | MSG_DONTWAIT);
			if (more < 0 && errno != EAGAIN && errno != EINTR)
				broken("another task is gone: %m");
			sent = (const char *)sent + (more > 0 ? more : 0);
			sends -= (size_t)(more > 0 ? more : 0);
		}
		if (both[1].revents) {
			more = recv(in, received, receives, MSG_DONTWAIT);
			if (!more || (more < 0 && errno != EAGAIN && errno != EINTR))
				broken("another task is gone: %s", more ? strerror(errno) : "it closed the connection");
			received = (char *)received + (more > 0 ? more : 0);
			receives -= (size_t)(more > 0 ? more : 0);
		}
	}
}

int agree(int word)
{
	int ignored;

	if (place.rank) {
		send_all(members[0].hub, &word, sizeof word);
		receive_all(members[0].hub, &word, sizeof word);
		return word;
	}
	for (int rank = 1; rank < place.size; rank++)
		receive_all(members[rank].hub, &ignored, sizeof ignored);
	for (int rank = 1; rank < place.size; rank++)
		send_all(members[rank].hub, &word, sizeof word);
	return word;
}

void gather(const double *mine, int count, double *all)
{
	size_t size = sizeof *mine * (size_t)count;

	if (place.rank) {
		send_all(members[0].hub, mine, size);
		return;
	}
	memcpy(all, mine, size);
	for (int rank = 1; rank < place.size; rank++)
		receive_all(members[rank].hub, (char *)all + size * (size_t)rank, size);
}
