/*
 * journal_repair.c - look into a journal, and save what is whole of one that is damaged.
 *
 * The folder is locked like the daemon does, so nobody writes meanwhile. The damaged file gets a
 * second name before the new one takes its own, so a crash at any point leaves either the damaged
 * journal or the mended one under the name, and the damaged one beside it.
 */
#include "daemon/journal_repair.h"

#include "daemon/clock.h"
#include "daemon/journal_state.h"
#include "protocol/chain_event.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>

#define KEPT_NAMES 1000

struct inspection {
    const char *path; /* of the folder */
    FILE *out;        /* NULL: nothing is said */
    int directory, lock, fd;
    void *data; /* the file, mapped; NULL when it is empty */
    size_t length;
    bool missing; /* there is no file */
    bool was;     /* there has been one */
    struct journal_state state;
    size_t frames[JOURNAL_TYPE_END];
    size_t faults, dropped_bytes, tail_bytes;
    char kept_as[32]; /* the damaged file, when it is mended; "": there was none */
};

/* ---- opening ---------------------------------------------------------------------------------- */

static int lock_folder(struct inspection *in)
{
    struct stat status;
    in->directory = open(in->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (in->directory < 0)
        return -errno;
    in->lock = openat(in->directory, "lock", O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (in->lock < 0)
        return errno == ENOENT ? 0 : -errno; /* no daemon has ever been here */
    if (flock(in->lock, LOCK_EX | LOCK_NB) != 0 || fstat(in->lock, &status) != 0)
        return -errno;
    in->was = status.st_size > 0;
    return 0;
}

static int map_file(struct inspection *in)
{
    struct stat status;
    in->fd = openat(in->directory, "journal", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    in->missing = in->fd < 0 && errno == ENOENT;
    if (in->missing)
        return 0;
    if (in->fd < 0 || fstat(in->fd, &status) != 0)
        return -errno;
    in->length = (size_t)status.st_size;
    if (in->length == 0)
        return 0;
    in->data = mmap(NULL, in->length, PROT_READ, MAP_PRIVATE, in->fd, 0);
    if (in->data != MAP_FAILED)
        return 0;
    in->data = NULL;
    return -errno;
}

static void close_inspection(struct inspection *in)
{
    if (in->data)
        (void)munmap(in->data, in->length);
    base_close(&in->fd);
    base_close(&in->lock);
    base_close(&in->directory);
    journal_state_free(&in->state);
}

static int open_inspection(struct inspection *in, const char *directory, FILE *out)
{
    *in = (struct inspection){.path = directory, .out = out, .directory = -1, .lock = -1, .fd = -1};
    journal_state_init(&in->state);
    int rc = lock_folder(in);
    if (rc == 0)
        rc = map_file(in);
    if (rc == 0)
        return 0;
    (void)fprintf(out, "%s/journal: %s\n", directory,
                  rc == -EWOULDBLOCK ? "a daemon uses it" : strerror(-rc));
    close_inspection(in);
    return 1;
}

/* ---- looking ---------------------------------------------------------------------------------- */

static void say_fault(struct inspection *in, const struct journal_walk *walk, const char *what)
{
    in->faults++;
    if (in->out)
        (void)fprintf(in->out, "byte %zu: %zu bytes: %s\n", walk->at, walk->size, what);
}

static void drop(struct inspection *in, const struct journal_walk *walk, const char *what)
{
    in->dropped_bytes += walk->size;
    say_fault(in, walk, what);
}

/* A whole frame: what does it say? 1 when nothing that a daemon writes. */
static int take_frame(struct inspection *in, const struct journal_walk *walk)
{
    int rc = journal_state_apply(&in->state, &walk->frame);
    if (rc == -EUCLEAN) {
        drop(in, walk, "a frame that says nothing known");
        return 1;
    }
    if (rc == 0)
        in->frames[walk->frame.type]++;
    return rc;
}

/* Walks over the file and says what is wrong with it. Whole frames go to keep (NULL: nowhere). */
static int inspect(struct inspection *in, int (*keep)(void *context, const struct journal_frame *),
                   void *context)
{
    struct journal_walk walk = {.data = in->data, .length = in->length};
    int rc = 0;
    while (rc >= 0) {
        switch (journal_frame_next(&walk)) {
        case JOURNAL_PIECE_END:
            return 0;
        case JOURNAL_PIECE_TAIL:
            in->tail_bytes = walk.size;
            continue;
        case JOURNAL_PIECE_DAMAGE:
            drop(in, &walk, "damaged, no whole frame");
            continue;
        case JOURNAL_PIECE_VERSION:
            drop(in, &walk, "of another version of auditrund");
            continue;
        case JOURNAL_PIECE_MISPLACED:
            say_fault(in, &walk, "a whole frame in a place that is not its own");
            break;
        case JOURNAL_PIECE_FRAME:
            break;
        }
        rc = take_frame(in, &walk);
        if (rc == 0 && keep)
            rc = keep(context, &walk.frame);
    }
    return rc;
}

static void say_contents(const struct inspection *in)
{
    const struct journal_entries *entries = &in->state.entries;
    (void)fprintf(in->out, "%s/journal: %zu bytes", in->path, in->length);
    for (int type = JOURNAL_WRITER; type < JOURNAL_TYPE_END; type++) {
        if (type == JOURNAL_MARK)
            continue;
        (void)fprintf(in->out, ", %zu %s", in->frames[type],
                      journal_frame_word((enum journal_type)type));
    }
    (void)fprintf(in->out, "\nwriter %s", in->state.writer[0] ? in->state.writer : "none");
    if (in->state.head_seq > 0)
        (void)fprintf(in->out, ", last acknowledged row %lld %s", (long long)in->state.head_seq,
                      in->state.head_hash);
    (void)fprintf(in->out, "\nopen: %zu intents, %zu kept records, %zu events, %zu switches\n",
                  entries->count[JOURNAL_INTENT], entries->count[JOURNAL_KEPT],
                  entries->count[JOURNAL_EVENT], entries->count[JOURNAL_SWITCH]);
    if (in->tail_bytes > 0)
        (void)fprintf(in->out,
                      "byte %zu: %zu bytes of a write that was cut off and never acknowledged: "
                      "the next start takes them away\n",
                      in->length - in->tail_bytes, in->tail_bytes);
}

/* Is there no journal, or nothing in it? Then 0 (nobody has had one here) or 1; else -1. */
static int look_for_nothing(const struct inspection *in)
{
    if (in->missing && !in->was) {
        (void)fprintf(in->out, "%s/journal: there is none yet\n", in->path);
        return 0;
    }
    if (in->length > 0)
        return -1;
    (void)fprintf(in->out, "%s/journal: lost: it is %s, and there was one here\n", in->path,
                  in->missing ? "gone" : "empty");
    return 1;
}

/* The tail of a journal in which nothing is whole is no tail: what is under the name was synced. */
static bool is_sound(const struct inspection *in)
{
    return in->faults == 0 && in->tail_bytes < in->length;
}

int journal_repair_check(const char *directory, FILE *out)
{
    struct inspection in;
    if (open_inspection(&in, directory, out) != 0)
        return 1;
    int rc = look_for_nothing(&in);
    if (rc < 0) {
        rc = inspect(&in, NULL, NULL);
        say_contents(&in);
        if (rc < 0)
            (void)fprintf(out, "%s\n", strerror(-rc));
        else
            (void)fprintf(out, "%s\n", is_sound(&in) ? "sound" : "damaged");
        rc = rc < 0 || !is_sound(&in) ? 1 : 0;
    }
    close_inspection(&in);
    return rc;
}

/* ---- mending ---------------------------------------------------------------------------------- */

/* A second name for the damaged file. */
static int keep_aside(struct inspection *in)
{
    for (int n = 1; n <= KEPT_NAMES; n++) {
        (void)snprintf(in->kept_as, sizeof in->kept_as, "journal.damaged-%d", n);
        if (linkat(in->directory, "journal", in->directory, in->kept_as, 0) == 0)
            return fsync(in->fd) == 0 && fsync(in->directory) == 0 ? 0 : -errno;
        if (errno != EEXIST)
            return -errno;
    }
    return -EEXIST;
}

static int keep_frame(void *context, const struct journal_frame *frame)
{
    if (frame->type == JOURNAL_MARK)
        return 0;
    return journal_file_append(context, frame->type, frame->payload, frame->length);
}

/* What the ledger will say of it: the next daemon appends the event to its chain. */
static struct chain_event *make_event(const struct inspection *in)
{
    struct uuid7_generator generator = {0};
    uint8_t random[10];
    char id[UUID7_TEXT_BYTES];
    int64_t now = clock_wall_us();
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return NULL;
    uuid7_next(&generator, (uint64_t)now / 1000, random, id);
    json_t *detail = json_pack("{s:s, s:I, s:s?}", "cause", "journal_repaired", "dropped_bytes",
                               (json_int_t)in->dropped_bytes + (json_int_t)in->tail_bytes,
                               "kept_as", in->kept_as[0] ? in->kept_as : NULL);
    return chain_event_new(id, EVENT_GAP, detail, now);
}

static int note_repair(const struct inspection *in, struct journal_file *file)
{
    AR_CLEANUP(chain_event_cleanup) struct chain_event *event = make_event(in);
    AR_AUTO_JSON json_t *value = event ? chain_event_to_json(event) : NULL;
    AR_AUTO_FREE char *text = value ? json_canonical(value) : NULL;
    AR_AUTO_FREE char *payload = NULL;
    if (!text || asprintf(&payload, "%s %s", event->event_id, text) < 0)
        return -ENOMEM;
    return journal_file_append(file, JOURNAL_EVENT, payload, strlen(payload));
}

static int write_whole(void *context, struct journal_file *file)
{
    int rc = inspect(context, keep_frame, file);
    return rc < 0 ? rc : note_repair(context, file);
}

static void say_mended(const struct inspection *in)
{
    say_contents(in);
    if (!in->missing)
        (void)fprintf(in->out, "the damaged journal is kept as %s/%s\n", in->path, in->kept_as);
    (void)fprintf(in->out, "repaired: %zu bytes were dropped", in->dropped_bytes + in->tail_bytes);
    (void)fprintf(in->out, in->dropped_bytes + in->tail_bytes > 0 || in->length == 0
                               ? "; what stood there may have been runs whose records are not in "
                                 "the ledger\n"
                               : "\n");
}

static int mend(struct inspection *in)
{
    int rc = in->missing ? 0 : keep_aside(in);
    if (rc == 0)
        rc = journal_file_create(in->directory, write_whole, in);
    if (rc < 0) {
        (void)fprintf(in->out, "%s/journal: cannot be repaired: %s\n", in->path, strerror(-rc));
        return 1;
    }
    say_mended(in);
    return 0;
}

/* Is anything wrong? Says nothing of it: that is said once, when it is mended. */
static int needs_mending(const struct inspection *in, bool *needs)
{
    struct inspection quiet = {.data = in->data, .length = in->length};
    journal_state_init(&quiet.state);
    int rc = inspect(&quiet, NULL, NULL);
    *needs = !is_sound(&quiet);
    journal_state_free(&quiet.state);
    return rc;
}

int journal_repair_mend(const char *directory, FILE *out)
{
    struct inspection in;
    bool needs = true;
    if (open_inspection(&in, directory, out) != 0)
        return 1;
    int nothing = look_for_nothing(&in);
    int rc = nothing < 0 ? needs_mending(&in, &needs) : 0;
    if (rc < 0) {
        (void)fprintf(out, "%s/journal: %s\n", directory, strerror(-rc));
    } else if (nothing == 0 || !needs) {
        (void)fprintf(out, "%s/journal: sound, nothing to repair\n", directory);
    } else {
        rc = mend(&in);
    }
    close_inspection(&in);
    return rc == 0 ? 0 : 1;
}
