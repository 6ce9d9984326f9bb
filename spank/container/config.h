/*
 * What an image says of its process: environment, working folder, entry point.
 *
 * It lies in the tree, as records that end with a NUL, so that a squashfs file of ours is all that a container needs.
 * A squashfs file that enroot made has its environment in /etc/environment and its working folder in /etc/rc.
 */
#ifndef CONTAINER_CONFIG_H
#define CONTAINER_CONFIG_H

#include "../report.h"

#define CONFIG_FILE "/.container-config"

/* skopeo fills this in. The first letter says what a record is: Environment, Working folder, entry Point, Command. */
#define CONFIG_TEMPLATE \
	"{{range .Config.Env}}E{{.}}{{\"\\x00\"}}{{end}}W{{.Config.WorkingDir}}{{\"\\x00\"}}" \
	"{{range .Config.Entrypoint}}P{{.}}{{\"\\x00\"}}{{end}}{{range .Config.Cmd}}C{{.}}{{\"\\x00\"}}{{end}}"

/*
 * A container that runs adds its home: H, which wins over the image's HOME because the user has it mounted there, or h, for
 * where nothing else sets it.
 */
struct config {
	char *records;		/* one behind the other, each with its letter and its NUL */
	unsigned int size;
};

/* Reads it below a folder that is the container's root. An image without any is an empty one. */
int config_read(int root_fd, struct config *config, struct report *report);

/* The n-th record of a kind, without its letter, or NULL. */
const char *config_get(const struct config *config, char kind, int n);

/* Puts a record behind the others. */
int config_add(struct config *config, char kind, const char *text, struct report *report);

#endif
