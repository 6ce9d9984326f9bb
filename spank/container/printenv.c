/* The why is in printenv.h. */
#define _GNU_SOURCE
#include "printenv.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static int write_all(int fd, const char *text, size_t length)
{
	while (length > 0) {
		ssize_t done = write(fd, text, length);

		if (done < 0 && errno != EINTR)
			return -1;
		if (done > 0)
			text += done, length -= (size_t)done;
	}
	return 0;
}

int printenv_write(int fd)
{
	for (char **each = environ; *each != NULL; each++)
		if ((*each)[0] != '\0' && write_all(fd, *each, strlen(*each) + 1) < 0)
			return -1;
	return write_all(fd, "", 1);
}

#ifdef PRINTENV_MAIN
int main(void)
{
	return printenv_write(PRINTENV_FD) < 0;
}
#endif
