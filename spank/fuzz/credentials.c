/* enroot's file of credentials, a kind of .netrc (../container/credentials.c). */
#include "../container/credentials.c"

#include "fuzz.h"

const char *const fuzz_words[] = { "machine ", "login ", "password ", "host:5000", "auth.docker.io", "docker.io", "$WORD", "${WORD}", "${", "me", NULL };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct source sources[] = { { .kind = SOURCE_REGISTRY, .registry = "host:5000", .user = "me" },
						 { .kind = SOURCE_REGISTRY, .registry = "docker.io" } };
	static struct entry entry;
	static char encoded[3 * WORD_MAX];

	(void)setenv("WORD", "secret", 1);
	for (int i = 0; i < 2 && size > 0; i++) {
		FILE *file = fmemopen((void *)(uintptr_t)data, size, "r");

		HOLDS(file != NULL);
		if (find(file, &sources[i], &entry)) {
			HOLDS(entry.login[0] != '\0' && entry.password[0] != '\0');
			HOLDS(i == 1 || strcmp(entry.login, "me") == 0);
			base64((const unsigned char *)entry.password, strlen(entry.password), encoded);
			HOLDS(strlen(encoded) == (strlen(entry.password) + 2) / 3 * 4);
		}
		(void)fclose(file);
	}
	return 0;
}
