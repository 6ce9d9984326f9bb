/*
 * The capabilities that root in the jail keeps.
 *
 * A user can be root in the jail, install packages and make users; so `apt-get install`, `useradd`, `sudo` and sshd
 * have to work, and nothing more. The set is a short list of what stays, not a list of what goes: a capability that a
 * later kernel invents is gone without anyone thinking of it. Setuid programs still gain root (no NO_NEW_PRIVS), but
 * never more than the bounding set leaves.
 *
 * What is left out and could be missed:
 *   DAC_READ_SEARCH  open_by_handle_at reaches any file of a filesystem, also outside the jail; DAC_OVERRIDE already
 *                    reads what is inside.
 *   MKNOD            a device node of the machine's disk, made on the shared root, would be the disk.
 *   NET_RAW          forged frames on the pods' network; ping works without it (net.ipv4.ping_group_range).
 *   SYS_PTRACE       a root user still traces processes whose capabilities are no wider than its own, so gdb and
 *                    strace work, but never the holder or a daemon.
 */
#ifndef JAIL_CAPS_H
#define JAIL_CAPS_H

#include <linux/capability.h>

#include "report.h"

struct caps_saved {
	struct __user_cap_data_struct data[2];
};

/* Makes every permitted capability effective, for a thread that has set its effective user id to a user's. */
int caps_raise(struct caps_saved *saved, struct report *report);

/* Puts back what caps_raise found. */
int caps_restore(const struct caps_saved *saved, struct report *report);

/* Takes everything else out of the bounding set, so that no program that is executed from here can have it. */
int caps_bound(struct report *report);

/* Makes nothing else effective in this thread. What is permitted stays, so that caps_raise brings it back. */
int caps_lower(struct report *report);

/* Bounds, and takes everything else out of the permitted, effective, inheritable and ambient sets too. */
int caps_limit(struct report *report);

/* The name of the n-th capability that stays, or NULL behind the last. */
const char *caps_kept_name(int n);

#endif
