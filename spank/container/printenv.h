/*
 * The command that an entry point gets: it writes its environment to descriptor 3.
 *
 * It runs in the image, whose C library may be another one or none, so it is linked statically and carried inside the helper
 * (embedded.c). The helper itself cannot be static, because it looks accounts up by NSS.
 */
#ifndef CONTAINER_PRINTENV_H
#define CONTAINER_PRINTENV_H

enum { PRINTENV_FD = 3 };

/* Writes records that end with a NUL each, and an empty one, to a descriptor; -1 where that fails. */
int printenv_write(int fd);

/* An open file that can be executed as /proc/self/fd/N, or -1 with errno. */
int printenv_open(void);

#endif
