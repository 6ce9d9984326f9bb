/* The options (../container/request.c), images and lists of hosts: words that are divided by NUL. What is read is written and read again. */
#include "fuzz.h"

#include "../container/frameworks.h"
#include "../container/request.h"
#include "../container/source.h"

const char *const fuzz_words[] = { "--container-image=a", "--container-name=x:exec", "--container-name=7.3", "--container-name=7.batch", "--container-mounts=/a:/b",
				   "--container-env=A,B", "--container-unshare=net,ipc,uts", "--container-save=x", "--container-readonly",
				   "--no-container-remap-root", "--job=7", "--step=7.0", "docker://", "me@host:5000#a/b:c", "a@sha256:0", "oci:a:b", "n[1-3,5]x,y", "--", NULL };

static void forget(struct request *request)
{
	free(request->image), free(request->mounts), free(request->workdir), free(request->name), free(request->save);
	free(request->env), free(request->unshare), free(request->job), free(request->step), free(request->tasks);
	free(request->storage), free(request->scope);
}

static bool is_same(const char *one, const char *other)
{
	return one == other || (one != NULL && other != NULL && strcmp(one, other) == 0);
}

static void check_again(const struct request *request)
{
	struct request again = REQUEST_EMPTY;
	struct report report = { "" };
	char **words = request_words(request, "container", "start");
	int count = 0;

	HOLDS(words != NULL);
	while (words[count] != NULL)
		count++;
	HOLDS(request_read(&again, count - 2, words + 2, &report) == count - 2);
	HOLDS(is_same(again.image, request->image) && is_same(again.mounts, request->mounts) && is_same(again.name, request->name) &&
	      is_same(again.unshare, request->unshare) && again.writable == request->writable && again.remap_root == request->remap_root);
	forget(&again);
	for (int i = 0; i < count; i++)
		free(words[i]);
	free(words);
}

static void read_image(const char *image)
{
	static struct source source;
	struct report report = { "" };
	char pinned[1200];

	if (image[0] == '/' || image[0] == '.' || source_read(image, &source, &report) < 0 || source.kind != SOURCE_REGISTRY)
		return;
	HOLDS(strncmp(source.reference, "docker://", 9) == 0 && source.registry[0] != '\0');
	if (source_pin(&source, "sha256:0", pinned, sizeof(pinned), &report) == 0)
		HOLDS(strstr(pinned, "@sha256:0") != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size), *words[64], host[32], step[64];
	struct request request = REQUEST_EMPTY;
	struct report report = { "" };
	int count = 0;
	size_t length = 0;

	for (char *at = text; at < text + size && count < 64; at += strlen(at) + 1)
		words[count++] = at;
	for (int i = 0; i < count; i++) {
		read_image(words[i]);
		if (frameworks_first_host(words[i], host, sizeof(host)))
			HOLDS(host[0] != '\0' && strpbrk(host, ",[") == NULL);
	}
	if (request_read(&request, count, words, &report) >= 0) {
		check_again(&request);
		if (request.name != NULL)
			(void)request_name_use(&request, &length);
		HOLDS(request.name == NULL || length <= 64);
		(void)request_names_step(&request, step, sizeof(step));
		(void)request_unshared(&request);
		(void)request_is_wanted(&request, &report);
	}
	forget(&request);
	free(text);
	return 0;
}
