/*
 * The trees of images on a node: one for each user and image, which all his containers there lie over.
 *
 * A tree appears by a rename when it is whole. Who uses it holds a shared lock. Trees without a lock go, the one that was
 * used longest ago first, when the disk has less than a fifth left.
 */
#ifndef CONTAINER_IMAGE_CACHE_H
#define CONTAINER_IMAGE_CACHE_H

#include "cached_image.h"

/* Unpacks image->file to image->tree unless it is there, and holds its lock. */
int image_cache_get(const struct storage_paths *paths, struct image *image, struct report *report);

/* Removes the files of a folder that are older. */
void image_cache_forget_old(const char *folder, long seconds);

#endif
