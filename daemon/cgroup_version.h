/*
 * cgroup_version.h - what differs between the two versions of control groups, as data for cgroup.c.
 *
 * A version finds (and makes) the daemon's own group and names the files of a leaf; everything else is
 * the same for both. In v1 each controller has a hierarchy of its own, so a leaf is several folders;
 * in v2 it is one.
 */
#ifndef AUDITRUN_DAEMON_CGROUP_VERSION_H
#define AUDITRUN_DAEMON_CGROUP_VERSION_H

#include "daemon/cgroup_file.h"

enum cgroup_controller {
    CGROUP_MEMORY,
    CGROUP_PIDS,
    CGROUP_CPU,
    CGROUP_FREEZER,
    CGROUP_CONTROLLERS
};

/* Numbers that the kernel keeps for a leaf. Those of one file stand side by side. */
enum cgroup_counter {
    CGROUP_OOM_KILLS,         /* processes killed, whosever memory it was for */
    CGROUP_MEMORY_HITS,       /* times that the leaf's own limit was reached */
    CGROUP_MEMORY_PEAK,       /* bytes; writing to it begins anew, where the kernel can do that */
    CGROUP_PROCESSES_NOW,     /* threads, and what has to be reaped */
    CGROUP_PROCESSES_REFUSED, /* times that the leaf's own limit was reached */
    CGROUP_PROCESSES_PEAK,
    CGROUP_CPU_TOTAL,
    CGROUP_CPU_USER, /* user and system say how the total is to be divided */
    CGROUP_CPU_SYSTEM,
    CGROUP_COUNTERS
};

/* A word to be written into a file of a leaf. */
struct cgroup_word {
    enum cgroup_controller controller;
    const char *file; /* NULL: there is none */
    const char *word;
};

/* The daemon's own group. */
struct cgroup_tree {
    size_t count; /* of folders */
    char path[CGROUP_CONTROLLERS][CGROUP_PATH_BYTES];
    int folder[CGROUP_CONTROLLERS]; /* which of them has the controller; -1: it cannot be had */
    char base[CGROUP_PATH_BYTES];   /* v2: where the daemon was found */
    bool moved;                     /* v2: and from where it has moved away */
};

#define CGROUP_FIRST_WORDS 2

struct cgroup_version {
    const char *word;
    /* Fills the tree in and makes its folders. 0; 1: this version cannot be used here. */
    int (*open)(struct cgroup_tree *tree);
    /* Undoes what it did, but for the folders, which are gone. */
    void (*close)(struct cgroup_tree *tree);

    struct {
        enum cgroup_controller controller;
        const char *file; /* NULL: the same as that of the counter before */
        const char *key;  /* what stands before the number; "": nothing */
    } counters[CGROUP_COUNTERS];
    int64_t cpu_units; /* of CGROUP_CPU_TOTAL in a microsecond */

    const char *memory_limit, *processes_limit;   /* files */
    const char *memory_now, *memory_reclaim;      /* likewise; NULL: the kernel asks itself */
    const char *memory_unlimited;                 /* the word for it */
    struct cgroup_word first[CGROUP_FIRST_WORDS]; /* into each new leaf, if it is there */
    struct cgroup_word freeze, thaw, kill;
};

#endif
