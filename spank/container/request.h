/*
 * What a user asks for with --container-…, in the words of Pyxis, so that scripts that were written for Pyxis run.
 *
 * One table serves srun's help, the options of the plugin and those of the helper. A value is looked at where the user
 * still sees it: in srun, sbatch and salloc, before there is a job.
 */
#ifndef CONTAINER_REQUEST_H
#define CONTAINER_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "../report.h"

enum name_use { NAME_AUTO, NAME_CREATE, NAME_EXEC, NAME_NO_EXEC };

struct request {
	char *image, *mounts, *workdir, *name, *save, *env, *unshare;
	int mount_home, remap_root, entrypoint, entrypoint_log, writable; /* -1: not said */
	/* Not the user's, but the place's. */
	char *job, *step, *tasks, *storage, *scope;
};

struct request_option {
	const char *name, *argument, *help;
	const char *variable; /* its name in the environment, as Pyxis has it */
	size_t field;
	int value;	      /* of an option without an argument */
};

#define REQUEST_EMPTY { .mount_home = -1, .remap_root = -1, .entrypoint = -1, .entrypoint_log = -1, .writable = -1 }

/* The n-th option of users, or NULL behind the last. */
const struct request_option *request_option(int n);

/*
 * Takes one option; -1 with a sentence where its value is not valid. The last one counts: an srun in a batch script gets
 * those of sbatch from Slurm first, and then its own.
 */
int request_take(struct request *request, const struct request_option *option, const char *argument,
		 struct report *report);

/* Takes what the environment says to options that were not given. `look` returns NULL where a variable is not set. */
int request_take_environment(struct request *request, const char *(*look)(void *context, const char *name), void *context,
			     struct report *report);

/* Reads `--container-…` and `--job= --step= --storage= --scope=` until the first other word; its index, or -1. */
int request_read(struct request *request, int argc, char **argv, struct report *report);

/* Writes words that request_read reads; they are the caller's to free, as one piece. NULL where memory is short. */
char **request_words(const struct request *request, const char *program, const char *verb);

/* Namespaces of --container-unshare, and what else a container that runs tells a joiner. */
enum { UNSHARE_NET = 1, UNSHARE_IPC = 2, UNSHARE_UTS = 4, UNSHARE_KINDS = 3 };

struct request_namespace {
	const char *word, *title;
	int flag;	/* CLONE_NEW… */
	const char *file;
};

/* The n-th namespace, whose bit is 1 << n. */
const struct request_namespace *request_namespace(int n);

/* The bits of the namespaces that --container-unshare lists. */
unsigned int request_unshared(const struct request *request);

/* The option that says the opposite of this one, or NULL. */
const struct request_option *request_opposite(const struct request_option *option);

/* Whether a container is wanted at all; -1 with a sentence where an option is given that means nothing without one. */
int request_is_wanted(const struct request *request, struct report *report);

/*
 * Whether the name means the container of a step of this job, as in JOB.STEP or JOB.batch; the step goes to `step` in digits.
 * A name of that form with the number of another job is a name as any other.
 */
bool request_names_step(const struct request *request, char *step, size_t size);

/* How --container-name=NAME:USE wants the name used; the length of NAME goes to `length`. */
enum name_use request_name_use(const struct request *request, size_t *length);

#endif
