/*
 * Fuzzing of what reads foreign input: one function per reader, called by driver.c with inputs that it makes up.
 *
 * The function is libFuzzer's, so a reader can also be built with `clang -fsanitize=fuzzer`. The driver is our own because
 * Debian's gcc has the instrumentation (-fsanitize-coverage=trace-pc) but no fuzzer, and clang is 600 MB.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Words that the reader knows; ends with NULL. */
extern const char *const fuzz_words[];

/* What always holds; a breach is a finding as a fault is. */
#define HOLDS(condition)                                                                                               \
	do                                                                                                             \
		if (!(condition)) {                                                                                    \
			(void)fprintf(stderr, "fuzz: %s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition);     \
			abort();                                                                                       \
		}                                                                                                      \
	while (0)

/* A copy with a NUL behind it, which the caller frees. */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	if (text == NULL)
		abort();
	(void)memcpy(text, data, size);
	text[size] = '\0';
	return text;
}

#endif
