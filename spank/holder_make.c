/* How a holder is made; the why is in holder.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "shared_memory_child.h"
#include "enter.h"
#include "holder.h"
#include "namespaces.h"
#include "proc.h"
#include "spool.h"

/* The files that a holder keeps (holder.h) while they have other numbers; -1: there is none. */
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
	else if (namespaces_make(CLONE_NEWNS, &birth->report) == 0 && proc_renew(plan, &birth->report) == 0 && spool_close(plan, &birth->report) == 0 &&
		 point != NULL &&
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
	if (namespaces_make(CLONE_NEWNS, report) < 0)
		return -1;
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
	if (make_kept(plan, self, &kept, report) == 0 && namespaces_make(CLONE_NEWPID, report) == 0 && making->ipc)
		(void)namespaces_make(CLONE_NEWIPC, report); /* what fails is in the report */
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

static enum holder_made await(struct shared_memory_child *maker, int pipe_fd, int seconds, const struct plan *plan, struct birth *birth,
			      struct report *report)
{
	enum holder_made result = wait_until_closed(pipe_fd, seconds, plan, birth, report);

	shared_memory_child_end(maker, result != HOLDER_LATE);
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
	struct shared_memory_child maker;
	int ends[2];

	if (birth == MAP_FAILED)
		return report_fail(report, "jail: cannot allocate shared memory for the start of the holder: %m");
	if (pipe2(ends, O_CLOEXEC) < 0) {
		(void)munmap(birth, sizeof(*birth));
		return report_fail(report, "jail: cannot make a pipe to the holder: %m");
	}
	if (!shared_memory_child_start(&maker, be_maker, &making)) {
		report_fail(report, "jail: cannot start the process that creates the holder: %m");
		(void)close(ends[1]); /* nothing was written to it */
	} else {
		(void)close(ends[1]); /* likewise */
		result = await(&maker, ends[0], seconds, plan, birth, report);
	}
	(void)close(ends[0]);
	*id = (struct holder_id){ .pid = birth->pid, .start = result == HOLDER_READY ? holder_start_of(birth->pid) : 0 };
	(void)munmap(birth, sizeof(*birth));
	if (result == HOLDER_READY && id->start == 0)
		return report_fail(report, "jail: the holder (pid %d) ended at once", id->pid);
	return result;
}
