/*
 * log_journal.c - see log_journal.h.
 *
 * An entry is bounded by the length of our lines, far below what a datagram may have: the protocol's
 * other way, a memory file, is not needed. A field never has a newline, which would begin another field;
 * what must not be there is sent as '?'.
 */
#include "daemon/log_journal.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define ENTRY_BYTES 4096

struct entry {
    char text[ENTRY_BYTES];
    size_t length;
    bool full;
};

bool log_journal_is_stream(int fd)
{
    const char *stream = getenv("JOURNAL_STREAM");
    char ours[64];
    struct stat status;
    if (!stream || fstat(fd, &status) != 0)
        return false;
    (void)snprintf(ours, sizeof ours, "%llu:%llu", (unsigned long long)status.st_dev,
                   (unsigned long long)status.st_ino);
    return strcmp(stream, ours) == 0;
}

int log_journal_connect(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(path);
    if (length >= sizeof address.sun_path)
        return -ENAMETOOLONG;
    memcpy(address.sun_path, path, length + 1);
    AR_AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof address) != 0)
        return -errno;
    return base_take_fd(&fd);
}

static void put(struct entry *entry, char c)
{
    entry->full |= entry->length == sizeof entry->text;
    if (!entry->full)
        entry->text[entry->length++] = c;
}

static void put_name(struct entry *entry, const char *name)
{
    for (const char *p = name; *p; p++)
        put(entry, *p >= 'a' && *p <= 'z' ? (char)(*p - 'a' + 'A') : *p);
    put(entry, '=');
}

static void put_value(struct entry *entry, const char *value)
{
    for (const char *p = value; *p; p++)
        put(entry, (unsigned char)*p < ' ' || *p == 127 ? '?' : *p);
    put(entry, '\n');
}

int log_journal_send(int fd, int priority, const char *message, const struct log_field *fields,
                     size_t count)
{
    struct entry entry = {.length = 0};
    const char digit[] = {(char)('0' + priority), '\0'};
    put_name(&entry, "message");
    put_value(&entry, message);
    put_name(&entry, "priority");
    put_value(&entry, digit);
    put_name(&entry, "syslog_identifier");
    put_value(&entry, "auditrund");
    for (size_t i = 0; i < count; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "auditrun_%s", fields[i].name);
        put_name(&entry, name);
        put_value(&entry, fields[i].value);
    }
    if (entry.full)
        return -EMSGSIZE;
    return send(fd, entry.text, entry.length, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}
