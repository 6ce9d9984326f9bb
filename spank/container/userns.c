/* The why is in userns.h. */
#define _GNU_SOURCE
#include "userns.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int write_file(const char *path, const char *text, struct report *report)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0) {
		report_fail(report, "container: cannot write %s: %m", path);
		if (fd >= 0)
			(void)close(fd);
		return -1;
	}
	return close(fd) == 0 ? 0 : report_fail(report, "container: cannot close %s: %m", path);
}

int userns_enter(int flags, uid_t uid, gid_t gid, struct report *report)
{
	uid_t outer_uid = geteuid();
	gid_t outer_gid = getegid();
	char map[64];

	if (unshare(CLONE_NEWUSER | flags) < 0)
		return errno == ENOSPC ? report_fail(report, "container: cannot make a user namespace: user.max_user_namespaces, or that of another kind, "
						     "of the Node is reached, by processes of any pod")
				       : report_fail(report, "container: cannot make a user namespace (does the kernel or a seccomp profile forbid "
						     "it to users?): %m");
	(void)snprintf(map, sizeof(map), "%u %u 1\n", uid, outer_uid);
	if (write_file("/proc/self/setgroups", "deny", report) < 0 || write_file("/proc/self/uid_map", map, report) < 0)
		return -1;
	(void)snprintf(map, sizeof(map), "%u %u 1\n", gid, outer_gid);
	return write_file("/proc/self/gid_map", map, report);
}

int userns_keep_file_rights(struct report *report)
{
	static const int kept[] = { CAP_DAC_OVERRIDE, CAP_FOWNER };
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3, .pid = 0 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data) < 0)
		return report_fail(report, "container: cannot read the capabilities: %m");
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		data[0].inheritable |= 1U << kept[i];
	if (syscall(SYS_capset, &header, data) < 0)
		return report_fail(report, "container: cannot set the capabilities: %m");
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, kept[i], 0, 0) < 0)
			return report_fail(report, "container: cannot keep a capability: %m");
	return 0;
}
