/* Loaded into sbcast (LD_PRELOAD): between the credential and the first block the job ends, as a patient user would have it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>

int slurm_sbcast_lookup(void *step, void **answer)
{
	int (*real)(void *, void **) = (int (*)(void *, void **))dlsym(RTLD_NEXT, "slurm_sbcast_lookup");
	int result = real(step, answer);

	(void)unsetenv("LD_PRELOAD");
	(void)!system("scancel $SLURM_JOB_ID; until [ -z \"$(squeue -h -j $SLURM_JOB_ID -t R,CG 2>/dev/null)\" ]; do sleep 0.1; done");
	return result;
}
