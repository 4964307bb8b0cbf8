/*
 * spec_file.c - maps the sealed memory file with the spec, parses it and lets it go.
 *
 * The seals are checked before the mapping: a file that could shrink would kill the provider in the
 * middle of parsing, one that could be written would differ from what was checked.
 */
#include "executors/common/spec_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define NEEDED_SEALS (F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK)

int spec_file_read(int fd, size_t bytes, struct spec **out)
{
    struct stat status;
    struct fault fault = {0};

    if (bytes == 0 || bytes > SPEC_MAX_BYTES)
        return 1;
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & NEEDED_SEALS) != NEEDED_SEALS)
        return 1;
    if (fstat(fd, &status) < 0)
        return -errno;
    if (status.st_size != (off_t)bytes)
        return 1;
    const char *text = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (text == MAP_FAILED)
        return -errno;
    int parsed = spec_parse(text, bytes, out, &fault);
    (void)munmap((void *)text, bytes);
    return parsed;
}
