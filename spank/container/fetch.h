/*
 * Fetching an image and making it one squashfs file: skopeo brings it, umoci lays its layers over each other,
 * mksquashfs packs the tree. The image's own configuration goes into the tree (config.h).
 *
 * It happens in the container's folder on the node, which goes with the job even where that is killed; in the cache on the shared root a file appears only when it is whole.
 */
#ifndef CONTAINER_FETCH_H
#define CONTAINER_FETCH_H

#include "cached_image.h"
#include "source.h"

int fetch_digest(const struct source *source, char *digest, size_t size, struct report *report);

/* Makes image->file. */
int fetch_image(const struct source *source, const char *reference, const struct storage_paths *paths, const struct image *image,
		struct report *report);

#endif
