/*
 * attack.h - what the executor tries against its own sandbox, from inside, before it offers it.
 */
#ifndef AUDITRUN_EXECUTORS_NAMESPACE_ATTACK_H
#define AUDITRUN_EXECUTORS_NAMESPACE_ATTACK_H

#include "protocol/base.h"

/* Each attack is a verb of its own, run as the code of a sandbox. Exit codes: 0 the sandbox held;
 * ATTACK_THROUGH and above: the attack with that number in the list got through. */
#define ATTACK_THROUGH 100

/* What a sandbox is given, beside what its slot reaches (REACH_*). */
enum { ATTACK_PORT = 4, ATTACK_SECRETS = 8 };

/* What it finds then: this byte to be read from its data port, and in the file `data`; this secret, as a
 * file and as a variable; these paths of the host. In the first there is a FIFO with a reader, too. */
#define ATTACK_BYTE   'd'
#define ATTACK_SECRET "PROBE"
#define ATTACK_VALUE  "a value"
#define ATTACK_READ   "/auditrun/read"
#define ATTACK_WRITE  "/auditrun/write"

/* The walls: capabilities, namespaces, files, descriptors, processes, network; and whether what is given
 * is there. */
int attack_walls(unsigned given);
/* A limit, from inside; the number is what was granted. 0: it held, 1: it did not. */
int attack_processes(long granted);
int attack_open_files(long granted);
int attack_scratch(long granted_bytes);
/* Burns processor time in a way that is hard to count; ends only when something ends it, or after
 * ten seconds. */
int attack_processor(void);

/* What an exit code of attack_walls() means, for people. */
const char *attack_word(int code);

#endif
