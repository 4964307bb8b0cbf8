/*
 * journal_frame.c - frames of the journal, and what stands between them.
 *
 * Where no whole frame is, the rest decides what that means. With no whole frame behind it, it is a
 * write that was cut off. With some, they tell: if all of them lie where they were written to, and
 * none of them knew the broken place to be synced, they are of that same write, whose pages came to
 * the disk in another order. Anything else is damage.
 */
#include "daemon/journal_frame.h"

#include <endian.h>
#include <openssl/evp.h>
#include <string.h>

#define VERSION        1
#define CHECKED_BYTES  24 /* of the header */
#define CHECKSUM_BYTES 8

static int checksum(const unsigned char *header, const void *payload, size_t length,
                    unsigned char out[CHECKSUM_BYTES])
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool good = context && EVP_DigestInit_ex(context, EVP_sha256(), NULL) &&
                EVP_DigestUpdate(context, header, CHECKED_BYTES) &&
                EVP_DigestUpdate(context, payload, length) &&
                EVP_DigestFinal_ex(context, digest, NULL);
    EVP_MD_CTX_free(context);
    if (good)
        memcpy(out, digest, CHECKSUM_BYTES);
    return good ? 0 : -EIO;
}

int journal_frame_build(const struct journal_frame *frame,
                        unsigned char header[JOURNAL_HEADER_BYTES])
{
    uint32_t length = htole32((uint32_t)frame->length);
    uint32_t unsynced = htole32(frame->unsynced);
    uint64_t place = htole64(frame->place);
    memcpy(header, "ARJ", 3);
    header[3] = VERSION;
    header[4] = (unsigned char)frame->type;
    memset(header + 5, 0, 3);
    memcpy(header + 8, &length, sizeof length);
    memcpy(header + 12, &unsynced, sizeof unsynced);
    memcpy(header + 16, &place, sizeof place);
    return checksum(header, frame->payload, frame->length, header + CHECKED_BYTES);
}

size_t journal_frame_read(const unsigned char *data, size_t length, struct journal_frame *out)
{
    uint32_t size, unsynced;
    uint64_t place;
    unsigned char sum[CHECKSUM_BYTES];
    if (length < JOURNAL_HEADER_BYTES || memcmp(data, "ARJ", 3) != 0 || data[3] != VERSION)
        return 0;
    memcpy(&size, data + 8, sizeof size);
    memcpy(&unsynced, data + 12, sizeof unsynced);
    memcpy(&place, data + 16, sizeof place);
    size = le32toh(size);
    if (data[4] < JOURNAL_WRITER || data[4] >= JOURNAL_TYPE_END || size > JOURNAL_MAX_PAYLOAD ||
        size > length - JOURNAL_HEADER_BYTES)
        return 0;
    if (checksum(data, data + JOURNAL_HEADER_BYTES, size, sum) != 0 ||
        memcmp(sum, data + CHECKED_BYTES, CHECKSUM_BYTES) != 0)
        return 0;
    *out = (struct journal_frame){.type = data[4],
                                  .payload = (const char *)data + JOURNAL_HEADER_BYTES,
                                  .length = size,
                                  .place = le64toh(place),
                                  .unsynced = le32toh(unsynced)};
    return JOURNAL_HEADER_BYTES + size;
}

const char *journal_frame_word(enum journal_type type)
{
    static const char *const words[] = {
        [JOURNAL_WRITER] = "writer",   [JOURNAL_INTENT] = "intent", [JOURNAL_KEPT] = "kept",
        [JOURNAL_SETTLED] = "settled", [JOURNAL_EVENT] = "event",   [JOURNAL_HEAD] = "head",
        [JOURNAL_MARK] = "mark",       [JOURNAL_SWITCH] = "switch",
    };
    return words[type];
}

/* The place of the first whole frame from a place on, and the frame; the length when there is none. */
static size_t find_frame(const struct journal_walk *walk, size_t from, struct journal_frame *frame)
{
    while (from < walk->length) {
        const unsigned char *found = memchr(walk->data + from, 'A', walk->length - from);
        if (!found)
            break;
        from = (size_t)(found - walk->data);
        if (journal_frame_read(found, walk->length - from, frame) > 0)
            return from;
        from++;
    }
    return walk->length;
}

/* Had the bytes at the place `broken` been acknowledged when the frame at `at` was written, or was it
 * not written there at all? */
static bool speaks_of_damage(const struct journal_frame *frame, size_t at, size_t broken)
{
    return frame->place != at || frame->place - frame->unsynced > broken;
}

/* Is what begins at a place without a frame a write that was cut off? */
static bool is_tail(const struct journal_walk *walk, size_t broken)
{
    struct journal_frame frame;
    for (size_t at = find_frame(walk, broken + 1, &frame); at < walk->length;
         at = find_frame(walk, at + JOURNAL_HEADER_BYTES + frame.length, &frame))
        if (speaks_of_damage(&frame, at, broken))
            return false;
    return true;
}

/* A frame of another version that is otherwise in its place was acknowledged by another daemon. */
static bool is_other_version(const unsigned char *data, size_t length)
{
    return length >= 4 && memcmp(data, "ARJ", 3) == 0 && data[3] != VERSION;
}

enum journal_piece journal_frame_next(struct journal_walk *walk)
{
    size_t at = walk->next, rest = walk->length - at;
    struct journal_frame behind;
    walk->at = at;
    if (rest == 0)
        return JOURNAL_PIECE_END;
    walk->size = journal_frame_read(walk->data + at, rest, &walk->frame);
    walk->next = at + walk->size;
    if (walk->size > 0)
        return walk->frame.place == at ? JOURNAL_PIECE_FRAME : JOURNAL_PIECE_MISPLACED;
    bool other = is_other_version(walk->data + at, rest);
    bool tail = !other && is_tail(walk, at);
    walk->next = tail ? walk->length : find_frame(walk, at + 1, &behind);
    walk->size = walk->next - at;
    return tail ? JOURNAL_PIECE_TAIL : other ? JOURNAL_PIECE_VERSION : JOURNAL_PIECE_DAMAGE;
}
