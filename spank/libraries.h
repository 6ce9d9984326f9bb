/*
 * What slurmstepd loads inside the jail is never the jail's, and what it writes by itself never goes where a user put a link.
 *
 * slurmstepd is not bounded: it could have every capability of slurmd, and its other threads are outside. A library that is loaded in it runs
 * with all of that, so root of the jail must not be able to choose one. slurmstepd's own libraries come from the bundle by their names, but two
 * parts of it load what a file says, and both come late, inside: glibc, what nsswitch.conf names, when somebody is looked up for the first
 * time; and PMIx (`srun --mpi=pmix`), the components below $HOME/.pmix and in the folders that its files of parameters name.
 *
 * A user's PMIX_DEBUG has PMIx write what it does to a file with a name that anybody can guess, in the folder for temporary files. There the user had
 * put links: slurmstepd overwrote any file of the jail as root, where the Node's fs.protected_symlinks is 0. So slurmstepd has no such folder.
 */
#ifndef JAIL_LIBRARIES_H
#define JAIL_LIBRARIES_H

#include "report.h"

/* For the calling process, before it goes in: users, groups and hosts are from files and DNS, which are parts of glibc, and PMIx has no home. */
int libraries_bind(struct report *report);

#endif
