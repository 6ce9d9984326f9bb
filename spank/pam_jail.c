/*
 * The PAM module for sshd on a worker: who has a job here may log in, and lands in it.
 *
 *   account  required  pam_jail.so      # refuses who has no job on this node
 *   session  required  pam_jail.so      # the last session line: what comes after it runs in the jail, with few capabilities
 *
 * sshd runs beside slurmd, outside the jail. Its process of a session (sshd-session, of OpenSSH 9.8 and later) calls
 * pam_open_session before it forks what becomes the user; there it is moved into the mounts of the user's newest job, its
 * children are aimed at the job's pid namespace, and its capabilities are bounded. Terminal, shell and sftp-server are
 * then made inside. When the job ends, its holder is killed, and every process of the session with it; sshd-session, which
 * is outside the pid namespace, sees its child end and closes the connection.
 *
 * For root, sshd has no second process of the user: the one in the job's pid namespace is a copy of the one that read the host key. It has
 * no more capabilities than root of the jail, so nothing but PR_SET_DUMPABLE keeps root from reading its memory, and it must load no library
 * that the jail names. The shell has its own memory again, as every program that is executed. A user's process has dropped the keys, and
 * looks users of a directory up.
 */
#define _GNU_SOURCE
#include <pwd.h>
#include <security/pam_ext.h>
#include <security/pam_modules.h>
#include <security/pam_modutil.h>
#include <sys/prctl.h>
#include <syslog.h>
#include <unistd.h>

#include "caps.h"
#include "jobs.h"
#include "libraries.h"
#include "report.h"

#define EXPORTED __attribute__((visibility("default")))

/* Tells the user, whose client shows it, and the log. */
static int refuse(pam_handle_t *pam, const char *sentence, int code)
{
	pam_syslog(pam, LOG_NOTICE, "%s", sentence);
	(void)pam_error(pam, "%s", sentence); /* who cannot be told is refused all the same */
	return code;
}

/* Finds the newest job of the user who logs in; says why there is none. */
static int find_job(pam_handle_t *pam, struct jobs_job *job, int refusal)
{
	struct report report = { "" };
	const char *name = NULL;
	char host[65] = "this node";
	struct passwd *user;
	int found;

	(void)gethostname(host, sizeof(host) - 1); /* keeps its words where that fails */
	if (pam_get_user(pam, &name, NULL) != PAM_SUCCESS || (user = pam_modutil_getpwnam(pam, name)) == NULL)
		return PAM_USER_UNKNOWN;
	found = jobs_find(user->pw_uid, job, &report);
	if (found == 0)
		report_fail(&report, "%s has no job on %s: ask Slurm for one (srun, sbatch, salloc), then log in while it runs.",
			    name, host);
	return found == 1 ? PAM_SUCCESS : refuse(pam, report.text, refusal);
}

EXPORTED int pam_sm_acct_mgmt(pam_handle_t *pam, int flags, int argc, const char **argv)
{
	struct jobs_job job;

	(void)flags, (void)argc, (void)argv;
	return find_job(pam, &job, PAM_PERM_DENIED);
}

EXPORTED int pam_sm_open_session(pam_handle_t *pam, int flags, int argc, const char **argv)
{
	struct report report = { "" };
	struct jobs_job job;
	int found = find_job(pam, &job, PAM_SESSION_ERR);

	(void)flags, (void)argc, (void)argv;
	if (found != PAM_SUCCESS)
		return found;
	if (jobs_join(&job, &report) < 0 || caps_limit(&report) < 0)
		return refuse(pam, report.text, PAM_SESSION_ERR);
	if (job.uid == 0 && libraries_bind(&report) < 0)
		return refuse(pam, report.text, PAM_SESSION_ERR);
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0) {
		(void)report_fail(&report, "cannot close the memory of sshd: %m");
		return refuse(pam, report.text, PAM_SESSION_ERR);
	}
	pam_syslog(pam, LOG_INFO, "jail: session in job %u of user %u", job.id, job.uid);
	return PAM_SUCCESS;
}

EXPORTED int pam_sm_close_session(pam_handle_t *pam, int flags, int argc, const char **argv)
{
	(void)pam, (void)flags, (void)argc, (void)argv;
	return PAM_SUCCESS;
}
