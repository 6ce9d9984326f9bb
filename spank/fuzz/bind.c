/* --container-mounts (../container/bind.c). */
#include "fuzz.h"

#include "../container/bind.h"

const char *const fuzz_words[] = { "/a:/b", ":ro", "+nosuid", "tmpfs:/t:size=1m", "umount:/a", "nr_inodes=9", "+rslave", "unbindable", "nofail", "bind", ",", "./a", NULL };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);
	const char *rest = text, *before = text;
	struct report report = { "" };
	static struct bind bind;
	int got;

	while ((got = bind_next(&rest, &bind, &report)) > 0) {
		HOLDS(rest > before);
		HOLDS(bind.target[0] == '/' || bind.target[0] == '.');
		HOLDS(bind.kind != BIND_PATH || bind.source[0] == '/' || bind.source[0] == '.');
		HOLDS((bind.set & bind.clear) == 0);
		before = rest;
	}
	HOLDS((got < 0) == (report.text[0] != '\0'));
	free(text);
	return 0;
}
