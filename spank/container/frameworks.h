/*
 * Variables of Slurm under the names that PyTorch and PMIx look for. Sites of Pyxis have them by two extra hooks of enroot, and
 * scripts rely on them. What the user or the image has set stays.
 *
 * For images with PYTORCH_VERSION: RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR (the first node of the step), MASTER_PORT (from the
 * job's number, so that two jobs on a node rarely meet) and OMP_NUM_THREADS=1 where a node has several tasks.
 * For all: PMIX_MCA_psec and PMIX_MCA_gds from PMIX_SECURITY_MODE and PMIX_GDS_MODULE.
 */
#ifndef CONTAINER_FRAMEWORKS_H
#define CONTAINER_FRAMEWORKS_H

#include "environment.h"

int frameworks_set(const struct variables *variables);

/* The first host of a list as Slurm writes it, `a[3,5-7],b`; false where it does not fit or is none. */
bool frameworks_first_host(const char *list, char *host, size_t size);

#endif
