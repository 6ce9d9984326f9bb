/*
 * The holder: pid 1 of a job's pid namespace, and what keeps the job's namespaces.
 *
 * The first child of a new pid namespace is its init, and when the init ends the kernel kills everything in the
 * namespace. Were a task the init, the first task to end would kill the others; so a process of its own does nothing but
 * hold. Ending it is how a job ends: one SIGKILL, and no process that a user left behind survives it, whatever it did to
 * hide, and the mounts go with the last process. No namespace is bound to a file, so none can be left over.
 *
 * A job on a node has three mount namespaces. The outer one is the plan carried out with the pod's /proc: slurmstepd lives
 * there while tasks run, because it counts and signals them by the pod's process ids. The inner one is a copy with the /proc that
 * matches the pid namespace: tasks and sessions live there. The opening one is a copy with an empty /proc: slurmstepd is there
 * while it opens what a user has named (--input, --output, --error, --chdir, a folder of PMIx). In the pod's /proc such a name leads
 * out: the kernel lets every process follow /proc/self/task/T/root of its own threads and read /proc/self/mem, whatever its
 * capabilities. The holder lives in the inner one and keeps the other two open.
 *
 * They are made by a child of the first slurmstepd, which ends when the holder is ready: the holder becomes a child of the
 * machine's (or pod's) init, and no proctrack plugin, which follows parents, takes it for part of a step. The same child is
 * the one that waits where a file system hangs; slurmstepd waits only until a deadline, and knows the line of the plan.
 *
 * The holder keeps its capabilities on purpose. The kernel lets a process look into another (/proc/1/root, ptrace) only if
 * its own capabilities are at least as wide; the tasks' are narrower, so root among them cannot look into the holder.
 */
#ifndef JAIL_HOLDER_H
#define JAIL_HOLDER_H

#include <linux/limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "plan.h"
#include "report.h"

enum holder_made {
	HOLDER_READY = 0,
	HOLDER_FAILED = -1,	/* the report says why */
	HOLDER_LATE = -2,	/* something hangs; the report says at which line of the plan */
};

/* A process for ever: with the time of its start a pid is not another one's later. */
struct holder_id {
	pid_t pid;
	uint64_t start; /* ticks since boot */
};

/* A holder in use. -1 where nothing is open. */
struct holder {
	struct holder_id id;
	int pidfd;
	int outer;	/* its outer mount namespace */
	int opening;	/* the same mounts with an empty /proc */
	int proc;	/* the /proc of its pid namespace; -1 where the plan has none */
	int home;	/* pidfd of the process that uses it: the way back for the pids of its children */
};

/* The files that a holder keeps open, by number; all others are closed. */
enum { KEPT_OUTER = 3, KEPT_PROC = 4, KEPT_OPENING = 5 };

#define HOLDER_NONE { .pidfd = -1, .outer = -1, .opening = -1, .proc = -1, .home = -1 }

/* Makes the namespaces and the process. `ipc`: a System V and message queue namespace too. Waits up to `seconds`. */
enum holder_made holder_make(const struct plan *plan, bool ipc, int seconds, struct holder_id *id, struct report *report);

/* When a process started, or 0 where it is gone or a zombie. */
uint64_t holder_start_of(pid_t pid);

/* Whether the process lives. */
bool holder_lives(const struct holder_id *id);

/* Opens it for the calls below. Needs the /proc of the pid namespace that `id` is from. */
int holder_open(const struct holder_id *id, struct holder *holder, struct report *report);
void holder_close(struct holder *holder);

/* Moves the calling thread into the outer mount namespace; its working folder is `/` then. */
int holder_enter_outer(const struct holder *holder, struct report *report);

/* The same for the opening one, which has no process in its /proc. */
int holder_enter_opening(const struct holder *holder, struct report *report);

/* From the opening to the outer one, with the working folder that it has. */
int holder_leave_opening(const struct holder *holder, struct report *report);

/* The same for the inner one, for a thread that goes on to the outer one afterwards. */
int holder_enter_inner(const struct holder *holder, struct report *report);

/* Children of the calling thread are born in the holder's pid namespace from here on; _back undoes it. */
int holder_aim_children(const struct holder *holder, struct report *report);
int holder_aim_back(const struct holder *holder, struct report *report);

/* The name of a working folder; empty where it has none. */
struct holder_folder {
	char path[PATH_MAX];
};

/* Moves the calling process, which has one thread, into the inner mount and ipc namespaces. Its working folder is `/` then; `folder` is what it was. */
int holder_join_mounts(const struct holder *holder, struct holder_folder *folder, struct report *report);

/*
 * Goes to the folder of that name, or stays where there is none, or none for the caller. A user may put a link there meanwhile, so whoever acts
 * for a user calls this with the user's rights: with slurmstepd's it would be a way into the folders of others.
 */
int holder_go_back(const struct holder_folder *folder, struct report *report);

/* Opens the /proc of the holder's pid namespace; -1 where the plan has none. */
int holder_open_proc(const struct holder *holder);

/*
 * Kills the holder, and with it all in its pid namespace, and waits until it is gone. The kernel may need minutes for many processes, or for few
 * with much memory, so there is no limit as long as it gets on. -1 with a sentence when it has not for `seconds`.
 */
int holder_kill(const struct holder_id *id, int seconds, struct report *report);

#endif
