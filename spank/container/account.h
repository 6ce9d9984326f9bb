/*
 * The user's account in the container: a line in /etc/passwd and /etc/group where the image has none for these ids.
 * Open MPI, Python's getpass and shells' prompts fail or complain without.
 */
#ifndef CONTAINER_ACCOUNT_H
#define CONTAINER_ACCOUNT_H

#include "../report.h"

int account_add(int root_fd, struct report *report);

#endif
