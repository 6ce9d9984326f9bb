/*
 * An image of a user: its squashfs file on the shared root, and its tree on the node. image.h finds it, fetch.h makes the
 * file, image_cache.h the tree.
 */
#ifndef CONTAINER_CACHED_IMAGE_H
#define CONTAINER_CACHED_IMAGE_H

#include "storage_paths.h"

struct image {
	char file[STORAGE_PATHS_MAX + 128];	/* the squashfs */
	char key[160];
	char tree[STORAGE_PATHS_MAX + 128];	/* where it is unpacked */
	int lock;			/* held as long as the tree is in use */
};

#endif
