/*
 * Two functions of Slurm's library that can end in a deadlock, called as they may be (docs/decisions/0079).
 *
 * slurmctld asks what a user may do with the list of users locked. Where there is no list, as without accounting, both functions first read one,
 * for which they lock it again: nobody gets an answer from slurmctld any more. Where there is no list nobody coordinates or administers anything
 * by it, so that is the answer. Any user can ask: `scancel --ctld` of somebody else's job. Slurm 24.11.5 and 26.05.5: job_mgr_signal_jobs in
 * job_mgr.c, assoc_mgr_is_user_acct_coord and _get_admin_level_internal in assoc_mgr.c.
 *
 * Loaded into slurmctld before Slurm's library; what slurmctld starts has it too, and nothing in it to call.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern void *assoc_mgr_user_list __attribute__((weak));

typedef bool (*Coordinates)(void *connection, uint32_t uid, char *account, bool is_locked);
typedef int (*Administers)(void *connection, uint32_t uid);

static bool is_list_there(void)
{
	return &assoc_mgr_user_list && assoc_mgr_user_list;
}

bool assoc_mgr_is_user_acct_coord(void *connection, uint32_t uid, char *account, bool is_locked)
{
	Coordinates slurms = (Coordinates)dlsym(RTLD_NEXT, "assoc_mgr_is_user_acct_coord");

	if (!slurms || (is_locked && !is_list_there()))
		return false;
	return slurms(connection, uid, account, is_locked);
}

/* Returns a slurmdb_admin_level_t, of which 0 is SLURMDB_ADMIN_NOTSET. */
int assoc_mgr_get_admin_level_locked(void *connection, uint32_t uid)
{
	Administers slurms = (Administers)dlsym(RTLD_NEXT, "assoc_mgr_get_admin_level_locked");

	if (!slurms || !is_list_there())
		return 0;
	return slurms(connection, uid);
}
