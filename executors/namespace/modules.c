/*
 * modules.c - modules of ours that code may import, from the host into the root of sandboxes.
 */
#include "executors/namespace/modules.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static int read_all(int fd, struct bytes *content)
{
    struct stat status;
    if (fstat(fd, &status) < 0)
        return -errno;
    if (!S_ISREG(status.st_mode) || status.st_size > (off_t)MODULES_MAX_BYTES)
        return 1;
    content->data = malloc((size_t)status.st_size + 1);
    if (!content->data)
        return -ENOMEM;
    ssize_t got = read(fd, content->data, (size_t)status.st_size);
    if (got < 0)
        return -errno;
    content->length = (size_t)got;
    return 0;
}

static int read_file(int folder, const char *language, const char *name, struct modules *modules)
{
    if (modules->count >= MODULES_MAX)
        return 1;
    struct output_file *file = &modules->files[modules->count++];
    AR_AUTO_CLOSE int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || asprintf(&file->path, "%s/%s", language, name) < 0) {
        file->path = NULL;
        return fd < 0 ? -errno : -ENOMEM;
    }
    return read_all(fd, &file->content);
}

/* Calls visit for each name in a folder of a folder. */
static int each(int parent, const char *name, struct modules *modules,
                int (*visit)(int folder, const char *name, const char *entry, struct modules *))
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    int result = 0;
    if (!entries) {
        result = -errno;
        base_close(&fd);
        return result;
    }
    while (result == 0 && (entry = readdir(entries)))
        if (entry->d_name[0] != '.')
            result = visit(fd, name, entry->d_name, modules);
    (void)closedir(entries);
    return result;
}

static int read_language(int folder, const char *unused, const char *name, struct modules *modules)
{
    (void)unused;
    int result = each(folder, name, modules, read_file);
    return result == -ENOTDIR ? 0 : result;
}

int modules_read(const char *folder, struct modules *out)
{
    *out = (struct modules){0};
    int result = each(AT_FDCWD, folder, out, read_language);
    if (result != 0)
        modules_free(out);
    return result == -ENOENT ? 0 : result;
}

static int write_file(const char *path, const struct bytes *content)
{
    AR_AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0)
        return -errno;
    ssize_t written = write(fd, content->data, content->length);
    if (written < 0)
        return -errno;
    return (size_t)written == content->length ? 0 : -EIO;
}

static int make_folder(const char *path)
{
    return mkdir(path, 0755) < 0 && errno != EEXIST ? -errno : 0;
}

int modules_write(const struct modules *modules, const char *folder)
{
    int result = make_folder(folder);
    for (size_t i = 0; result == 0 && i < modules->count; i++) {
        const struct output_file *file = &modules->files[i];
        char path[PATH_MAX];
        (void)snprintf(path, sizeof(path), "%s/%.*s", folder, (int)strcspn(file->path, "/"),
                       file->path);
        result = make_folder(path);
        (void)snprintf(path, sizeof(path), "%s/%s", folder, file->path);
        if (result == 0)
            result = write_file(path, &file->content);
    }
    return result;
}

void modules_free(struct modules *modules)
{
    for (size_t i = 0; i < modules->count; i++) {
        free(modules->files[i].path);
        bytes_free(&modules->files[i].content);
    }
    *modules = (struct modules){0};
}
