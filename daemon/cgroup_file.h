/*
 * cgroup_file.h - reading and writing the small files of control groups, and where they are.
 */
#ifndef AUDITRUN_DAEMON_CGROUP_FILE_H
#define AUDITRUN_DAEMON_CGROUP_FILE_H

#include "protocol/base.h"

#include <sys/types.h>

#define CGROUP_PATH_BYTES 512
#define CGROUP_TEXT_BYTES 1024 /* more than any of these files has, but lists of processes */
#define CGROUP_PREFIX     "auditrund."
#define CGROUP_LEAF       "slot."

/* The folder of the group in which the daemon is: in the v1 hierarchy of a controller, or (NULL) in
 * v2. False when there is none that can be seen. */
bool cgroup_file_base(const char *controller, char out[CGROUP_PATH_BYTES]) AR_MUST_CHECK;
/* Appends "/name" to a path. False when it gets too long. */
bool cgroup_file_join(char out[CGROUP_PATH_BYTES], const char *path,
                      const char *name) AR_MUST_CHECK;

/* Is word one of the items of list, which are separated by commas or blanks? */
bool cgroup_file_has_item(const char *list, const char *word);

/* directory is an open folder, or AT_FDCWD with a whole path as name. 0 or -errno. Not every kernel
 * has every file, so that some writes are only tried. */
int cgroup_file_write(int directory, const char *name, const char *text);
int cgroup_file_write_number(int directory, const char *name, int64_t value);
/* The text of a small file: NUL-terminated, "" when it cannot be read. */
void cgroup_file_read(int directory, const char *name, char text[CGROUP_TEXT_BYTES]);
/* The number behind key in a text; -1: not there. */
int64_t cgroup_file_number(const char *text, const char *key);
/* Of a file that holds nothing but a number. */
int64_t cgroup_file_read_number(int directory, const char *name);

/* Calls visit for each process in the group of an open folder. */
void cgroup_file_each_process(int directory, void (*visit)(void *context, pid_t pid),
                              void *context);

/* Takes away what daemons that are no more have left in a folder: auditrund.PID/slot.N, where PID is
 * of no process. Their processes are killed and waited for, a second at most for each group. */
void cgroup_file_sweep(const char *base);
/* Removes one such group (auditrund.PID) whosever it is. */
void cgroup_file_remove(const char *path);

#endif
