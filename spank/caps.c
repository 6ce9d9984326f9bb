/* The why, and why each one, is in caps.h. Plain system calls: libcap would be one more library in every jail. */
#define _GNU_SOURCE
#include "caps.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
	int number;
	const char *name;
} kept[] = {
	{ CAP_CHOWN, "chown" },				/* dpkg, useradd */
	{ CAP_DAC_OVERRIDE, "dac_override" },		/* root reads and writes the users' files */
	{ CAP_FOWNER, "fowner" },			/* chmod of files of others */
	{ CAP_FSETID, "fsetid" },			/* keeps setgid bits when dpkg unpacks */
	{ CAP_KILL, "kill" },				/* root ends a user's process, in its own pid namespace */
	{ CAP_SETGID, "setgid" },			/* sudo, sshd, apt's sandbox */
	{ CAP_SETUID, "setuid" },			/* the same */
	{ CAP_SETPCAP, "setpcap" },			/* programs that drop capabilities themselves */
	{ CAP_NET_BIND_SERVICE, "net_bind_service" },	/* sshd on port 22 */
	{ CAP_SYS_CHROOT, "sys_chroot" },		/* sshd's and apt's sandboxes; chroot(8) */
	{ CAP_AUDIT_WRITE, "audit_write" },		/* sudo and PAM write audit records */
	{ CAP_SETFCAP, "setfcap" },			/* dpkg sets file capabilities */
};

enum { KEPT = sizeof(kept) / sizeof(kept[0]) };

const char *caps_kept_name(int n)
{
	return n < KEPT ? kept[n].name : NULL;
}

static uint64_t kept_mask(void)
{
	uint64_t mask = 0;

	for (int i = 0; i < KEPT; i++)
		mask |= UINT64_C(1) << kept[i].number;
	return mask;
}

static int get(struct caps_saved *caps, struct report *report)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3, .pid = 0 };

	if (syscall(SYS_capget, &header, caps->data) < 0)
		return report_fail(report, "jail: cannot read the capabilities: %m");
	return 0;
}

static int set(const struct caps_saved *caps, struct report *report)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3, .pid = 0 };

	if (syscall(SYS_capset, &header, caps->data) < 0)
		return report_fail(report, "jail: cannot set the capabilities: %m");
	return 0;
}

int caps_raise(struct caps_saved *saved, struct report *report)
{
	struct caps_saved raised;

	if (get(saved, report) < 0)
		return -1;
	raised = *saved;
	for (int word = 0; word < 2; word++)
		raised.data[word].effective = raised.data[word].permitted;
	return set(&raised, report);
}

int caps_restore(const struct caps_saved *saved, struct report *report)
{
	return set(saved, report);
}

int caps_bound(struct report *report)
{
	uint64_t mask = kept_mask();

	for (int number = 0; number < 64; number++) {
		int has = prctl(PR_CAPBSET_READ, number, 0, 0, 0);

		if (has < 0 && errno == EINVAL)
			return 0; /* behind the kernel's last one */
		if (has < 0)
			return report_fail(report, "jail: cannot read bounding capability %d: %m", number);
		if (has == 1 && !(mask >> number & 1) && prctl(PR_CAPBSET_DROP, number, 0, 0, 0) < 0)
			return report_fail(report, "jail: cannot drop bounding capability %d: %m", number);
	}
	return 0;
}

int caps_lower(struct report *report)
{
	uint64_t mask = kept_mask();
	struct caps_saved caps;

	if (get(&caps, report) < 0)
		return -1;
	for (int word = 0; word < 2; word++)
		caps.data[word].effective &= (uint32_t)(mask >> (32 * word));
	return set(&caps, report);
}

int caps_limit(struct report *report)
{
	uint64_t mask = kept_mask();
	struct caps_saved caps;

	if (caps_bound(report) < 0)
		return -1;
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return report_fail(report, "jail: cannot clear the ambient capabilities: %m");
	if (get(&caps, report) < 0)
		return -1;
	for (int word = 0; word < 2; word++) {
		uint32_t half = (uint32_t)(mask >> (32 * word));

		caps.data[word].permitted &= half;
		caps.data[word].effective &= half;
		caps.data[word].inheritable = 0;
	}
	return set(&caps, report);
}
