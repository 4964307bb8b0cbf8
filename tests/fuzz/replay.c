/*
 * The main of a fuzzer that is built without libFuzzer: feeds it each file of the corpora that are named
 * on the command line, so that every input that once mattered is a test of `make check`. The output is
 * TAP. A crash is the fuzzer's own; what fails here is only an input that cannot be read.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base.h"

#define REPLAY_MAX_BYTES (16 * 1024 * 1024)
#define REPLAY_MAX_PATH  4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Exactly as long as the input, so that a sanitizer sees a read beyond its end. Returns 0, or -1. */
static int replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data = NULL;
    long size;
    int rc = -1;

    if (!file)
        return -1;
    if (fseek(file, 0, SEEK_END) < 0 || (size = ftell(file)) < 0 || size > REPLAY_MAX_BYTES)
        goto out;
    data = malloc(size > 0 ? (size_t)size : 1);
    if (!data)
        goto out;
    rewind(file);
    if (fread(data, 1, (size_t)size, file) != (size_t)size)
        goto out;
    LLVMFuzzerTestOneInput(data, (size_t)size);
    rc = 0;
out:
    free(data);
    fclose(file);
    return rc;
}

/* Every file of one corpus; counts in *done. Returns the number of files that could not be read. */
static int replay_corpus(const char *folder, int *done)
{
    struct dirent **entries = NULL;
    int failures = 0, count = scandir(folder, &entries, NULL, alphasort);

    if (count < 0) {
        printf("not ok - %s cannot be listed\n", folder);
        return 1;
    }
    for (int i = 0; i < count; i++) {
        char path[REPLAY_MAX_PATH];
        int length = snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);

        if (entries[i]->d_name[0] != '.') {
            bool good = length < (int)sizeof(path) && replay_file(path) == 0;

            printf("%sok %d - %s\n", good ? "" : "not ", ++*done, entries[i]->d_name);
            failures += good ? 0 : 1;
        }
        free(entries[i]);
    }
    free(entries);
    return failures;
}

int main(int argc, char **argv)
{
    int failures = 0, done = 0;

    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 1; i < argc; i++)
        failures += replay_corpus(argv[i], &done);
    if (done == 0) {
        printf("not ok 1 - no input was replayed\n");
        failures++;
    }
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
