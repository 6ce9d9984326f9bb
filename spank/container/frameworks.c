/* The why is in frameworks.h. */
#define _GNU_SOURCE
#include "frameworks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PORT_FIRST = 61000, PORTS = 65536 - PORT_FIRST };

bool frameworks_first_host(const char *list, char *host, size_t size)
{
	size_t used = 0;

	while (*list != '\0' && *list != ',') {
		if (*list == '[') {
			size_t digits = strspn(++list, "0123456789"), rest = strcspn(list, "]");

			if (digits == 0 || list[rest] != ']' || used + digits >= size)
				return false;
			(void)memcpy(host + used, list, digits);
			used += digits, list += rest + 1;
			continue;
		}
		if (used + 1 >= size)
			return false;
		host[used++] = *list++;
	}
	host[used] = '\0';
	return used > 0;
}

static int copy(const struct variables *variables, const char *from, const char *to)
{
	const char *value = variables->get(from);

	return value != NULL ? variables->set(to, value, 0) : 0;
}

/* The first of two variables that is set. */
static const char *either(const struct variables *variables, const char *first, const char *second)
{
	const char *value = variables->get(first);

	return value != NULL ? value : variables->get(second);
}

static int set_address(const struct variables *variables)
{
	const char *list = either(variables, "SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"), *job;
	char host[256], port[16];

	if (list != NULL && frameworks_first_host(list, host, sizeof(host)) && variables->set("MASTER_ADDR", host, 0) != 0)
		return -1;
	job = variables->get("SLURM_JOB_ID");
	if (job == NULL)
		return 0;
	(void)snprintf(port, sizeof(port), "%lu", PORT_FIRST + strtoul(job, NULL, 10) % PORTS);
	return variables->set("MASTER_PORT", port, 0);
}

static int set_sizes(const struct variables *variables)
{
	const char *text = either(variables, "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS");
	unsigned long tasks = text != NULL ? strtoul(text, NULL, 10) : 1, nodes;
	char size[32];

	(void)snprintf(size, sizeof(size), "%lu", tasks);
	if (variables->set("WORLD_SIZE", size, 0) != 0)
		return -1;
	text = either(variables, "SLURM_STEP_NUM_NODES", "SLURM_NNODES");
	nodes = text != NULL ? strtoul(text, NULL, 10) : 1;
	return tasks > nodes ? variables->set("OMP_NUM_THREADS", "1", 0) : 0;
}

int frameworks_set(const struct variables *variables)
{
	if (copy(variables, "PMIX_SECURITY_MODE", "PMIX_MCA_psec") != 0 || copy(variables, "PMIX_GDS_MODULE", "PMIX_MCA_gds") != 0)
		return -1;
	if (variables->get("PYTORCH_VERSION") == NULL)
		return 0;
	if (copy(variables, "SLURM_PROCID", "RANK") != 0 || copy(variables, "SLURM_LOCALID", "LOCAL_RANK") != 0)
		return -1;
	return set_address(variables) != 0 || set_sizes(variables) != 0 ? -1 : 0;
}
