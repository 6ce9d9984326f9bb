/*
 * What slurmstepd loads inside the jail is never the jail's.
 *
 * slurmstepd is not bounded: it could have every capability of slurmd, and its other threads are outside. A library that is loaded in it runs
 * with all of that, so root of the jail must not be able to choose one. slurmstepd's own libraries come from the bundle by their names, but two
 * parts of it load what a file says, and both come late, inside: glibc, what nsswitch.conf names, when somebody is looked up for the first
 * time; and PMIx (`srun --mpi=pmix`), the components below $HOME/.pmix and in the folders that its files of parameters name.
 */
#ifndef JAIL_LIBRARIES_H
#define JAIL_LIBRARIES_H

#include "report.h"

/* For the calling process, before it goes in: users, groups and hosts are from files and DNS, which are parts of glibc, and PMIx has no home. */
int libraries_bind(struct report *report);

#endif
