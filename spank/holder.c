/* The why is in holder.h. */
#define _GNU_SOURCE
#include "holder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "caps.h"
#include "child.h"
#include "enter.h"
#include "proc.h"

/* The files that a holder keeps open, by number; all others are closed. */
enum { KEPT_OUTER = 3, KEPT_PROC = 4, KEPT_OPENING = 5 };

/* The same files while they have other numbers; -1: there is none. */
struct kept {
	int outer, proc, opening;
};

/* What the processes that make a holder share with who waits for it. */
struct birth {
	volatile int line; /* of the plan, which is being carried out */
	volatile bool is_ready;
	pid_t pid;
	struct report report;
};

static int open_pidfd(pid_t pid, struct report *report)
{
	long fd = syscall(SYS_pidfd_open, pid, 0); /* close-on-exec by definition */

	if (fd < 0)
		return report_fail(report, "jail: cannot open process %d: %m", pid);
	return (int)fd;
}

/* When a process started, or 0 where it is gone or a zombie. */
static uint64_t start_of(pid_t pid)
{
	char path[32], text[512];
	unsigned long long start;
	char *behind_name, state;
	ssize_t got = -1;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid); /* always fits */
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		got = read(fd, text, sizeof(text) - 1);
		(void)close(fd); /* nothing was written to it */
	}
	if (got <= 0)
		return 0;
	text[got] = '\0';
	behind_name = strrchr(text, ')');
	if (behind_name == NULL ||
	    sscanf(behind_name + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &state,
		   &start) != 2)
		return 0;
	return state == 'Z' || state == 'X' ? 0 : start;
}

static void reset_signals(void)
{
	sigset_t none;

	for (int number = 1; number < NSIG; number++)
		(void)signal(number, number == SIGCHLD ? SIG_IGN : SIG_DFL); /* fails for those that cannot be set */
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Moves a file to its number, from a number behind all of those, and closes what has that number where there is none. */
static void keep(int fd, int number)
{
	if (fd < 0)
		(void)close(number); /* nothing was written to it */
	else if (dup2(fd, number) < 0)
		_exit(1);
}

/* Closes all but the handles that are kept. With SIGCHLD ignored the kernel reaps every orphan by itself. */
static void hold(const struct kept *kept)
{
	int outer = fcntl(kept->outer, F_DUPFD_CLOEXEC, KEPT_OPENING + 1);
	int opening = fcntl(kept->opening, F_DUPFD_CLOEXEC, KEPT_OPENING + 1);
	int proc = kept->proc < 0 ? -1 : fcntl(kept->proc, F_DUPFD_CLOEXEC, KEPT_OPENING + 1);

	if (outer < 0 || opening < 0 || (kept->proc >= 0 && proc < 0))
		_exit(1);
	keep(outer, KEPT_OUTER);
	keep(proc, KEPT_PROC);
	keep(opening, KEPT_OPENING);
	if (close_range(0, KEPT_OUTER - 1, 0) < 0 || close_range(KEPT_OPENING + 1, ~0U, 0) < 0)
		_exit(1);
	for (;;)
		(void)pause();
}

/* Writes another name over the words of the command line, which are slurmstepd's: `ps` shows them. */
static void rename_self(uint32_t job)
{
	char text[1024];
	unsigned long start, end;
	const char *behind_name;
	ssize_t got = -1;
	int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		got = read(fd, text, sizeof(text) - 1);
		(void)close(fd); /* nothing was written to it */
	}
	text[got > 0 ? got : 0] = '\0';
	behind_name = strrchr(text, ')');
	for (int field = 2; behind_name != NULL && field < 48; field++)
		behind_name = strchr(behind_name + 1, ' ');
	if (behind_name == NULL || sscanf(behind_name, " %lu %lu", &start, &end) != 2 || end <= start)
		return;
	memset((void *)start, 0, end - start);
	(void)snprintf((char *)start, end - start, "jail-holder: job %u", job); /* as much of it as there is room */
}

/* The holder's life; it shows that it is ready by closing the pipe, with all else. */
static void be_holder(const struct plan *plan, struct kept *kept, struct birth *birth)
{
	const struct plan_mount *point = plan_find(plan, PLAN_PROC);

	reset_signals();
	if (setsid() < 0 || prctl(PR_SET_NAME, "jail-holder") < 0)
		report_fail(&birth->report, "jail: cannot prepare the holder: %m");
	else if (unshare(CLONE_NEWNS) < 0)
		report_fail(&birth->report, "jail: cannot make the tasks' mount namespace: %m");
	else if (proc_renew(plan, &birth->report) == 0 && point != NULL &&
		 (kept->proc = open(point->target, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0)
		report_fail(&birth->report, "jail: cannot open %s (plan line %d): %m", point->target, point->line);
	if (birth->report.text[0] != '\0')
		_exit(1);
	rename_self(plan->job);
	birth->is_ready = true;
	(void)munmap(birth, sizeof(*birth)); /* the pages are not missed if this fails */
	hold(kept);
}

/* What the child that makes all is to do. */
struct making {
	const struct plan *plan;
	bool ipc;
	struct birth *birth;
};

/* Makes the two mount namespaces that the holder keeps open; the caller stays in the outer one, which is its own already. */
static int make_kept(const struct plan *plan, int self, struct kept *kept, struct report *report)
{
	const struct plan_mount *point = plan_find(plan, PLAN_PROC);

	kept->outer = openat(self, "ns/mnt", O_RDONLY | O_CLOEXEC);
	if (kept->outer < 0)
		return report_fail(report, "jail: cannot open the own mount namespace: %m");
	if (unshare(CLONE_NEWNS) < 0)
		return report_fail(report, "jail: cannot make a mount namespace to open files in: %m");
	if (point != NULL && proc_cover(point->target, report) < 0)
		return -1;
	kept->opening = openat(self, "ns/mnt", O_RDONLY | O_CLOEXEC);
	if (kept->opening < 0 || setns(kept->outer, CLONE_NEWNS) < 0)
		return report_fail(report, "jail: cannot go back to the own mount namespace: %m");
	return 0;
}

/* The life of that child: it goes into the jail, forks the holder, and ends. */
static int be_maker(void *context)
{
	const struct making *making = context;
	const struct plan *plan = making->plan;
	struct birth *birth = making->birth;
	struct report *report = &birth->report;
	int self = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC); /* a plan need not have a /proc */
	struct kept kept = { -1, -1, -1 };
	pid_t holder;

	if (self < 0)
		report_fail(report, "jail: cannot open the own /proc: %m");
	if (self < 0 || enter_jail(plan, &birth->line, report) != ENTER_WHOLE)
		return 1;
	if (make_kept(plan, self, &kept, report) == 0 && unshare(CLONE_NEWPID | (making->ipc ? CLONE_NEWIPC : 0)) < 0)
		report_fail(report, "jail: cannot make a pid namespace: %m");
	if (report->text[0] != '\0')
		return 1;
	holder = fork();
	if (holder == 0)
		be_holder(plan, &kept, birth);
	if (holder < 0)
		report_fail(report, "jail: cannot fork the holder: %m");
	birth->pid = holder;
	return holder < 0;
}

/* Waits until the last writer of the pipe has closed it. */
static enum holder_made wait_until_closed(int pipe_fd, int seconds, const struct plan *plan, const struct birth *birth,
					  struct report *report)
{
	struct pollfd poll_fd = { .fd = pipe_fd };
	const char *target = "/";
	int got;

	do
		got = poll(&poll_fd, 1, seconds * 1000);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return report_fail(report, "jail: cannot wait for the holder: %m");
	if (got > 0)
		return HOLDER_READY;
	for (int i = 0; i < plan->count; i++)
		if (plan->mounts[i].line == birth->line)
			target = plan->mounts[i].source[0] ? plan->mounts[i].source : plan->mounts[i].target;
	report_fail(report, "jail: %s does not answer within %d s (plan line %d)", target, seconds, birth->line);
	return HOLDER_LATE;
}

static enum holder_made await(struct child *maker, int pipe_fd, int seconds, const struct plan *plan, struct birth *birth,
			      struct report *report)
{
	enum holder_made result = wait_until_closed(pipe_fd, seconds, plan, birth, report);

	child_end(maker, result != HOLDER_LATE);
	if (result == HOLDER_LATE)
		return result;
	if (birth->is_ready)
		return result;
	if (birth->report.text[0] != '\0')
		report_fail(report, "%s", birth->report.text);
	return report_fail(report, "jail: the holder ended before it was ready");
}

enum holder_made holder_make(const struct plan *plan, bool ipc, int seconds, struct holder_id *id, struct report *report)
{
	struct birth *birth = mmap(NULL, sizeof(*birth), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	enum holder_made result = HOLDER_FAILED;
	struct making making = { .plan = plan, .ipc = ipc, .birth = birth };
	struct child maker;
	int ends[2];

	if (birth == MAP_FAILED)
		return report_fail(report, "jail: cannot make memory for the holder's birth: %m");
	if (pipe2(ends, O_CLOEXEC) < 0) {
		(void)munmap(birth, sizeof(*birth));
		return report_fail(report, "jail: cannot make a pipe to the holder: %m");
	}
	if (!child_start(&maker, be_maker, &making)) {
		report_fail(report, "jail: cannot start the holder's maker: %m");
		(void)close(ends[1]); /* nothing was written to it */
	} else {
		(void)close(ends[1]); /* likewise */
		result = await(&maker, ends[0], seconds, plan, birth, report);
	}
	(void)close(ends[0]);
	*id = (struct holder_id){ .pid = birth->pid, .start = result == HOLDER_READY ? start_of(birth->pid) : 0 };
	(void)munmap(birth, sizeof(*birth));
	if (result == HOLDER_READY && id->start == 0)
		return report_fail(report, "jail: the holder (pid %d) ended at once", id->pid);
	return result;
}

bool holder_lives(const struct holder_id *id)
{
	return id->pid > 0 && id->start != 0 && start_of(id->pid) == id->start;
}

void holder_close(struct holder *holder)
{
	int *fds[] = { &holder->pidfd, &holder->outer, &holder->opening, &holder->proc, &holder->home };

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		if (*fds[i] >= 0)
			(void)close(*fds[i]); /* nothing was written to it, so nothing can be lost */
		*fds[i] = -1;
	}
}

static int open_kept(const struct holder_id *id, int number, int flags)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", id->pid, number); /* always fits */
	return open(path, flags | O_CLOEXEC);
}

int holder_open(const struct holder_id *id, struct holder *holder, struct report *report)
{
	*holder = (struct holder)HOLDER_NONE;
	holder->id = *id;
	holder->pidfd = open_pidfd(id->pid, report);
	if (holder->pidfd >= 0 && !holder_lives(id)) /* asked after it was opened: so it is this one */
		report_fail(report, "jail: the holder (pid %d) has ended", id->pid);
	else if (holder->pidfd >= 0 && (holder->outer = open_kept(id, KEPT_OUTER, O_RDONLY)) < 0)
		report_fail(report, "jail: cannot open the outer mounts of the holder (pid %d): %m", id->pid);
	else if (holder->pidfd >= 0 && (holder->opening = open_kept(id, KEPT_OPENING, O_RDONLY)) < 0)
		report_fail(report, "jail: cannot open the opening mounts of the holder (pid %d): %m", id->pid);
	else if (holder->pidfd >= 0)
		holder->home = open_pidfd(getpid(), report);
	if (holder->home >= 0) {
		holder->proc = open_kept(id, KEPT_PROC, O_RDONLY | O_DIRECTORY); /* now: inside no link of the pod's /proc is followed */
		return 0;
	}
	holder_close(holder);
	return -1;
}

int holder_open_proc(const struct holder *holder)
{
	return holder->proc < 0 ? -1 : fcntl(holder->proc, F_DUPFD_CLOEXEC, 0);
}

/* A thread that shares its root and working folder with others cannot change its mount namespace. */
static int enter_mounts(const struct holder *holder, int fd, struct report *report)
{
	if (unshare(CLONE_FS) < 0 || setns(fd, CLONE_NEWNS) < 0)
		return report_fail(report, "jail: cannot join the mounts of the holder (pid %d): %m", holder->id.pid);
	return 0;
}

int holder_enter_outer(const struct holder *holder, struct report *report)
{
	return enter_mounts(holder, holder->outer, report);
}

int holder_enter_opening(const struct holder *holder, struct report *report)
{
	return enter_mounts(holder, holder->opening, report);
}

int holder_leave_opening(const struct holder *holder, struct report *report)
{
	char folder[PATH_MAX];
	bool has_folder = getcwd(folder, sizeof(folder)) != NULL;
	struct caps_saved caps;
	int result;

	/* Slurm calls the hook with the effective user id of the user; the capabilities are then only permitted. */
	if (caps_raise(&caps, report) < 0)
		return -1;
	result = enter_mounts(holder, holder->outer, report);
	if (geteuid() != 0 && caps_restore(&caps, report) < 0)
		return -1;
	if (result == 0 && has_folder && chdir(folder) < 0 && errno != EACCES && errno != ENOENT)
		return report_fail(report, "jail: cannot go back to %s: %m", folder);
	return result;
}

int holder_enter_inner(const struct holder *holder, struct report *report)
{
	return enter_mounts(holder, holder->pidfd, report);
}

int holder_aim_children(const struct holder *holder, struct report *report)
{
	if (setns(holder->pidfd, CLONE_NEWPID) < 0)
		return report_fail(report, "jail: cannot aim at the pid namespace of the holder (pid %d): %m", holder->id.pid);
	return 0;
}

int holder_aim_back(const struct holder *holder, struct report *report)
{
	if (setns(holder->home, CLONE_NEWPID) < 0)
		return report_fail(report, "jail: cannot aim back at the own pid namespace: %m");
	return 0;
}

int holder_join_mounts(const struct holder *holder, struct report *report)
{
	char folder[PATH_MAX];
	bool has_folder = getcwd(folder, sizeof(folder)) != NULL;

	if (setns(holder->pidfd, CLONE_NEWNS | CLONE_NEWIPC) < 0)
		return report_fail(report, "jail: cannot join the mounts of the holder (pid %d): %m", holder->id.pid);
	if (has_folder && chdir(folder) < 0 && errno != EACCES && errno != ENOENT)
		return report_fail(report, "jail: cannot go back to %s: %m", folder);
	return 0;
}

int holder_kill(const struct holder_id *id, int seconds, struct report *report)
{
	struct pollfd poll_fd = { .fd = (int)syscall(SYS_pidfd_open, id->pid, 0), .events = POLLIN };
	int got = 1;

	/* No process: it has ended already. Asked after it was opened, so that no other can be meant. */
	if (poll_fd.fd >= 0 && holder_lives(id)) {
		if (syscall(SYS_pidfd_send_signal, poll_fd.fd, SIGKILL, NULL, 0) < 0 && errno != ESRCH)
			report_fail(report, "jail: cannot kill the holder (pid %d): %m", id->pid);
		do
			got = poll(&poll_fd, 1, seconds * 1000);
		while (got < 0 && errno == EINTR);
	}
	if (poll_fd.fd >= 0)
		(void)close(poll_fd.fd); /* nothing was written to it */
	if (got <= 0)
		return report_fail(report, "jail: a process of pid namespace %d did not end within %d s", id->pid, seconds);
	return report->text[0] == '\0' ? 0 : -1;
}
