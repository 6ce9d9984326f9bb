/* The why is in regular.h. */
#define _GNU_SOURCE
#include "regular.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#define ARGUMENT(context, number) ((context)->uc_mcontext.gregs[(const int[]){ REG_RDI, REG_RSI, REG_RDX, REG_R10 }[number]])
#define RESULT(context) ((context)->uc_mcontext.gregs[REG_RAX])
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#define ARGUMENT(context, number) ((context)->uc_mcontext.regs[number])
#define RESULT(context) ((context)->uc_mcontext.regs[0])
#endif

#ifdef ARCHITECTURE
/* Opens what the call that was trapped would have opened; the negative error where it fails, as the kernel gives it. */
static long open_regular(int at, const char *path, int flags, mode_t mode)
{
	long fd = syscall(SYS_openat, at, path, flags | O_NONBLOCK, mode);
	struct stat status;

	if (fd < 0)
		return -errno;
	if (fstat((int)fd, &status) < 0 || (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode))) {
		(void)close((int)fd); /* nothing was written to it */
		return -EINVAL;
	}
	(void)fcntl((int)fd, F_SETFL, flags); /* of a file it changes nothing */
	return fd;
}

static void handle(int number, siginfo_t *info, void *context)
{
	const int before = errno;

	(void)number, (void)info;
	RESULT((ucontext_t *)context) =
		open_regular((int)ARGUMENT((ucontext_t *)context, 0), (const char *)(uintptr_t)ARGUMENT((ucontext_t *)context, 1),
			     (int)ARGUMENT((ucontext_t *)context, 2), (mode_t)ARGUMENT((ucontext_t *)context, 3));
	errno = before;
}

static int load(struct report *report)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 0, 5),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])), /* its lower half */
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_NONBLOCK | O_PATH, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { .len = sizeof(rules) / sizeof(rules[0]), .filter = rules };

	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) < 0)
		return report_fail(report, "jail: cannot load the filter for slurmd's files: %m");
	return 0;
}

int regular_only(struct report *report)
{
	struct sigaction action = { .sa_sigaction = handle, .sa_flags = SA_SIGINFO };
	sigset_t trap;

	(void)sigemptyset(&trap); /* cannot fail */
	(void)sigaddset(&trap, SIGSYS);
	if (sigaction(SIGSYS, &action, NULL) < 0 || sigprocmask(SIG_UNBLOCK, &trap, NULL) < 0)
		return report_fail(report, "jail: cannot handle opened files: %m");
	return load(report);
}
#else
int regular_only(struct report *report)
{
	(void)report; /* another machine: opening_timer.h bounds the wait */
	return 0;
}
#endif
