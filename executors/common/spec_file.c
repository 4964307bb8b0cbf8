/*
 * spec_file.c - reads the sealed memory file with the spec, parses it and lets it go.
 *
 * The seals are checked first: a file that could be written would differ from what others see in it. It
 * is copied and not mapped, which is dearer than reading for all but huge ones.
 */
#include "executors/common/spec_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#define NEEDED_SEALS (F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK)

static int read_all(int fd, char *text, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t got = pread(fd, text + done, bytes - done, (off_t)done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? -errno : -EIO;
        done += (size_t)got;
    }
    return 0;
}

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
    AR_AUTO_FREE char *text = malloc(bytes);
    if (!text)
        return -ENOMEM;
    int result = read_all(fd, text, bytes);
    return result < 0 ? result : spec_parse(text, bytes, out, &fault);
}
