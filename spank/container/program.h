/*
 * Running skopeo, umoci, mksquashfs and unsquashfs, which lie beside the helper, or else in PATH.
 *
 * They come with their own libraries, so the user's LD_ variables are not for them. What a program says on stderr is
 * kept back; when it fails, its last words become part of our one sentence.
 */
#ifndef CONTAINER_PROGRAM_H
#define CONTAINER_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

#include "../report.h"

struct program {
	const char *const *words;
	const char *folder;	/* to run in, and for temporary files; NULL: where we are */
	bool has_file_rights;	/* in a user namespace of its own (userns.h) */
	char *output;		/* what it prints, without the last newline; may be NULL */
	size_t output_size;
	const char *output_file; /* or where that goes */
	char complaint[512];	/* what it said last */
};

/* Runs it and waits; -1 with a sentence that begins with `what` where it cannot be run or its code is not 0. */
int program_run(struct program *program, const char *what, struct report *report);

/* Lets go of what the step's output goes to: as long as anybody holds it, srun waits for more. */
void program_let_go(void);

#endif
