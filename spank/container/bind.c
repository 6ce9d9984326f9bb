/* The why is in bind.h. */
#define _GNU_SOURCE
#include "bind.h"

#include <stdio.h>
#include <string.h>
#include <sys/mount.h>

static const struct {
	const char *word;
	uint64_t set, clear;
	unsigned long propagation;
} flags[] = {
	{ "ro", MOUNT_ATTR_RDONLY, 0, 0 },
	{ "rw", 0, MOUNT_ATTR_RDONLY, 0 },
	{ "nosuid", MOUNT_ATTR_NOSUID, 0, 0 },
	{ "suid", 0, MOUNT_ATTR_NOSUID, 0 },
	{ "nodev", MOUNT_ATTR_NODEV, 0, 0 },
	{ "dev", 0, MOUNT_ATTR_NODEV, 0 },
	{ "noexec", MOUNT_ATTR_NOEXEC, 0, 0 },
	{ "exec", 0, MOUNT_ATTR_NOEXEC, 0 },
	{ "private", 0, 0, MS_PRIVATE },
	{ "rprivate", 0, 0, MS_PRIVATE | MS_REC },
	{ "slave", 0, 0, MS_SLAVE },
	{ "rslave", 0, 0, MS_SLAVE | MS_REC },
	{ "shared", 0, 0, MS_SHARED },
	{ "rshared", 0, 0, MS_SHARED | MS_REC },
	{ "unbindable", 0, 0, MS_UNBINDABLE },
	{ "runbindable", 0, 0, MS_UNBINDABLE | MS_REC },
	{ "rbind", 0, 0, 0 },
	{ "silent", 0, 0, 0 },
	{ "x-create=auto", 0, 0, 0 },
	{ "x-create=dir", 0, 0, 0 },
	{ "x-create=file", 0, 0, 0 },
	{ "x-detach", 0, 0, 0 },
};

/* What the kernel knows as options of a tmpfs; it judges their values. */
static bool is_of_tmpfs(const char *word)
{
	static const char *const options[] = { "size=", "mode=", "nr_blocks=", "nr_inodes=", "huge=", "uid=", "gid=" };
	static const char *const words[] = { "inode32", "inode64", "noswap" };

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		if (strncmp(word, options[i], strlen(options[i])) == 0)
			return true;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(word, words[i]) == 0)
			return true;
	return false;
}

static int take_flag(struct bind *bind, const char *word, struct report *report)
{
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		if (strcmp(word, flags[i].word) != 0)
			continue;
		bind->set = (bind->set | flags[i].set) & ~flags[i].clear;
		bind->clear = (bind->clear | flags[i].clear) & ~flags[i].set;
		bind->propagation = flags[i].propagation ? flags[i].propagation : bind->propagation;
		return 0;
	}
	if (strcmp(word, "bind") == 0) {
		bind->is_flat = true;
		return 0;
	}
	if (strcmp(word, "nofail") == 0) {
		bind->is_optional = true;
		return 0;
	}
	if (bind->kind == BIND_TMPFS && is_of_tmpfs(word)) {
		size_t used = strlen(bind->data);

		if (snprintf(bind->data + used, sizeof(bind->data) - used, ",%s", word) >= (int)(sizeof(bind->data) - used))
			return report_fail(report, "container: --container-mounts: the flags of %s are too long", bind->target);
		return 0;
	}
	return report_fail(report, "container: --container-mounts: unknown flag \"%s\" of %s; known are ro rw nosuid nodev noexec "
				   "bind rbind private slave shared unbindable nofail, and size= mode= nr_inodes= huge= … of a tmpfs", word,
			   bind->target);
}

static int take_flags(struct bind *bind, char *words, struct report *report)
{
	char *rest = words, *word;

	while ((word = strsep(&rest, "+")) != NULL)
		if (word[0] != '\0' && take_flag(bind, word, report) < 0)
			return -1;
	return 0;
}

static bool is_path(const char *word)
{
	return word[0] == '/' || word[0] == '.';
}

static int take_words(struct bind *bind, const char *source, const char *target, struct report *report)
{
	bind->kind = strcmp(source, "tmpfs") == 0 ? BIND_TMPFS : strcmp(source, "umount") == 0 ? BIND_UMOUNT : BIND_PATH;
	if (bind->kind == BIND_PATH && !is_path(source))
		return report_fail(report, "container: --container-mounts: \"%s\" is neither a path nor tmpfs nor umount", source);
	if (target == NULL && bind->kind != BIND_PATH)
		return report_fail(report, "container: --container-mounts: %s needs a target", source);
	target = target != NULL ? target : source;
	if (!is_path(target))
		return report_fail(report, "container: --container-mounts: the target \"%s\" is not a path", target);
	if (strlen(source) >= sizeof(bind->source) || strlen(target) >= sizeof(bind->target))
		return report_fail(report, "container: --container-mounts: a path is too long");
	(void)strcpy(bind->source, source);
	(void)strcpy(bind->target, target);
	return 0;
}

int bind_next(const char **list, struct bind *bind, struct report *report)
{
	char entry[3 * 4096], *rest = entry, *source, *target;
	size_t length = strcspn(*list, ",");

	if (**list == '\0')
		return 0;
	if (length == 0 || length >= sizeof(entry))
		return report_fail(report, "container: --container-mounts: a mount is empty or too long in \"%.200s\"", *list);
	(void)memcpy(entry, *list, length);
	entry[length] = '\0';
	*list += length + ((*list)[length] == ',');
	*bind = (struct bind){ 0 };
	source = strsep(&rest, ":");
	target = strsep(&rest, ":");
	if (source[0] == '\0' || (target != NULL && target[0] == '\0'))
		return report_fail(report, "container: --container-mounts: \"%.*s\" is not SRC:DST[:FLAGS]", (int)length,
				   *list - length);
	if (take_words(bind, source, target, report) < 0 || (rest != NULL && take_flags(bind, rest, report) < 0))
		return -1;
	return 1;
}

int bind_check(const char *list, struct report *report)
{
	struct bind bind;
	int got;

	while ((got = bind_next(&list, &bind, report)) > 0)
		;
	return got;
}
