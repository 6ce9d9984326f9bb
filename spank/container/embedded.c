/* The program of printenv.c, as the Makefile has just linked it. */
#define _GNU_SOURCE
#include "printenv.h"

#include <sys/mman.h>
#include <unistd.h>

__asm__(".section .rodata\n"
	"printenv_begin: .incbin \"" PRINTENV_FILE "\"\n"
	"printenv_end:\n"
	".previous\n");

extern const char printenv_begin[] __attribute__((visibility("hidden"))), printenv_end[] __attribute__((visibility("hidden")));

int printenv_open(void)
{
	int fd = memfd_create("entry-point-command", 0); /* not close-on-exec: /proc/self/fd is looked up by what is executed */

	for (const char *at = printenv_begin; fd >= 0 && at < printenv_end;) {
		ssize_t done = write(fd, at, (size_t)(printenv_end - at));

		if (done <= 0) {
			(void)close(fd);
			return -1;
		}
		at += done;
	}
	return fd;
}
