/*
 * process.c - see process.h. /proc is memory: reading it does not wait for a disk.
 */
#include "daemon/process.h"

#include "protocol/base.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>

static int64_t time_us(struct timeval time)
{
    return (int64_t)time.tv_sec * 1000000 + time.tv_usec;
}

int64_t process_cpu_us(void)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0)
        return 0;
    return time_us(usage.ru_utime) + time_us(usage.ru_stime);
}

int64_t process_resident_bytes(void)
{
    char text[128];
    AR_AUTO_CLOSE int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t length = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
    if (length <= 0)
        return 0;
    text[length] = '\0';
    char *end = text;
    (void)strtoll(text, &end, 10); /* the second number is what is resident, in pages */
    return strtoll(end, NULL, 10) * sysconf(_SC_PAGESIZE);
}

int64_t process_open_descriptors(void)
{
    int64_t count = 0;
    DIR *folder = opendir("/proc/self/fd");
    const struct dirent *entry;
    if (!folder)
        return 0;
    while ((entry = readdir(folder)))
        count += entry->d_name[0] != '.';
    (void)closedir(folder);
    return count - 1; /* without the folder's own */
}

int64_t process_max_descriptors(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? (int64_t)limit.rlim_cur : 0;
}
