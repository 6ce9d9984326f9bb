/* The clock for waiting: it only goes forward, also where somebody sets the machine's time. */
#ifndef JAIL_MONOTONIC_H
#define JAIL_MONOTONIC_H

#include <stdint.h>

int64_t monotonic_us(void);
int64_t monotonic_ms(void);

#endif
