/*
 * output.c - standard output and error of a run.
 *
 * The cap covers both streams together, as the code wrote them. What is over it is cut off, and the run
 * ends. Secrets are masked after that and before anything else sees the bytes: what is in run->output
 * can be given to the caller.
 */
#include "daemon/output.h"

#include "daemon/reply.h"
#include "daemon/secrets.h"

#include <event2/buffer.h>
#include <event2/event.h>
#include <string.h>

#define READ_BYTES 65536 /* in one turn of a stream */

struct stream {
    struct output *output;
    int which;
    int fd;
    struct event *readable;   /* NULL: at its end */
    struct mask_stream *mask; /* NULL: nothing to mask, or all is out */
};

struct output {
    struct run *run;
    void (*ended)(void *context);
    void *context;
    struct stream streams[2];
    int64_t bytes;
};

/* ---- to the caller ---------------------------------------------------------------------------- */

static void give(struct stream *stream, const char *data, size_t length)
{
    struct run *run = stream->output->run;
    struct evbuffer **buffer = &run->output[stream->which];
    if (length == 0)
        return;
    if (!*buffer)
        *buffer = evbuffer_new();
    if (*buffer && evbuffer_add(*buffer, data, length) == 0)
        reply_stream(run, stream->which, (int)length);
    else
        run->truncated[stream->which] = true;
}

/* Gives what the mask lets out, and wipes it. */
static void give_masked(struct stream *stream, int rc, char *text, size_t length)
{
    if (rc < 0) {
        stream->output->run->truncated[stream->which] = true; /* no memory: rather nothing */
        return;
    }
    give(stream, text, length);
    free(text);
}

static void pass_on(struct stream *stream, const char *data, size_t length)
{
    char *masked = NULL;
    size_t masked_length = 0;
    if (!stream->mask) {
        give(stream, data, length);
        return;
    }
    int rc = mask_stream_put(stream->mask, data, length, &masked, &masked_length);
    give_masked(stream, rc, masked, masked_length);
}

/* A stream that does not end by itself may end within a secret. */
static void end_mask(struct stream *stream, bool cut)
{
    char *rest = NULL;
    size_t length = 0;
    if (!stream->mask)
        return;
    int rc = mask_stream_end(stream->mask, cut, &rest, &length);
    give_masked(stream, rc, rest, length);
    mask_stream_free(AR_TAKE(stream->mask));
}

/* ---- from the pipes --------------------------------------------------------------------------- */

static void close_stream(struct stream *stream, bool cut)
{
    if (!stream->readable)
        return;
    event_free(AR_TAKE(stream->readable));
    base_close(&stream->fd);
    stream->fd = -1;
    end_mask(stream, cut || stream->output->run->stop);
}

static void cut_off(struct stream *stream)
{
    struct run *run = stream->output->run;
    end_mask(stream, true);
    run->truncated[stream->which] = true;
    if (!run_stop(run, RUN_STOP_OUTPUT) && !run->stop)
        run->stop = RUN_STOP_OUTPUT; /* found while the pipe was emptied after the report */
}

static void take(struct stream *stream, const char *data, size_t length)
{
    struct output *output = stream->output;
    const int64_t cap = output->run->request->grant.limits.value[LIMIT_OUTPUT_BYTES];
    const int64_t room = cap - output->bytes;
    const size_t kept = (int64_t)length > room ? (size_t)room : length;
    output->bytes += (int64_t)kept;
    if (!output->run->truncated[stream->which])
        pass_on(stream, data, kept);
    if (kept < length)
        cut_off(stream);
}

/* False when there is nothing (any more) at present. */
static bool read_some(struct stream *stream)
{
    char data[READ_BYTES];
    ssize_t n = read(stream->fd, data, sizeof data);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n <= 0) {
        close_stream(stream, false);
        return false;
    }
    take(stream, data, (size_t)n);
    return true;
}

static void readable(evutil_socket_t fd, short what, void *context)
{
    struct stream *stream = context;
    struct output *output = stream->output;
    (void)fd;
    (void)what;
    (void)read_some(stream);
    if (output_has_ended(output))
        output->ended(output->context);
}

bool output_has_ended(const struct output *output)
{
    return !output->streams[0].readable && !output->streams[1].readable;
}

/* What is in a pipe was written in time, however busy the loop has been. Whoever still writes comes to
 * the cap. */
void output_finish(struct output *output)
{
    for (size_t i = 0; i < AR_COUNT(output->streams); i++) {
        struct stream *stream = &output->streams[i];
        while (stream->readable && !output->run->truncated[i] && read_some(stream))
            continue;
        close_stream(stream, true);
    }
}

int64_t output_bytes(const struct output *output)
{
    return output->bytes;
}

/* ---- beginning and end ------------------------------------------------------------------------ */

static int start_stream(struct stream *stream, const struct mask *mask)
{
    struct event_base *base = stream->output->run->line->base;
    if (mask && !(stream->mask = mask_stream_new(mask)))
        return -ENOMEM;
    stream->readable = event_new(base, stream->fd, EV_READ | EV_PERSIST, readable, stream);
    return stream->readable && event_add(stream->readable, NULL) == 0 ? 0 : -ENOMEM;
}

int output_start(struct run *run, int fds[2], void (*ended)(void *context), void *context,
                 struct output **out)
{
    struct output *output = calloc(1, sizeof *output);
    const struct mask *mask = run->secrets ? secrets_mask(run->secrets) : NULL;
    if (!output)
        return -ENOMEM;
    *output = (struct output){.run = run, .ended = ended, .context = context};
    int rc = 0;
    for (int i = 0; i < 2; i++)
        output->streams[i] = (struct stream){.output = output, .which = i, .fd = fds[i]};
    fds[0] = fds[1] = -1;
    for (int i = 0; rc == 0 && i < 2; i++)
        rc = start_stream(&output->streams[i], mask);
    if (rc < 0)
        output_free(output);
    else
        *out = output;
    return rc;
}

void output_free(struct output *output)
{
    if (!output)
        return;
    for (size_t i = 0; i < AR_COUNT(output->streams); i++) {
        if (output->streams[i].readable)
            event_free(output->streams[i].readable);
        base_close(&output->streams[i].fd);
        mask_stream_free(output->streams[i].mask);
    }
    free(output);
}

/* ---- files ------------------------------------------------------------------------------------ */

static int mask_all(const struct mask *mask, struct bytes *content)
{
    char *parts[2] = {NULL, NULL};
    size_t lengths[2] = {0, 0};
    struct mask_stream *stream = mask_stream_new(mask);
    int rc = stream
                 ? mask_stream_put(stream, content->data, content->length, &parts[0], &lengths[0])
                 : -ENOMEM;
    if (rc == 0)
        rc = mask_stream_end(stream, false, &parts[1], &lengths[1]);
    char *joined = rc == 0 ? malloc(lengths[0] + lengths[1] + 1) : NULL;
    if (joined) {
        if (lengths[0] > 0)
            memcpy(joined, parts[0], lengths[0]);
        if (lengths[1] > 0)
            memcpy(joined + lengths[0], parts[1], lengths[1]);
        joined[lengths[0] + lengths[1]] = '\0';
        explicit_bzero(content->data, content->length);
        bytes_free(content);
        *content = (struct bytes){joined, lengths[0] + lengths[1]};
    }
    free(parts[0]);
    free(parts[1]);
    mask_stream_free(stream);
    return joined ? 0 : -ENOMEM;
}

int output_mask_files(struct run *run)
{
    const struct mask *mask = run->secrets ? secrets_mask(run->secrets) : NULL;
    int rc = 0;
    for (size_t i = 0; mask && run->outputs && rc == 0 && i < run->request->outputs.count; i++)
        if (!run->outputs[i].problem && run->outputs[i].content.length > 0)
            rc = mask_all(mask, &run->outputs[i].content);
    return rc;
}
