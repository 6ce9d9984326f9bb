/*
 * jail-watch: says over HTTP whether a step could enter the jail here.
 *
 *   jail-watch --plan PATH --port N [--period SECONDS] [--deadline SECONDS] [--name WORDS] [--writable]
 *   jail-watch --plan PATH --once [--deadline SECONDS]      one look: exit code 0, or 1 and the sentence on stderr
 *
 * 200 while every source of the plan that this container has, and every mount point of the jail, answers; else 503 with one
 * sentence of at most 700 bytes. The 200 has four lines of less than 1000 bytes together:
 *
 *   ok
 *   a sentence about a root (by the name given) that is almost full, which harms no step yet; else an empty line
 *   readOnly true|false                    whether the root's file system takes no writes, as after a fault of its disk
 *   room BYTES FREE FILES FREE MICROSECONDS    of the root, as ordinary users can have them; how long the look took
 *
 * `--writable` says that the root is mounted here to be written to. A container that has it read-only cannot tell by its own
 * mount whether others can write; the file system's own state is asked for then.
 *
 * Anybody may connect, so the port answers as serve.h says. It may still be flooded away: so the operator drains no node because
 * this port is silent, but asks by way of the kubelet (`--once`), which nobody else reaches.
 *
 * A storage that is gone may hold whoever touches it for ever, in a sleep that no signal ends. So this process never touches the
 * jail: a child does (look.h), which says what it is about to touch and has a deadline. One that is stuck is killed and left
 * behind, and none is made beside it; the storage answers again when it is gone, and the next one looks at once.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "look.h"
#include "monotonic.h"
#include "report.h"
#include "serve.h"

enum { EXIT_USAGE = 64, EXIT_STEP = 71, TICK_MS = 100 };

struct options {
	struct look_wish look;
	bool once;
	long port, period, deadline;
};

/* What is known: the sentences are empty while all is well. `child` looks, and is about to touch `touched`. */
struct watch {
	struct report trouble, full;
	char touched[512], sizes[120];
	pid_t child;
	int channel;
	bool has_looked, is_late, is_read_only;
	int64_t began, next;
};

static int start_look(struct watch *watch, const struct options *options)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return report_fail(&watch->trouble, "jail: cannot make a channel: %m");
	watch->child = fork();
	if (watch->child == 0)
		look_and_tell(&options->look, pair[1]);
	if (close(pair[1]) < 0 || watch->child < 0) {
		(void)close(pair[0]); /* nothing was written to it */
		return report_fail(&watch->trouble, "jail: cannot start a check: %m");
	}
	watch->channel = pair[0];
	watch->began = monotonic_ms();
	watch->is_late = false;
	return 0;
}

/* Says a change once, for the container's log. */
static void conclude(struct watch *watch, const char *sentence)
{
	watch->has_looked = true;
	if (strcmp(watch->trouble.text, sentence) == 0)
		return;
	(void)snprintf(watch->trouble.text, sizeof(watch->trouble.text), "%.700s", sentence);
	(void)fprintf(stderr, "soperator: %s\n", sentence[0] != '\0' ? sentence : "jail: every mount of the plan is ready");
}

/* Takes what the child said; a result that comes after the deadline is news like any other. */
static void hear(struct watch *watch)
{
	char message[1024];
	ssize_t got = recv(watch->channel, message, sizeof(message) - 1, MSG_DONTWAIT);

	if (got <= 0)
		return;
	message[got] = '\0';
	if (message[0] == LOOK_RESULT)
		conclude(watch, message + 1);
	else if (message[0] == LOOK_ROOM)
		(void)snprintf(watch->full.text, sizeof(watch->full.text), "%.200s", message + 1);
	else if (message[0] == LOOK_READ_ONLY)
		watch->is_read_only = message[1] == '1';
	else if (message[0] == LOOK_SIZES)
		(void)snprintf(watch->sizes, sizeof(watch->sizes), "%.110s", message + 1);
	else
		(void)snprintf(watch->touched, sizeof(watch->touched), "%.500s", message + 1);
}

/* Ends a look that has ended, or that is late; a late one may stay for long, and is asked for at each call. */
static void follow(struct watch *watch, const struct options *options)
{
	int status = 0;
	pid_t got = waitpid(watch->child, &status, WNOHANG);

	if (got == 0) {
		if (!watch->is_late && monotonic_ms() - watch->began > options->deadline * 1000) {
			char text[700];

			(void)snprintf(text, sizeof(text), "jail: %s does not answer within %ld s", watch->touched, options->deadline);
			conclude(watch, text);
			watch->is_late = true;
			(void)kill(watch->child, SIGKILL); /* it is there: nobody has waited for it */
		}
		return;
	}
	while (recv(watch->channel, &(char){ 0 }, 1, MSG_PEEK | MSG_DONTWAIT) > 0)
		hear(watch);
	if (!watch->is_late && (!WIFEXITED(status) || WEXITSTATUS(status) != 0))
		conclude(watch, "jail: the check of the mounts ended unexpectedly");
	(void)close(watch->channel); /* nothing was written to it */
	watch->child = 0;
	watch->next = watch->is_late ? monotonic_ms() : monotonic_ms() + options->period * 1000;
}

/* The whole HTTP answer of this moment. */
static void write_answer(const struct watch *watch, char *text, size_t size)
{
	bool is_well = watch->trouble.text[0] == '\0';
	char body[1000];

	if (!is_well)
		(void)snprintf(body, sizeof(body), "%.700s", watch->trouble.text);
	else
		(void)snprintf(body, sizeof(body), "ok\n%.200s\nreadOnly %s\nroom %s", watch->full.text, watch->is_read_only ? "true" : "false", watch->sizes);
	(void)snprintf(text, size, "HTTP/1.1 %s\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s\n",
		       is_well ? "200 OK" : "503 Service Unavailable", strlen(body) + 1, body);
}

static int run(const struct options *options)
{
	struct watch watch = { .trouble = { "jail: not looked at yet" }, .channel = -1 };
	static struct serve serve;
	char text[SERVE_ANSWER];

	if (serve_open(&serve, options->port) < 0) {
		(void)fprintf(stderr, "soperator: jail: cannot listen on port %ld: %m\n", options->port);
		return EXIT_STEP;
	}
	for (;;) {
		struct pollfd fds[1 + SERVE_FDS];

		if (watch.child == 0 && monotonic_ms() >= watch.next && start_look(&watch, options) < 0)
			watch.next = monotonic_ms() + options->period * 1000;
		fds[0] = (struct pollfd){ .fd = watch.child != 0 ? watch.channel : -1, .events = POLLIN };
		serve_fds(&serve, fds + 1);
		if (!watch.has_looked)
			fds[1].fd = -1; /* who asks early waits for the first look */
		if (poll(fds, sizeof(fds) / sizeof(fds[0]), TICK_MS) < 0) {
			if (errno != EINTR)
				return EXIT_STEP;
			continue; /* what the kernel says of each is not to be read then */
		}
		if (fds[0].fd >= 0 && (fds[0].revents & POLLIN) != 0)
			hear(&watch);
		if (watch.child != 0)
			follow(&watch, options);
		write_answer(&watch, text, sizeof(text));
		serve_turn(&serve, fds + 1, monotonic_ms(), text);
	}
}

static int run_once(const struct options *options)
{
	struct watch watch = { .trouble = { "" }, .channel = -1 };

	if (start_look(&watch, options) < 0) {
		(void)fprintf(stderr, "soperator: %s\n", watch.trouble.text);
		return EXIT_STEP;
	}
	while (watch.child != 0 && !watch.is_late) {
		struct pollfd said = { .fd = watch.channel, .events = POLLIN };

		if (poll(&said, 1, 1) < 0 && errno != EINTR)
			return EXIT_STEP;
		if ((said.revents & POLLIN) != 0)
			hear(&watch);
		follow(&watch, options);
	}
	return watch.trouble.text[0] == '\0' ? 0 : 1;
}

static bool parse_number(const char *text, long most, long *number)
{
	char *end = NULL;

	*number = strtol(text, &end, 10);
	return *end == '\0' && *number > 0 && *number <= most;
}

static bool is_flag(const char *word)
{
	return strcmp(word, "--once") == 0 || strcmp(word, "--writable") == 0;
}

static bool parse_options(char **words, struct options *options)
{
	for (; words[0] != NULL && (words[1] != NULL || is_flag(words[0])); words += 2) {
		if (strcmp(words[0], "--once") == 0)
			options->once = true, words--;
		else if (strcmp(words[0], "--writable") == 0)
			options->look.is_writable = true, words--;
		else if (strcmp(words[0], "--plan") == 0)
			options->look.plan = words[1];
		else if (strcmp(words[0], "--name") == 0)
			options->look.name = words[1];
		else if (strcmp(words[0], "--port") == 0 && !parse_number(words[1], UINT16_MAX, &options->port))
			return false;
		else if (strcmp(words[0], "--period") == 0 && !parse_number(words[1], 3600, &options->period))
			return false;
		else if (strcmp(words[0], "--deadline") == 0 && !parse_number(words[1], 3600, &options->deadline))
			return false;
		else if (strncmp(words[0], "--p", 3) != 0 && strcmp(words[0], "--deadline") != 0)
			return false;
	}
	return words[0] == NULL && options->look.plan != NULL && options->once == (options->port == 0);
}

/* As process 1 of its container it sees no signal that it does not ask for. */
static void stop(int number)
{
	(void)number;
	_exit(0);
}

int main(int argc, char **argv)
{
	struct options options = { .look = { .name = "the shared root" }, .period = 2, .deadline = 5 };
	struct sigaction action = { .sa_handler = stop };

	if (argc < 1 || !parse_options(argv + 1, &options)) {
		(void)fputs("usage: jail-watch --plan PATH (--port N [--period SECONDS] | --once) [--deadline SECONDS] [--name WORDS] [--writable]\n", stderr);
		return EXIT_USAGE;
	}
	if (sigaction(SIGTERM, &action, NULL) < 0 || sigaction(SIGINT, &action, NULL) < 0)
		return EXIT_STEP;
	return options.once ? run_once(&options) : run(&options);
}
