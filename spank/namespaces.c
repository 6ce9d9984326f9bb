/* The why is in namespaces.h. */
#define _GNU_SOURCE
#include "namespaces.h"

#include <errno.h>
#include <sched.h>

int namespaces_make(int flag, struct report *report)
{
	const char *name = flag == CLONE_NEWNS ? "mount" : flag == CLONE_NEWPID ? "pid" : "ipc";
	const char *limit = flag == CLONE_NEWNS ? "mnt" : name;

	if (unshare(flag) == 0)
		return 0;
	if (errno == ENOSPC)
		return report_fail(report, "jail: cannot make a %s namespace: user.max_%s_namespaces of the Node is reached, by processes of any pod", name, limit);
	return report_fail(report, "jail: cannot make a %s namespace: %m", name);
}
