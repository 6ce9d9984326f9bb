/* The why is in monotonic.h. */
#define _GNU_SOURCE
#include "monotonic.h"

#include <time.h>

int64_t monotonic_us(void)
{
	struct timespec time = { 0 };

	(void)clock_gettime(CLOCK_MONOTONIC, &time); /* cannot fail with this clock */
	return (int64_t)time.tv_sec * 1000000 + time.tv_nsec / 1000;
}

int64_t monotonic_ms(void)
{
	return monotonic_us() / 1000;
}
