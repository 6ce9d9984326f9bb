/* The mount plan (../plan.c): administrators write it on machines outside Kubernetes. */
#include "fuzz.h"

#include "../plan.h"

const char *const fuzz_words[] = { "root\t/r\t/\t-\tx\n", "bind", "rbind", "tmpfs", "proc", "dev", "sys", "scratch", "gpus", "path", "\t-\t",
				   "ro,", "nosuid,nodev", "size=8m", "mode=1777", "optional", "unmasked", "minimal", "last", "\n#", "/../", NULL };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);
	struct report report = { "" };
	static struct plan plan;
	int result = plan_parse("fuzz", text, size, &plan, &report);

	HOLDS((result == 0) == (report.text[0] == '\0'));
	for (int i = 0; result == 0 && i < plan.count; i++) {
		HOLDS(plan.mounts[i].target[0] == '/');
		HOLDS(strstr(plan.mounts[i].target, "/../") == NULL);
		HOLDS((plan.mounts[i].kind == PLAN_ROOT) == (i == 0));
	}
	if (result == 0)
		plan_free(&plan);
	free(text);
	return 0;
}
