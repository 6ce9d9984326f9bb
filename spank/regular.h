/*
 * What slurmd opens for a user is a file or a folder.
 *
 * slurmd writes into the file of `sbcast` itself, holding a lock which every other `sbcast` on the node needs. A named pipe with a reader that does
 * not read lets it wait for as long as that reader lives; one without keeps the child that opens it. Slurm looks at neither. So in that child, which
 * has one thread and ends when it has opened the file, a seccomp filter hands each openat to a handler: it opens without waiting, and lets go what is
 * neither a file nor a folder. A call that says itself that it does not wait passes, which is how the handler calls.
 */
#ifndef JAIL_REGULAR_H
#define JAIL_REGULAR_H

#include "report.h"

/* From here on the calling process opens files and folders only; others fail with EINVAL. Needs CAP_SYS_ADMIN. */
int regular_only(struct report *report);

#endif
