/*
 * answer.c - the result of a run, told to whoever asked for it.
 *
 * The code's stdout and stderr go where the program's own go, and nothing of ours is mixed into
 * stdout. The verdict is for people: on a terminal, with --verbose, and always when the code did not
 * end by itself, because then an exit code alone says too little.
 */
#include "cli/answer.h"

#include "cli/exit_code.h"
#include "cli/message.h"
#include "cli/show.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

static int output_failed(int rc, const char *what)
{
    if (rc > 0)
        return message_error(EXIT_CODE_PROTOCOL, "the daemon's answer has no readable %s", what);
    return message_error(EXIT_CODE_OUTPUT, "cannot write %s: %s", what, strerror(-rc));
}

/* One of the code's two streams, without what was printed of it before; nothing when the result has
 * none. *open_line: its last line has no end. 0 or an exit code. */
static int print_stream(const struct order *order, const json_t *result, const char *member,
                        size_t printed, FILE *stream, bool *open_line)
{
    const json_t *content = json_object_get(result, member);
    struct terminal terminal;
    struct bytes bytes = {0};
    if (!content || json_is_null(content))
        return 0;
    terminal_open(&terminal, stream);
    int rc = follow_decode(content, &bytes);
    if (rc == 0 && bytes.length > printed)
        rc = terminal_write(&terminal, bytes.data + printed, bytes.length - printed, order->raw);
    *open_line = rc == 0 && bytes.length > 0 && bytes.data[bytes.length - 1] != '\n';
    bytes_free(&bytes);
    if (rc != 0)
        return output_failed(rc, member);
    if (json_is_true(json_object_get(content, "truncated")) && !order->quiet)
        (void)message_error(0,
                            "%s is not complete: it was cut at the limit (--output-limit), or "
                            "this is a repeat, whose output is not kept",
                            member);
    return 0;
}

/* 0, or -errno of the file. */
static int save(const char *path, const struct bytes *content)
{
    AR_AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return -errno;
    for (size_t done = 0; done < content->length;) {
        ssize_t written = write(fd, content->data + done, content->length - done);
        if (written < 0 && errno != EINTR)
            return -errno;
        done += written > 0 ? (size_t)written : 0;
    }
    return close(base_take_fd(&fd)) == 0 ? 0 : -errno;
}

static const json_t *find_output(const json_t *outputs, const char *path, size_t length)
{
    for (size_t i = 0; i < json_array_size(outputs); i++) {
        const json_t *output = json_array_get(outputs, i);
        const json_t *name = json_object_get(output, "path");
        if (json_string_length(name) == length &&
            memcmp(json_string_value(name), path, length) == 0)
            return output;
    }
    return NULL;
}

static int save_output(const json_t *outputs, const char *item)
{
    const char *local = NULL;
    size_t length = order_output_path(item, &local);
    const json_t *output = find_output(outputs, item, length);
    const char *problem = json_string_value(json_object_get(output, "problem"));
    struct bytes content = {0};
    if (!output || (problem && *problem)) {
        AR_AUTO_FREE char *word =
            terminal_escape(problem ? problem : "missing", strlen(problem ? problem : "missing"));
        return message_error(EXIT_CODE_OUTPUT, "the file %.*s did not come back: %s", (int)length,
                             item, word ? word : "");
    }
    int rc = follow_decode(output, &content);
    if (rc == 0)
        rc = save(local, &content);
    bytes_free(&content);
    return rc == 0 ? 0 : output_failed(rc, local);
}

/* All of them, whatever becomes of one. 0 or the exit code of the first that failed. */
static int save_outputs(const struct order *order, const json_t *result)
{
    const json_t *outputs = json_object_get(result, "outputs");
    int first = 0;
    for (size_t i = 0; outputs && i < order->output_files.count; i++) {
        int code = save_output(outputs, order->output_files.items[i]);
        if (first == 0)
            first = code;
    }
    return first;
}

static bool ended_by_itself(enum status status)
{
    return status == STATUS_SUCCEEDED || status == STATUS_FAILED;
}

static void print_numbers(FILE *stream, const json_t *result)
{
    char text[SHOW_TEXT_BYTES];
    const json_t *exit_code = json_object_get(result, "exit_code");
    const json_t *signal = json_object_get(result, "signal");
    const json_t *wall = json_object_get(json_object_get(result, "usage"), "wall_us");
    if (json_is_integer(exit_code))
        (void)fprintf(stream, ", exit code %lld", (long long)json_integer_value(exit_code));
    if (json_is_integer(signal))
        (void)fprintf(stream, ", signal %lld", (long long)json_integer_value(signal));
    if (json_is_integer(wall))
        (void)fprintf(stream, ", %s", show_duration(json_integer_value(wall), text));
}

static void print_place(FILE *stream, const json_t *result)
{
    const json_t *record = json_object_get(result, "record");
    const char *writer = json_string_value(json_object_get(record, "writer"));
    const json_t *seq = json_object_get(record, "seq");
    AR_AUTO_FREE char *escaped = terminal_escape(writer ? writer : "", writer ? strlen(writer) : 0);
    if (writer && escaped && json_is_integer(seq))
        (void)fprintf(stream, ", record %s/%lld", escaped, (long long)json_integer_value(seq));
}

static void print_verdict(const json_t *result, enum status status, enum reason reason)
{
    struct terminal terminal;
    terminal_open(&terminal, stderr);
    enum terminal_style style = show_status_style(status);
    (void)fprintf(stderr, "auditrun: %s%s%s (%s)", terminal_begin(&terminal, style),
                  status_word(status), terminal_end(&terminal, style), reason_word(reason));
    print_numbers(stderr, result);
    print_place(stderr, result);
    (void)fputc('\n', stderr);
    show_denials(&terminal, json_object_get(result, "denials"));
}

static int integer_or_zero(const json_t *result, const char *member)
{
    long long value = json_integer_value(json_object_get(result, member));
    return value >= 0 && value <= 255 ? (int)value : 0;
}

static int print_for_people(const struct follow *follow, const json_t *result, enum status status,
                            enum reason reason)
{
    const struct order *order = follow->order;
    bool out_open = false, err_open = false;
    bool on_terminal = isatty(STDERR_FILENO) == 1;
    int code = print_stream(order, result, "stdout", follow->output[0].printed, stdout, &out_open);
    int second =
        print_stream(order, result, "stderr", follow->output[1].printed, stderr, &err_open);
    bool verdict = order->verbose || !ended_by_itself(status) || on_terminal;
    if (verdict && !order->quiet) {
        /* it begins a line of its own, also behind an output that does not end its last one */
        if (err_open || (out_open && on_terminal && isatty(STDOUT_FILENO) == 1))
            (void)fputc('\n', stderr);
        print_verdict(result, status, reason);
    }
    return code ? code : second;
}

int answer_print(const struct follow *follow, const json_t *result)
{
    const struct order *order = follow->order;
    enum status status = STATUS_NONE;
    enum reason reason = REASON_NONE;
    const char *status_text = json_string_value(json_object_get(result, "status"));
    const char *reason_text = json_string_value(json_object_get(result, "reason"));
    bool known = status_text && reason_text && status_from_word(status_text, &status) &&
                 reason_from_word(reason_text, &reason);
    int code = order->call.json ? call_print_json(result) : 0;
    if (!known)
        return message_error(EXIT_CODE_PROTOCOL, "the daemon's answer has a status that this "
                                                 "version does not know");
    if (!order->call.json)
        code = print_for_people(follow, result, status, reason);
    int saved = save_outputs(order, result);
    if (code == 0)
        code = saved;
    int of_run = exit_code_for_run(status, reason, integer_or_zero(result, "exit_code"),
                                   integer_or_zero(result, "signal"));
    return of_run != EXIT_CODE_OK ? of_run : code;
}
