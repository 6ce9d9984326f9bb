/*
 * authorized-keys USER: prints the SSH keys that a user of the jail lets in, for sshd's AuthorizedKeysCommand.
 *
 * sshd on a worker runs outside the jail and must not follow a path of the jail by itself: as root it would be led by
 * links, and a storage that hangs would hold it. So it starts `jail run … -- authorized-keys USER`: a process inside a
 * jail of its own, which becomes the user before it touches the user's files, and which an alarm ends.
 *
 * What sshd's StrictModes refuses is refused here too: a file, or a folder from the home down to it, that others than
 * the user and root may write (sshd_config(5)). Nothing there is no error: the user then has no keys.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SECONDS = 5, SIZE_MAX_KEYS = 1 << 20, FAILED = 1 };

__attribute__((format(printf, 1, 2), noreturn)) static void refuse(const char *format, ...)
{
	va_list values;

	(void)fputs("authorized-keys: ", stderr);
	va_start(values, format);
	(void)vfprintf(stderr, format, values);
	va_end(values);
	(void)fputc('\n', stderr);
	_exit(FAILED);
}

static void become(const struct passwd *user)
{
	if (initgroups(user->pw_name, user->pw_gid) < 0 || setgid(user->pw_gid) < 0 || setuid(user->pw_uid) < 0)
		refuse("cannot become %s: %m", user->pw_name);
	if (user->pw_uid != 0 && setuid(0) == 0)
		refuse("could become root again");
}

/* Returns whether what is open at `fd` is the user's or root's, and nobody else may write to it. */
static void check(int fd, const struct passwd *user, const char *name, mode_t type)
{
	struct stat status;

	if (fstat(fd, &status) < 0)
		refuse("cannot read the attributes of %s of %s: %m", name, user->pw_name);
	if ((status.st_mode & S_IFMT) != type)
		refuse("%s of %s has the wrong file type", name, user->pw_name);
	if ((status.st_uid != user->pw_uid && status.st_uid != 0) || (status.st_mode & 022) != 0)
		refuse("%s of %s may be written by others: its keys are ignored", name, user->pw_name);
	if (type == S_IFREG && status.st_size > SIZE_MAX_KEYS)
		refuse("%s of %s is larger than %d bytes", name, user->pw_name, SIZE_MAX_KEYS);
}

static int open_checked(int at, const struct passwd *user, const char *name, mode_t type)
{
	int fd = openat(at, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (type == S_IFDIR ? O_DIRECTORY : 0));

	if (fd < 0 && errno == ENOENT)
		_exit(0);
	if (fd < 0)
		refuse("cannot open %s of %s: %m", name, user->pw_name);
	check(fd, user, name, type);
	return fd;
}

static void print(int fd, const struct passwd *user)
{
	char block[8192];
	ssize_t length;

	while ((length = read(fd, block, sizeof(block))) > 0)
		if (fwrite(block, 1, (size_t)length, stdout) != (size_t)length)
			refuse("cannot print the keys of %s: %m", user->pw_name);
	if (length < 0)
		refuse("cannot read the keys of %s: %m", user->pw_name);
	if (fflush(stdout) != 0)
		refuse("cannot print the keys of %s: %m", user->pw_name);
}

int main(int argc, char **argv)
{
	const struct passwd *user;
	int home, folder;

	if (argc != 2)
		refuse("name one user");
	(void)alarm(SECONDS);
	errno = 0;
	user = getpwnam(argv[1]);
	if (user == NULL)
		refuse("no user %s in the jail", argv[1]);
	become(user);
	home = open_checked(AT_FDCWD, user, user->pw_dir, S_IFDIR);
	folder = open_checked(home, user, ".ssh", S_IFDIR);
	print(open_checked(folder, user, "authorized_keys", S_IFREG), user);
	return 0;
}
