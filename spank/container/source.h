/*
 * What the words of --container-image mean.
 *
 *   /path, ./path                 a squashfs file, or an archive of docker or OCI
 *   nvcr.io#nvidia/pytorch:24.05  enroot's form: what stands before # is the registry
 *   nvcr.io/nvidia/pytorch:24.05  docker's form: a first part with a dot, a colon or `localhost` is the registry
 *   ubuntu:24.04                  of Docker Hub
 *   docker://… oci:… dir:… docker-archive:… oci-archive:…   skopeo's own words
 *
 * In enroot and Pyxis the second form means a repository of Docker Hub that nobody has; here it means what it says.
 */
#ifndef CONTAINER_SOURCE_H
#define CONTAINER_SOURCE_H

#include "../report.h"

enum source_kind { SOURCE_SQUASHFS, SOURCE_ARCHIVE, SOURCE_LAYOUT, SOURCE_REGISTRY };

struct source {
	enum source_kind kind;
	char path[4096];	/* of a file */
	char reference[1024];	/* as skopeo wants it */
	char registry[256];	/* host[:port] */
	char user[128];		/* for which credentials are looked up; may be empty */
};

int source_read(const char *image, struct source *source, struct report *report);

/* The reference with its tag replaced by a digest. */
int source_pin(const struct source *source, const char *digest, char *pinned, unsigned int size, struct report *report);

#endif
