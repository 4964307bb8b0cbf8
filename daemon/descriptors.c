/*
 * descriptors.c - what is handed to a provider with a run.
 *
 * Spec and standard input are sealed memory files: nothing has to be fed while the run goes, and
 * nobody can change them behind the provider's back (memfd_create(2), F_ADD_SEALS in fcntl(2)).
 */
#include "daemon/descriptors.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

void descriptors_init(struct descriptors *descriptors)
{
    for (size_t i = 0; i < SPEC_MAX_DESCRIPTORS; i++)
        descriptors->provider[i] = -1;
    descriptors->output[0] = descriptors->output[1] = descriptors->outputs = -1;
}

static void close_one(int *fd)
{
    base_close(fd);
    *fd = -1;
}

void descriptors_close_provider(struct descriptors *descriptors)
{
    for (size_t i = 0; i < SPEC_MAX_DESCRIPTORS; i++)
        close_one(&descriptors->provider[i]);
}

void descriptors_free(struct descriptors *descriptors)
{
    descriptors_close_provider(descriptors);
    close_one(&descriptors->output[0]);
    close_one(&descriptors->output[1]);
    close_one(&descriptors->outputs);
}

static int write_all(int fd, const char *data, size_t length)
{
    while (length > 0) {
        ssize_t n = write(fd, data, length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        data += n;
        length -= (size_t)n;
    }
    return 0;
}

static int open_sealed(const char *name, const char *data, size_t length, int *out)
{
    AR_AUTO_CLOSE int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -errno;
    int rc = write_all(fd, data, length);
    if (rc < 0)
        return rc;
    if (lseek(fd, 0, SEEK_SET) < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) != 0)
        return -errno;
    *out = base_take_fd(&fd);
    return 0;
}

static int open_stdin(const struct bytes *content, int *out)
{
    if (content->length > 0)
        return open_sealed("auditrun-stdin", content->data, content->length, out);
    *out = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return *out >= 0 ? 0 : -errno;
}

static int open_output(int *ours, int *theirs)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -errno;
    *ours = ends[0];
    *theirs = ends[1];
    return fcntl(*ours, F_SETFL, O_NONBLOCK) == 0 ? 0 : -errno;
}

static int open_outputs(struct descriptors *descriptors)
{
    descriptors->outputs = memfd_create("auditrun-outputs", MFD_CLOEXEC);
    if (descriptors->outputs < 0)
        return -errno;
    descriptors->provider[4] = fcntl(descriptors->outputs, F_DUPFD_CLOEXEC, 0);
    return descriptors->provider[4] >= 0 ? 0 : -errno;
}

int descriptors_open(struct descriptors *descriptors, const char *run_id,
                     const struct request *request, struct spec_run *order)
{
    *order = (struct spec_run){0};
    AR_AUTO_FREE char *spec = spec_build(run_id, request, &request->grant, &order->spec_bytes);
    if (!spec)
        return -ENOMEM;
    int rc = open_sealed("auditrun-spec", spec, order->spec_bytes, &descriptors->provider[0]);
    if (rc == 0)
        rc = open_stdin(&request->stdin_bytes, &descriptors->provider[1]);
    for (int i = 0; rc == 0 && i < 2; i++)
        rc = open_output(&descriptors->output[i], &descriptors->provider[2 + i]);
    return rc == 0 ? open_outputs(descriptors) : rc;
}

int descriptors_read_outputs(const struct descriptors *descriptors, const struct text_list *asked,
                             struct output_file **files)
{
    struct stat status;
    struct fault fault = {0};
    if (fstat(descriptors->outputs, &status) != 0)
        return -errno;
    /* Base64 and names around at most SPEC_MAX_OUTPUT_BYTES. */
    if (status.st_size <= 0 || status.st_size > (off_t)SPEC_MAX_OUTPUT_BYTES * 2)
        return 1;
    size_t length = (size_t)status.st_size;
    AR_AUTO_FREE char *text = malloc(length);
    if (!text)
        return -ENOMEM;
    ssize_t n = pread(descriptors->outputs, text, length, 0);
    if (n != (ssize_t)length)
        return n < 0 ? -errno : 1;
    return spec_outputs_parse(text, length, asked, files, &fault);
}
