/*
 * config.h - configurations of tests: defaults, and what a test puts in their place.
 */
#ifndef AUDITRUN_TESTS_LIB_CONFIG_H
#define AUDITRUN_TESTS_LIB_CONFIG_H

/* Defaults and changes (INI) as one text, malloc'd. Keys of the defaults that the changes have too
 * are left out; so is a whole section whose name stands in the changes with a line "-". */
char *config_join(const char *defaults, const char *changes);

#endif
