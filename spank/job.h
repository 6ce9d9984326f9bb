/*
 * One job of this node that has namespaces: what its record holds (record.h), and what jobs.h finds, makes and releases.
 */
#ifndef JAIL_JOB_H
#define JAIL_JOB_H

#include <stdint.h>
#include <sys/types.h>

#include "holder.h"

#define JOBS_FOLDER "/run/jail/jobs"

struct jobs_job {
	uint32_t id;
	uid_t uid;
	struct holder_id holder;
};

#endif
