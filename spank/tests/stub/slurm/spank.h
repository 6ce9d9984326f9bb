/*
 * What the plugin uses of Slurm's spank.h (24.11), for machines without libslurm-dev: the tests' stand-in for slurmstepd
 * then compiles against this. Never on the include path of `make install`.
 */
#ifndef STUB_SPANK_H
#define STUB_SPANK_H

typedef struct spank_handle *spank_t;
typedef enum { ESPANK_SUCCESS = 0, ESPANK_ERROR = 3000, ESPANK_ENV_NOEXIST = 3004 } spank_err_t;
typedef enum { S_JOB_UID = 0, S_JOB_ID = 2, S_JOB_STEPID = 3, S_JOB_LOCAL_TASK_COUNT = 5 } spank_item_t;
typedef enum { S_CTX_ERROR, S_CTX_LOCAL, S_CTX_REMOTE, S_CTX_ALLOCATOR, S_CTX_SLURMD, S_CTX_JOB_SCRIPT } spank_context_t;
typedef int(spank_f)(spank_t spank, int ac, char *argv[]);

extern spank_f slurm_spank_init;
extern spank_f slurm_spank_init_post_opt;
extern spank_f slurm_spank_user_init;
extern spank_f slurm_spank_task_init_privileged;
extern spank_f slurm_spank_task_init;
extern spank_f slurm_spank_task_exit;
extern spank_f slurm_spank_exit;
extern spank_f slurm_spank_job_epilog;

extern spank_context_t spank_context(void);
extern spank_err_t spank_get_item(spank_t spank, spank_item_t item, ...);
extern spank_err_t spank_getenv(spank_t spank, const char *name, char *value, int length);
extern spank_err_t spank_setenv(spank_t spank, const char *name, const char *value, int overwrite);
extern spank_err_t spank_unsetenv(spank_t spank, const char *name);
extern void slurm_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
extern void slurm_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));
extern void slurm_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define SPANK_PLUGIN(name, version)                                                                                    \
	const char plugin_name[] = #name;                                                                              \
	const char plugin_type[] = "spank";                                                                            \
	const unsigned int plugin_version = version;

#endif
