/*
 * files.c - the two crossings of files between the request and the scratch.
 *
 * Writing happens before the code exists, reading after everything of it is dead. Reading still
 * trusts nothing: only regular files, opened without waiting, up to the size that is left.
 */
#include "executors/namespace/files.h"

#include "executors/namespace/trusted.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>

#define BENEATH     (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV)
#define FILE_MODE   0755
#define FOLDER_MODE 0755

static int open_beneath(uint64_t token, int folder, const char *path, uint64_t flags, uint64_t mode)
{
    struct open_how how = {.flags = flags | O_CLOEXEC, .mode = mode, .resolve = BENEATH};
    return trusted_openat2(token, folder, path, &how);
}

static int write_all(int fd, const char *data, size_t length)
{
    for (ssize_t written; length > 0; data += written, length -= (size_t)written)
        if ((written = write(fd, data, length)) <= 0) {
            if (written < 0 && errno == EINTR)
                written = 0;
            else
                return written < 0 ? -errno : -EIO;
        }
    return 0;
}

/* Makes the folders on the way to path, one after the other. */
static int make_parents(uint64_t token, int folder, const char *path)
{
    AR_AUTO_CLOSE int here = fcntl(folder, F_DUPFD_CLOEXEC, 0);
    if (here < 0)
        return -errno;
    AR_AUTO_FREE char *part = strdup(path);
    if (!part)
        return -ENOMEM;
    for (size_t from = 0, to; part[to = from + strcspn(part + from, "/")]; from = to + 1) {
        part[to] = '\0';
        if (mkdirat(here, part + from, FOLDER_MODE) < 0 && errno != EEXIST)
            return -errno;
        int next = open_beneath(token, here, part + from, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
        if (next < 0)
            return next;
        (void)close(here);
        here = next;
    }
    return 0;
}

int files_write(uint64_t token, int folder, const char *path, const struct bytes *content)
{
    int result = strchr(path, '/') ? make_parents(token, folder, path) : 0;
    if (result < 0)
        return result;
    AR_AUTO_CLOSE int fd =
        open_beneath(token, folder, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, FILE_MODE);
    if (fd < 0)
        return fd;
    return write_all(fd, content->data, content->length);
}

/* Reads an open regular file of at most room bytes. 0, a problem by *problem, or negative. */
static int read_regular(int fd, size_t room, struct bytes *content, enum output_problem *problem)
{
    struct stat status;
    if (fstat(fd, &status) < 0)
        return -errno;
    if (!S_ISREG(status.st_mode))
        *problem = OUTPUT_NOT_REGULAR;
    else if ((uint64_t)status.st_size > room)
        *problem = OUTPUT_TOO_BIG;
    if (*problem != OUTPUT_OK)
        return 0;
    const size_t size = (size_t)status.st_size;
    content->data = malloc(size + 1);
    if (!content->data)
        return -ENOMEM;
    for (ssize_t got = 1; content->length < size && got > 0; content->length += (size_t)got)
        if ((got = read(fd, content->data + content->length, size - content->length)) < 0)
            return -errno;
    content->data[content->length] = '\0';
    return 0;
}

static int read_one(uint64_t token, int folder, const char *path, size_t room,
                    struct output_file *file)
{
    file->path = strdup(path);
    if (!file->path)
        return -ENOMEM;
    AR_AUTO_CLOSE int fd = open_beneath(token, folder, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    if (fd == -ELOOP || fd == -ENXIO || fd == -EXDEV)
        file->problem = OUTPUT_NOT_REGULAR; /* a link or a socket */
    else if (fd < 0)
        file->problem = OUTPUT_MISSING;
    return fd < 0 ? 0 : read_regular(fd, room, &file->content, &file->problem);
}

int files_collect(uint64_t token, int folder, const struct text_list *paths, int fd)
{
    size_t room = SPEC_MAX_OUTPUT_BYTES, length;
    struct output_file *files = calloc(paths->count + 1, sizeof(*files));
    if (!files)
        return -ENOMEM;
    int result = 0;
    for (size_t i = 0; result == 0 && i < paths->count; i++) {
        result = read_one(token, folder, paths->items[i], room, &files[i]);
        room -= files[i].content.length;
    }
    AR_AUTO_FREE char *text = result == 0 ? spec_outputs_build(files, paths->count, &length) : NULL;
    if (result == 0)
        result = text ? write_all(fd, text, length) : -ENOMEM;
    spec_outputs_free(files, paths->count);
    return result;
}
