/* The why is in opening_timer.h. */
#define _GNU_SOURCE
#include "opening_timer.h"

#include <signal.h>
#include <slurm/spank.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

static timer_t timer;
static bool is_running;

static void interrupt(int number)
{
	(void)number;
}

void opening_timer_start(int seconds)
{
	struct sigaction action = { .sa_handler = interrupt }; /* without SA_RESTART */
	struct itimerspec times = { .it_value.tv_sec = seconds, .it_interval.tv_nsec = 100 * 1000 * 1000 };
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMAX - 1 };

	event._sigev_un._tid = gettid();
	if (sigaction(event.sigev_signo, &action, NULL) < 0 || timer_create(CLOCK_MONOTONIC, &event, &timer) < 0 ||
	    timer_settime(timer, 0, &times, NULL) < 0)
		slurm_debug("jail: Slurm will wait for a file that does not open: %m");
	else
		is_running = true;
}

void opening_timer_stop(void)
{
	if (is_running)
		(void)timer_delete(timer); /* cannot fail: it is there */
	is_running = false;
}
