/*
 * executor.c - drives a provider through its control socket, with poll and deadlines.
 *
 * Everything that it starts is in a process group of its own and dies with the test: first by the
 * end of file that the contract asks for, then by SIGKILL to that group.
 */
#include "tests/lib/executor.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#define CAPABILITIES_MS 10000
#define MAX_OUTPUT      (16u << 20)

static int64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Milliseconds left, never negative. */
static int left(int64_t deadline)
{
    int64_t ms = deadline - now_ms();
    return ms > 0 ? (int)ms : 0;
}

/* ---- processes -------------------------------------------------------------------------------- */

/* In the child: becomes `words... verb` with these as descriptors 1 and 3. */
__attribute__((noreturn)) static void become(const char *const *words, const char *verb, int out,
                                             int control)
{
    const char *arguments[EXECUTOR_MAX_WORDS + 2] = {0};
    size_t count = 0;
    for (; count < EXECUTOR_MAX_WORDS && words[count]; count++)
        arguments[count] = words[count];
    arguments[count] = verb;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(out >= 0 ? out : null, STDOUT_FILENO) < 0)
        _exit(126);
    /* The number 3 may be taken by the very socket that has to go there. */
    if (control >= 0) {
        int high = fcntl(control, F_DUPFD_CLOEXEC, 10);
        if (high < 0 || dup2(high, 3) < 0)
            _exit(126);
    }
    (void)syscall(SYS_close_range, control >= 0 ? 4 : 3, ~0U, 0);
    (void)execvp(arguments[0], (char *const *)arguments);
    _exit(127);
}

/* Waits until the process has ended; *status as of waitpid(). */
static bool await_end(pid_t pid, int64_t deadline, int *status)
{
    AR_AUTO_CLOSE int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd end = {.fd = pidfd, .events = POLLIN};
    if (pidfd < 0 || poll(&end, 1, left(deadline)) != 1)
        return false;
    return waitpid(pid, status, 0) == pid;
}

/* Reads one end of a pipe until it closes. */
static bool read_all(int fd, int64_t deadline, struct bytes *out)
{
    char buffer[4096];
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    while (poll(&wait, 1, left(deadline)) == 1) {
        ssize_t got = read(fd, buffer, sizeof(buffer));
        if (got <= 0)
            return got == 0;
        char *grown = realloc(out->data, out->length + (size_t)got + 1);
        if (!grown || out->length > ENVELOPE_MAX_BYTES)
            return false;
        out->data = grown;
        memcpy(out->data + out->length, buffer, (size_t)got);
        out->length += (size_t)got;
        out->data[out->length] = '\0';
    }
    return false;
}

bool executor_envelope(const char *const *words, struct envelope *envelope)
{
    struct bytes text = {0};
    struct fault fault = {0};
    int ends[2], status = -1;
    int64_t deadline = now_ms() + CAPABILITIES_MS;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return false;
    pid_t pid = fork();
    if (pid == 0)
        become(words, "capabilities", ends[1], -1);
    (void)close(ends[1]);
    bool good = pid > 0 && read_all(ends[0], deadline, &text) && await_end(pid, deadline, &status);
    (void)close(ends[0]);
    if (!good && pid > 0) {
        (void)kill(-pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
    }
    good = good && WIFEXITED(status) && WEXITSTATUS(status) == 0 && text.data &&
           envelope_parse(text.data, text.length, envelope, &fault) == 0;
    if (!good)
        (void)fprintf(stderr, "%s: no envelope (status %x, fault at %s)\n", words[0],
                      (unsigned)status, fault.path);
    bytes_free(&text);
    return good;
}

bool executor_start(struct executor *executor, const char *const *words, const char *slot)
{
    return executor_start_reaching(executor, words, slot, "");
}

bool executor_start_reaching(struct executor *executor, const char *const *words, const char *slot,
                             const char *reach)
{
    int ends[2];

    *executor = (struct executor){.control = -1};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return false;
    executor->pid = fork();
    if (executor->pid == 0) {
        (void)setenv("AUDITRUN_SLOT", slot, 1);
        (void)setenv("AUDITRUN_REACH", reach, 1);
        become(words, "serve", -1, ends[1]);
    }
    (void)close(ends[1]);
    executor->control = ends[0];
    if (executor->pid > 0 && executor_await_ready(executor))
        return true;
    (void)executor_stop(executor);
    return false;
}

bool executor_ended(struct executor *executor)
{
    if (executor->pid > 0 &&
        !await_end(executor->pid, now_ms() + EXECUTOR_WAIT_MS, &executor->status))
        return false;
    executor->pid = 0;
    return true;
}

bool executor_stop(struct executor *executor)
{
    base_close(&executor->control);
    executor->control = -1;
    if (executor->pid <= 0 || executor_ended(executor))
        return true;
    (void)kill(-executor->pid, SIGKILL);
    (void)waitpid(executor->pid, &executor->status, 0);
    executor->pid = 0;
    return false;
}

bool executor_signal(struct executor *executor, int number)
{
    return executor->pid > 0 && kill(executor->pid, number) == 0 && executor_ended(executor);
}

/* ---- messages --------------------------------------------------------------------------------- */

/* Reads a message; *passed is the descriptor that came with it, or -1. */
static ssize_t receive_text(int control, char *text, int *passed)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } space = {0};
    struct iovec part = {.iov_base = text, .iov_len = SPEC_MESSAGE_BYTES};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = space.bytes,
                             .msg_controllen = sizeof(space.bytes)};
    *passed = -1;
    ssize_t length = recvmsg(control, &message, MSG_CMSG_CLOEXEC);
    const struct cmsghdr *header = length > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
        memcpy(passed, CMSG_DATA(header), sizeof(int));
    return length;
}

/* One message of the provider. False: none came in time, or it is none of the contract's. A listener
 * has a descriptor (*passed, owned), and nothing else has. */
static bool receive(struct executor *executor, int64_t deadline, enum spec_message *kind,
                    struct report *report, int *passed)
{
    struct pollfd wait = {.fd = executor->control, .events = POLLIN};
    AR_AUTO_FREE char *text = malloc(SPEC_MESSAGE_BYTES);
    if (!text || poll(&wait, 1, left(deadline)) != 1)
        return false;
    ssize_t length = receive_text(executor->control, text, passed);
    return length > 0 && spec_parse_provider_message(text, (size_t)length, kind, report) == 0 &&
           (*kind == SPEC_LISTENER) == (*passed >= 0);
}

/* As the daemon does: a provider that prepares ahead is told that it may. */
static bool send_clear(struct executor *executor)
{
    AR_AUTO_FREE char *text = spec_clear_message();
    executor->owes_clear = false;
    return text && send(executor->control, text, strlen(text), MSG_NOSIGNAL) > 0;
}

bool executor_await_ready(struct executor *executor)
{
    enum spec_message kind;
    struct report unused;
    int none;
    if (executor->owes_clear && !send_clear(executor))
        return false;
    if (!receive(executor, now_ms() + EXECUTOR_WAIT_MS, &kind, &unused, &none))
        return false;
    executor->ahead = kind == SPEC_READY_AHEAD;
    return kind == SPEC_READY || kind == SPEC_READY_AHEAD;
}

static int sealed_file(const char *text, size_t length)
{
    int fd = memfd_create("spec", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd >= 0 && (write(fd, text, length) != (ssize_t)length ||
                    fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK) < 0)) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

/* Those of each run are the first of descriptors already. */
static struct spec_run add_gifts(const struct executor_gifts *gifts, size_t bytes, int *descriptors)
{
    const struct spec_run run = {.spec_bytes = bytes,
                                 .data_port = gifts->data_port >= 0,
                                 .secrets = gifts->secrets >= 0,
                                 .paths = gifts->path_count};
    if (run.data_port)
        descriptors[SPEC_DESCRIPTORS] = gifts->data_port;
    if (run.secrets)
        descriptors[spec_run_secrets_place(&run)] = gifts->secrets;
    for (size_t i = 0; i < run.paths; i++)
        descriptors[spec_run_paths_place(&run) + i] = gifts->paths[i];
    return run;
}

static bool send_order(int control, const struct spec_run *run, const int *descriptors)
{
    const size_t bytes = spec_run_descriptors(run) * sizeof(int);
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(SPEC_MAX_DESCRIPTORS * sizeof(int))];
    } space = {0};
    AR_AUTO_FREE char *text = spec_run_message(run);
    if (!text)
        return false;
    struct iovec part = {.iov_base = text, .iov_len = strlen(text)};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = space.bytes,
                             .msg_controllen = CMSG_SPACE(bytes)};
    struct cmsghdr *header = &space.align;
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(bytes);
    memcpy(CMSG_DATA(header), descriptors, bytes);
    return sendmsg(control, &message, MSG_NOSIGNAL) == (ssize_t)part.iov_len;
}

/* ---- runs ------------------------------------------------------------------------------------- */

bool executor_send(struct executor *executor, const struct request *request,
                   struct executor_result *result, struct executor_run *run)
{
    return executor_send_with(executor, request, &EXECUTOR_NO_GIFTS, result, run);
}

bool executor_send_with(struct executor *executor, const struct request *request,
                        const struct executor_gifts *gifts, struct executor_result *result,
                        struct executor_run *run)
{
    int in[2] = {-1, -1}, out[2] = {-1, -1}, err[2] = {-1, -1};
    size_t length = 0;

    *result = (struct executor_result){.listener = -1};
    *run =
        (struct executor_run){.input = -1, .out = -1, .err = -1, .outputs = -1, .result = result};
    AR_AUTO_FREE char *text =
        spec_build("01890a5d-ac96-774b-bcce-b302099a8057", request, &request->grant, &length);
    AR_AUTO_CLOSE int spec = text ? sealed_file(text, length) : -1;
    if (spec < 0 || pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0 ||
        pipe2(err, O_CLOEXEC) < 0)
        return false;
    run->input = in[1];
    run->out = out[0];
    run->err = err[0];
    run->outputs = memfd_create("outputs", MFD_CLOEXEC);
    run->stdin_bytes = &request->stdin_bytes;
    (void)fcntl(run->input, F_SETFL, O_NONBLOCK);
    int descriptors[SPEC_MAX_DESCRIPTORS] = {spec, in[0], out[1], err[1], run->outputs};
    const struct spec_run order = add_gifts(gifts, length, descriptors);
    bool sent = send_order(executor->control, &order, descriptors);
    (void)close(in[0]);
    (void)close(out[1]);
    (void)close(err[1]);
    return sent;
}

static void close_end(int *fd)
{
    base_close(fd);
    *fd = -1;
}

/* Feeds what fits, and closes at the end or when nobody reads any more. */
static void feed(struct executor_run *run)
{
    const struct bytes *bytes = run->stdin_bytes;
    ssize_t written = 1;
    while (run->fed < bytes->length && written > 0) {
        written = write(run->input, bytes->data + run->fed, bytes->length - run->fed);
        if (written > 0)
            run->fed += (size_t)written;
    }
    if (run->fed == bytes->length || (written < 0 && errno != EAGAIN))
        close_end(&run->input);
}

static void drain(int *fd, struct bytes *into)
{
    static const size_t chunk = 65536;
    char *grown = realloc(into->data, into->length + chunk + 1);
    ssize_t got = -1;
    if (grown) {
        into->data = grown;
        got = read(*fd, into->data + into->length, chunk);
    }
    if (got <= 0 || into->length > MAX_OUTPUT)
        close_end(fd);
    else
        into->length += (size_t)got;
    if (grown)
        into->data[into->length] = '\0';
}

static void take_message(struct executor *executor, struct executor_run *run, bool *listening,
                         int64_t deadline)
{
    struct executor_result *result = run->result;
    enum spec_message kind = SPEC_READY;
    int passed = -1;
    bool good = receive(executor, deadline, &kind, &result->report, &passed);
    if (good && kind == SPEC_LISTENER && result->listener < 0) {
        result->listener = passed;
        return;
    }
    if (passed >= 0)
        (void)close(passed);
    *listening = false;
    result->reported = good && kind == SPEC_REPORT;
    executor->owes_clear = executor->ahead;
}

/* One turn: waits for anything and takes it. False when nothing came in time. */
static bool turn(struct executor *executor, struct executor_run *run, bool *listening,
                 int64_t deadline)
{
    struct pollfd waits[] = {{.fd = run->input, .events = POLLOUT},
                             {.fd = run->out, .events = POLLIN},
                             {.fd = run->err, .events = POLLIN},
                             {.fd = *listening ? executor->control : -1, .events = POLLIN}};

    if (poll(waits, AR_COUNT(waits), left(deadline)) < 1)
        return false;
    if (waits[0].revents)
        feed(run);
    if (waits[1].revents)
        drain(&run->out, &run->result->out);
    if (waits[2].revents)
        drain(&run->err, &run->result->err);
    if (waits[3].revents)
        take_message(executor, run, listening, deadline);
    return true;
}

bool executor_finish(struct executor *executor, struct executor_run *run)
{
    int64_t deadline = now_ms() + EXECUTOR_WAIT_MS;
    bool listening = executor->control >= 0;
    (void)signal(SIGPIPE, SIG_IGN);
    while (listening || run->out >= 0 || run->err >= 0)
        if (!turn(executor, run, &listening, deadline))
            return false;
    off_t size = lseek(run->outputs, 0, SEEK_END);
    if (size <= 0)
        return true;
    run->result->outputs.data = calloc(1, (size_t)size + 1);
    run->result->outputs.length = (size_t)size;
    return run->result->outputs.data &&
           pread(run->outputs, run->result->outputs.data, (size_t)size, 0) == size;
}

bool executor_await_output(struct executor *executor, struct executor_run *run, const char *text)
{
    int64_t deadline = now_ms() + EXECUTOR_WAIT_MS;
    bool listening = executor->control >= 0;
    (void)signal(SIGPIPE, SIG_IGN);
    while (!run->result->out.data || !strstr(run->result->out.data, text))
        if (run->out < 0 || !listening || !turn(executor, run, &listening, deadline))
            return false;
    return true;
}

void executor_run_close(struct executor_run *run)
{
    close_end(&run->input);
    close_end(&run->out);
    close_end(&run->err);
    close_end(&run->outputs);
}

bool executor_do(struct executor *executor, const struct request *request,
                 struct executor_result *result)
{
    return executor_do_with(executor, request, &EXECUTOR_NO_GIFTS, result);
}

bool executor_do_with(struct executor *executor, const struct request *request,
                      const struct executor_gifts *gifts, struct executor_result *result)
{
    struct executor_run run;
    bool good = executor_send_with(executor, request, gifts, result, &run) &&
                executor_finish(executor, &run);
    executor_run_close(&run);
    return good && result->reported;
}

void executor_result_free(struct executor_result *result)
{
    bytes_free(&result->out);
    bytes_free(&result->err);
    bytes_free(&result->outputs);
    base_close(&result->listener);
    *result = (struct executor_result){.listener = -1};
}
