/*
 * journal_state.c - what the frames of a journal add up to.
 *
 * The same code reads a journal for the daemon and for the operator who checks or repairs one, so that
 * they cannot differ in what they take for sound.
 */
#include "daemon/journal_state.h"

#include <stdio.h>
#include <string.h>

#define ID_BYTES (UUID7_TEXT_BYTES - 1)

void journal_state_init(struct journal_state *state)
{
    *state = (struct journal_state){0};
    journal_entries_init(&state->entries);
}

void journal_state_free(struct journal_state *state)
{
    journal_entries_free(&state->entries);
}

void journal_state_set_writer(struct journal_state *state, const char *writer)
{
    if (strcmp(state->writer, writer) == 0)
        return;
    memcpy(state->writer, writer, sizeof state->writer);
    state->head_seq = 0;
    state->head_hash[0] = 0;
}

void journal_state_raise(struct journal_state *state, const char *id)
{
    if (uuid7_is_valid(id) && strcmp(id, state->last_id) > 0)
        memcpy(state->last_id, id, sizeof state->last_id);
}

void journal_state_head_text(int64_t seq, const char *hash, char out[JOURNAL_HEAD_BYTES])
{
    (void)snprintf(out, JOURNAL_HEAD_BYTES, "%lld %s", (long long)seq, hash);
}

int journal_state_record(const char *payload, size_t length, struct record **out)
{
    struct json_document document = {0};
    struct fault fault = {0};
    int rc = json_parse(payload, length, &document);
    if (rc == JSON_OK)
        rc = record_from_json(document.root, true, out, &fault);
    json_document_free(&document);
    return rc > 0 ? -EUCLEAN : rc;
}

/* The id at the beginning of a payload. */
static int read_id(const struct journal_frame *frame, char id[UUID7_TEXT_BYTES])
{
    if (frame->length < ID_BYTES)
        return -EUCLEAN;
    memcpy(id, frame->payload, ID_BYTES);
    id[ID_BYTES] = 0;
    return uuid7_is_uuid(id) ? 0 : -EUCLEAN;
}

static int put(struct journal_state *state, const struct journal_frame *frame, const char *id,
               int64_t since_us)
{
    struct journal_entry *entry =
        journal_entries_make(id, frame->type, frame->payload, frame->length);
    if (!entry)
        return -ENOMEM;
    entry->since_us = since_us;
    entry->room = JOURNAL_HEADER_BYTES + ID_BYTES;
    int rc = journal_entries_put(&state->entries, entry);
    if (rc < 0)
        journal_entries_discard(entry);
    journal_state_raise(state, id);
    return rc;
}

static int apply_record(struct journal_state *state, const struct journal_frame *frame)
{
    struct record *record = NULL;
    int rc = journal_state_record(frame->payload, frame->length, &record);
    if (rc == 0)
        rc = put(state, frame, record->run_id, record->finished_at);
    record_free(record);
    return rc;
}

/* An event or a switch: an id, a blank, a text. */
static int apply_text(struct journal_state *state, const struct journal_frame *frame)
{
    char id[UUID7_TEXT_BYTES];
    int rc = read_id(frame, id);
    if (rc == 0 && (frame->length < ID_BYTES + 2 || frame->payload[ID_BYTES] != ' ' ||
                    memchr(frame->payload, 0, frame->length)))
        rc = -EUCLEAN;
    return rc == 0 ? put(state, frame, id, 0) : rc;
}

static int apply_head(struct journal_state *state, const struct journal_frame *frame)
{
    char text[JOURNAL_HEAD_BYTES], again[JOURNAL_HEAD_BYTES];
    if (frame->length >= sizeof text)
        return -EUCLEAN;
    memcpy(text, frame->payload, frame->length);
    text[frame->length] = 0;
    const char *hash = strchr(text, ' ');
    long long seq = strtoll(text, NULL, 10);
    if (!hash || seq < 1 || !digest_is_hex(hash + 1))
        return -EUCLEAN;
    journal_state_head_text(seq, hash + 1, again);
    if (strcmp(text, again) != 0)
        return -EUCLEAN;
    state->head_seq = seq;
    memcpy(state->head_hash, hash + 1, DIGEST_HEX_BYTES);
    return 0;
}

/* One whose payload is nothing but an id. */
static int apply_id(struct journal_state *state, const struct journal_frame *frame)
{
    char id[UUID7_TEXT_BYTES];
    int rc = frame->length == ID_BYTES ? read_id(frame, id) : -EUCLEAN;
    if (rc < 0)
        return rc;
    if (frame->type == JOURNAL_WRITER) {
        journal_state_set_writer(state, id);
    } else {
        journal_state_raise(state, id);
        journal_entries_remove(&state->entries, id);
    }
    return 0;
}

int journal_state_apply(struct journal_state *state, const struct journal_frame *frame)
{
    switch (frame->type) {
    case JOURNAL_INTENT:
    case JOURNAL_KEPT:
        return apply_record(state, frame);
    case JOURNAL_EVENT:
    case JOURNAL_SWITCH:
        return apply_text(state, frame);
    case JOURNAL_HEAD:
        return apply_head(state, frame);
    case JOURNAL_MARK:
        return 0;
    default:
        return apply_id(state, frame);
    }
}

static int write_entry(void *context, const struct journal_entry *entry)
{
    return journal_file_append(context, entry->type, entry->payload, entry->length);
}

int journal_state_write(const struct journal_state *state, struct journal_file *file)
{
    char head[JOURNAL_HEAD_BYTES];
    int rc = 0;
    if (state->writer[0])
        rc = journal_file_append(file, JOURNAL_WRITER, state->writer, ID_BYTES);
    journal_state_head_text(state->head_seq, state->head_hash, head);
    if (rc == 0 && state->head_seq > 0)
        rc = journal_file_append(file, JOURNAL_HEAD, head, strlen(head));
    if (rc == 0 && state->last_id[0]) /* so that ids never step back over a restart */
        rc = journal_file_append(file, JOURNAL_SETTLED, state->last_id, ID_BYTES);
    return rc == 0 ? journal_entries_each(&state->entries, write_entry, file) : rc;
}
