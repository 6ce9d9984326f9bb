/*
 * Root in name only cannot give files to others or become them, but dpkg, rpm and apt ask for it all the time. A seccomp
 * filter answers those calls with success and does nothing, as enroot and Charliecloud do it.
 */
#ifndef CONTAINER_FAKEROOT_H
#define CONTAINER_FAKEROOT_H

#include "../report.h"

int fakeroot_ownership(struct report *report);

#endif
