/* The why is in atfork.h. */
#define _GNU_SOURCE
#include "atfork.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "caps.h"

static const struct holder *target; /* NULL: nobody follows */
static bool refuses;		    /* children of the main thread end at once */
static void (*say_sentence)(const char *sentence);

/* What `before` found out for the other two; they run in the same thread, or in its copy. */
static _Thread_local struct {
	bool follows, aimed;
	struct caps_saved caps;
} fork_state;

static void before(void)
{
	struct report report = { "" };

	fork_state.follows = (refuses || target != NULL) && gettid() == getpid();
	fork_state.aimed = false;
	if (!fork_state.follows || refuses)
		return;
	/* Slurm forks with the effective user id of the user; the capabilities are then only permitted. */
	if (caps_raise(&fork_state.caps, &report) == 0) {
		fork_state.aimed = holder_aim_children(target, &report) == 0;
		(void)caps_restore(&fork_state.caps, &report);
	}
	if (report.text[0] != '\0')
		say_sentence(report.text);
}

static void after_in_parent(void)
{
	struct report report = { "" };
	struct caps_saved caps;

	if (!fork_state.aimed)
		return;
	fork_state.aimed = false;
	if (caps_raise(&caps, &report) == 0) {
		(void)holder_aim_back(target, &report);
		(void)caps_restore(&caps, &report);
	}
	if (report.text[0] != '\0')
		say_sentence(report.text);
}

static void after_in_child(void)
{
	struct report report = { "" };
	struct holder_folder folder;
	struct caps_saved caps;

	if (!fork_state.follows)
		return;
	if (!fork_state.aimed || caps_raise(&caps, &report) < 0 || holder_join_mounts(target, &folder, &report) < 0 ||
	    caps_bound(&report) < 0 || caps_restore(&caps, &report) < 0 || holder_go_back(&folder, &report) < 0) {
		if (report.text[0] != '\0')
			say_sentence(report.text);
		_exit(127);
	}
	/* Until it executes a program it is a copy of slurmstepd, with what that has in memory and open: root of the job must not look into it. */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		_exit(127);
	target = NULL; /* its own children are where they belong by birth */
}

static int watch_forks(struct report *report)
{
	errno = pthread_atfork(before, after_in_parent, after_in_child);
	return errno == 0 ? 0 : report_fail(report, "jail: cannot watch the forks of slurmstepd: %m");
}

int atfork_start(const struct holder *holder, void (*say)(const char *sentence), struct report *report)
{
	if (watch_forks(report) < 0)
		return -1;
	say_sentence = say;
	target = holder;
	return 0;
}

int atfork_refuse(struct report *report)
{
	if (watch_forks(report) < 0)
		return -1;
	refuses = true;
	return 0;
}

void atfork_stop(void)
{
	target = NULL;
	refuses = false;
}
