/* A reader with a planted fault, for the test of the driver: it has to be found. */
#include "fuzz.h"

const char *const fuzz_words[] = { NULL };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *small = malloc(2);

	if (size > 2 && data[0] == 'f' && data[1] == '=' && data[2] == '0')
		small[size] = 'x';
	free(small);
	return 0;
}
