/* The why is in libraries.h. */
#define _GNU_SOURCE
#include "libraries.h"

#include <nss.h>
#include <stddef.h>
#include <stdlib.h>

/* The databases that nsswitch.conf may have a line for. Source: nsswitch.conf(5), and glibc's nss/databases.def. */
static const char *const databases[] = { "aliases",  "ethers",	 "group",     "gshadow",   "hosts", "initgroups", "netgroup",
					 "networks", "passwd", "protocols", "publickey", "rpc",   "services",	  "shadow" };

/* PMIx looks for components and parameters in $HOME, or in the home that the jail has for the user; nobody can make anything in /proc. */
static const struct {
	const char *name, *value;
} variables[] = {
	{ "HOME", "/proc/no-home" },
	{ "TMPDIR", "/proc/no-home" }, /* of slurmstepd; what tasks are told is the line below */
	{ "PMIX_SYSTEM_TMPDIR", "/tmp" },
	{ "PMIX_MCA_mca_base_param_files", "none" },
	{ "PMIX_MCA_mca_base_override_param_file", "none" },
};

int libraries_bind(struct report *report)
{
	for (size_t i = 0; i < sizeof(databases) / sizeof(databases[0]); i++)
		if (__nss_configure_lookup(databases[i], "files") < 0)
			return report_fail(report, "jail: cannot keep the lookup of %s to files: %m", databases[i]);
	if (__nss_configure_lookup("hosts", "files dns") < 0)
		return report_fail(report, "jail: cannot keep the lookup of hosts to files and DNS: %m");
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		if (setenv(variables[i].name, variables[i].value, 1) < 0)
			return report_fail(report, "jail: cannot set the variable %s: %m", variables[i].name);
	return 0;
}
