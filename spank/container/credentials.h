/*
 * Credentials as enroot keeps them, for skopeo.
 *
 * skopeo itself finds docker's and podman's (~/.docker/config.json, ~/.config/containers/auth.json, REGISTRY_AUTH_FILE).
 * enroot has ~/.config/enroot/.credentials (or ENROOT_CONFIG_PATH), lines of netrc: `machine HOST login USER password WORD`.
 */
#ifndef CONTAINER_CREDENTIALS_H
#define CONTAINER_CREDENTIALS_H

#include <stddef.h>

#include "source.h"

/* Writes an authfile for the source's registry and gives its path: 1, or 0 where enroot knows nothing of it, or -1. */
int credentials_write(const struct source *source, char *path, size_t size, struct report *report);

#endif
