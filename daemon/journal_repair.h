/*
 * journal_repair.h - what an operator does with a journal while no daemon uses it: look what is in it,
 * and save what is whole of one that is damaged.
 *
 * Both say what they found on the given stream, as lines for people. Ids of runs and counts are all
 * that is shown of what the journal holds.
 */
#ifndef AUDITRUN_DAEMON_JOURNAL_REPAIR_H
#define AUDITRUN_DAEMON_JOURNAL_REPAIR_H

#include "protocol/base.h"

#include <stdio.h>

/* Reads the journal in the folder and changes nothing. 0: sound (a torn tail is); 1: damaged, lost,
 * in use or unreadable, which has been said. */
int journal_repair_check(const char *directory, FILE *out) AR_MUST_CHECK;

/* Of a damaged journal: keeps the file as it is as journal.damaged-N, durably, and puts one in its
 * place that has all whole frames, from both sides of each damage, in their order, and an event of
 * the repair for the ledger. Says how many bytes at which places were not. 0: repaired, or there was nothing to do; 1: not possible, which has
 * been said, and the journal is as it was. */
int journal_repair_mend(const char *directory, FILE *out) AR_MUST_CHECK;

#endif
