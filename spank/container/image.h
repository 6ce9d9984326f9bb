/*
 * From the words of --container-image to a tree on the node that nobody writes to.
 *
 * An image is kept once for each user on the shared root, as one squashfs file named by its digest, and unpacked once on
 * each node. One file is what a shared file system likes; and squashfs unpacks some times faster than gzipped layers,
 * so the work of converting is paid back at the second node or the second job (docs/decisions has the measurement).
 *
 * A tag is looked up once for a step: the node that is first asks the registry and fetches, the others wait for the
 * lock and take what it found, so all nodes of a step run the same image.
 */
#ifndef CONTAINER_IMAGE_H
#define CONTAINER_IMAGE_H

#include "cached_image.h"
#include "storage_paths.h"

/* Finds, fetches, unpacks. `said` is called with a sentence before something that takes its time. */
int image_get(const char *words, const struct storage_paths *paths, const char *step, void (*said)(const char *sentence),
	      struct image *image, struct report *report);

/* The tree of a squashfs file that was found earlier. */
int image_unpack(const struct storage_paths *paths, struct image *image, struct report *report);

#endif
