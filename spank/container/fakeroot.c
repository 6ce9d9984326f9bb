/* The why is in fakeroot.h. */
#define _GNU_SOURCE
#include "fakeroot.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#error "the number of this architecture is missing here"
#endif

static const unsigned int calls[] = {
#ifdef SYS_chown
	SYS_chown, SYS_lchown,
#endif
	SYS_fchown, SYS_fchownat, SYS_setuid, SYS_setgid, SYS_setreuid, SYS_setregid, SYS_setresuid, SYS_setresgid,
	SYS_setgroups,
};

enum { CALLS = sizeof(calls) / sizeof(calls[0]) };

int fakeroot_ownership(struct report *report)
{
	struct sock_filter filter[CALLS + 5];
	struct sock_fprog program = { .len = CALLS + 5, .filter = filter };
	unsigned short n = 0;

	filter[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
	filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 0, CALLS + 1);
	filter[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (int i = 0; i < CALLS; i++)
		filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i], (uint8_t)(CALLS - i), 0);
	filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) < 0)
		return report_fail(report, "container: cannot set the filter for root in name: %m");
	return 0;
}
