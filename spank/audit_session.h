/*
 * The mark of a step: what tells its processes from those of the job's other steps, when it ends.
 *
 * The steps of a job share their namespaces, so the end of one cannot end a namespace, and what a task has left behind is
 * nobody's child any more. The mark is the kernel's audit session: slurmstepd begins one of its own, every process that it
 * forks belongs to it, in whatever session, group or user namespace it hides, none can leave it without
 * CAP_AUDIT_CONTROL, which the jail does not give, and it can be read of any process. It also makes the machine's audit
 * log name the user. Where the kernel has none (no CONFIG_AUDIT), or slurmd was itself started from a login
 * session, processes that a step has left behind end with the job.
 */
#ifndef JAIL_AUDIT_SESSION_H
#define JAIL_AUDIT_SESSION_H

#include <sys/types.h>

#include "holder.h"
#include "report.h"

/* Begins a session for the calling thread and its children. Returns its number, 0 where that is not possible. */
unsigned int audit_session_set(uid_t uid);

/* Kills the processes of the holder's pid namespace that have the mark, and waits up to `seconds` until there are none. */
int audit_session_kill(unsigned int mark, const struct holder *holder, int seconds, struct report *report);

#endif
