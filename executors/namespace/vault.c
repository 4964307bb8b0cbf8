/*
 * vault.c - reads the file of secrets where it lies, and shows it to the code.
 */
#include "executors/namespace/vault.h"

#include "executors/namespace/trusted.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#ifndef MOUNT_ATTR_RDONLY /* a C library before glibc 2.36 */
#    include <linux/mount.h>
#endif

#define FILE_MODE 0400
#define FLAGS     (MS_NOSUID | MS_NODEV | MS_NOEXEC)
/* Room for the biggest file of secrets, whatever of each last page is empty. */
#define OPTIONS "mode=500,nr_blocks=1152,nr_inodes=64"

/* The entry of this name. False: there is none, or the text before it is no file of secrets. */
static bool find(const struct vault *vault, const char *name, struct secret_entry *entry)
{
    const char *at = vault->text, *end = vault->text + vault->length;
    while (secret_file_next(&at, end, entry) == 0)
        if (strcmp(entry->name, name) == 0)
            return true;
    return false;
}

/* Are all of these names there, and nothing else? */
static bool has_just(const struct vault *vault, const struct text_list *names)
{
    const char *at = vault->text, *end = vault->text + vault->length;
    struct secret_entry entry;
    size_t count = 0;
    int result;
    while ((result = secret_file_next(&at, end, &entry)) == 0)
        count++;
    if (result < 0 || count != names->count)
        return false;
    for (size_t i = 0; i < names->count; i++)
        if (!find(vault, names->items[i], &entry))
            return false;
    return true;
}

int vault_open(struct vault *vault, int fd, const struct text_list *names)
{
    struct stat status;
    *vault = (struct vault){0};
    if (fstat(fd, &status) < 0)
        return -errno;
    if (!S_ISREG(status.st_mode) || status.st_size <= 0 || status.st_size > SECRET_FILE_MAX_BYTES)
        return -EPROTO;
    const size_t length = (size_t)status.st_size;
    char *text = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (text == MAP_FAILED)
        return -errno;
    (void)madvise(text, length, MADV_DONTDUMP);
    *vault = (struct vault){.text = text, .length = length};
    if (has_just(vault, names))
        return 0;
    vault_wipe(vault);
    return -EPROTO;
}

/* Without the line end that an editor leaves, as a shell would take it from the file. */
static size_t variable_length(const struct secret_entry *entry)
{
    size_t length = entry->length;
    length -= length > 0 && entry->value[length - 1] == '\n';
    return length - (length > 0 && length < entry->length && entry->value[length - 1] == '\r');
}

int vault_variable(const struct vault *vault, const char *name, char **variable)
{
    struct secret_entry entry;
    if (!find(vault, name, &entry) || memchr(entry.value, '\0', entry.length))
        return 1;
    const size_t before = strlen(name) + 1, length = variable_length(&entry);
    char *text = malloc(before + length + 1);
    if (!text)
        return -ENOMEM;
    memcpy(text, name, before - 1);
    text[before - 1] = '=';
    memcpy(text + before, entry.value, length);
    text[before + length] = '\0';
    *variable = text;
    return 0;
}

static int write_secret(int folder, const struct secret_entry *entry)
{
    const char *data = entry->value;
    AR_AUTO_CLOSE int fd = openat(folder, entry->name,
                                  O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, FILE_MODE);
    if (fd < 0)
        return -errno;
    for (size_t left = entry->length; left > 0;) {
        ssize_t written = write(fd, data, left);
        if (written <= 0)
            return written < 0 ? -errno : -EIO;
        data += written;
        left -= (size_t)written;
    }
    return 0;
}

int vault_show(uint64_t token, const struct vault *vault)
{
    const char *at = vault->text, *end = vault->text + vault->length;
    const struct mount_attr closed = {.attr_set = MOUNT_ATTR_RDONLY};
    struct secret_entry entry;
    int result = trusted_mount(token, "secrets", VAULT_FOLDER, "tmpfs", FLAGS, OPTIONS);
    if (result < 0)
        return result;
    AR_AUTO_CLOSE int folder = open(VAULT_FOLDER, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return -errno;
    while (result == 0 && secret_file_next(&at, end, &entry) == 0)
        result = write_secret(folder, &entry);
    return result < 0 ? result : trusted_mount_setattr(token, AT_FDCWD, VAULT_FOLDER, &closed);
}

void vault_wipe(struct vault *vault)
{
    if (!vault->text)
        return;
    explicit_bzero(vault->text, vault->length);
    (void)munmap(vault->text, vault->length);
    *vault = (struct vault){0};
}
