/*
 * proxy_http.c - one pass finds the end of the head, a second one reads it line by line.
 *
 * The head that goes on is made of what was understood: the method, the path in origin form, a Host of
 * our own from the target, and the fields as they came, without those that are for this hop only.
 * Fields that frame the body cannot be named in Connection: that would take them out on the way.
 */
#include "protocol/proxy_http.h"

#include <string.h>
#include <strings.h>

#define METHOD_MAX_BYTES 32
/* "Host: ", its value, "Connection: close", "HTTP/1.1" and the ends of their lines. */
#define FORWARD_EXTRA (TARGET_AUTHORITY_BYTES + 64)

/* A piece of the head. */
struct span {
    const char *at;
    size_t length;
};

struct head {
    struct span method, url, path;
    bool is_version_1_0;
    unsigned hosts, lengths, codings;
    uint64_t content_length;
    struct span connection[8]; /* values of fields with that name */
    size_t connections;
};

static bool is_token_byte(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c != '\0' && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_token(struct span text)
{
    for (size_t i = 0; i < text.length; i++)
        if (!is_token_byte(text.at[i]))
            return false;
    return text.length > 0;
}

static bool is_word(struct span text, const char *word)
{
    return text.length == strlen(word) && strncasecmp(text.at, word, text.length) == 0;
}

static struct span trim(struct span text)
{
    while (text.length > 0 && (text.at[0] == ' ' || text.at[0] == '\t')) {
        text.at++;
        text.length--;
    }
    while (text.length > 0 && (text.at[text.length - 1] == ' ' || text.at[text.length - 1] == '\t'))
        text.length--;
    return text;
}

/* Bytes before the first c, all if there is none; *rest is what is behind it (at NULL: nothing). */
static struct span cut(struct span text, char c, struct span *rest)
{
    const char *found = text.length > 0 ? memchr(text.at, c, text.length) : NULL;
    *rest = (struct span){0};
    if (!found)
        return text;
    size_t before = (size_t)(found - text.at);
    *rest = (struct span){found + 1, text.length - before - 1};
    return (struct span){text.at, before};
}

/* The end of the head: each line ends in CR LF, and the last one is empty. */
static enum proxy_http_result find_end(const char *data, size_t length, size_t *scanned,
                                       size_t *end)
{
    size_t most = length < PROXY_HTTP_MAX_BYTES ? length : PROXY_HTTP_MAX_BYTES;
    while (*scanned < most) {
        const char *found = memchr(data + *scanned, '\n', most - *scanned);
        size_t at = found ? (size_t)(found - data) : most;
        *scanned = found ? at + 1 : most;
        if (!found)
            break;
        if (at == 0 || data[at - 1] != '\r')
            return PROXY_HTTP_BAD;
        *end = at + 1;
        if (at >= 3 && data[at - 2] == '\n')
            return PROXY_HTTP_DONE;
        if (at == 1)
            return PROXY_HTTP_BAD;
    }
    return length < PROXY_HTTP_MAX_BYTES ? PROXY_HTTP_MORE : PROXY_HTTP_BAD;
}

static struct span next_line(struct span *rest)
{
    struct span line = cut(*rest, '\n', rest);
    line.length--; /* find_end() has seen the CR */
    return line;
}

/* "http://authority/path?query", without a user and without a fragment. */
static bool read_url(struct head *head, struct proxy_http *out)
{
    static const char scheme[] = "http://";
    const size_t skip = sizeof scheme - 1;
    struct span url = head->url;
    if (url.length <= skip || strncasecmp(url.at, scheme, skip) != 0)
        return false;
    for (size_t i = 0; i < url.length; i++)
        if (url.at[i] <= ' ' || url.at[i] > '~' || url.at[i] == '#')
            return false;
    size_t end = skip;
    while (end < url.length && url.at[end] != '/' && url.at[end] != '?')
        end++;
    head->path = (struct span){url.at + end, url.length - end};
    return target_parse_authority(url.at + skip, end - skip, 80, &out->target);
}

static bool read_request_line(struct span line, struct head *head, struct proxy_http *out)
{
    struct span version, more;
    head->method = cut(line, ' ', &version);
    head->url = cut(version, ' ', &version);
    version = cut(version, ' ', &more);
    if (more.at || !is_token(head->method) || head->method.length > METHOD_MAX_BYTES)
        return false;
    if (version.length != 8 || memcmp(version.at, "HTTP/1.", 7) != 0)
        return false;
    if (version.at[7] != '0' && version.at[7] != '1')
        return false;
    head->is_version_1_0 = version.at[7] == '0';
    out->is_tunnel = head->method.length == 7 && memcmp(head->method.at, "CONNECT", 7) == 0;
    if (!out->is_tunnel)
        return read_url(head, out);
    return target_parse_authority(head->url.at, head->url.length, 0, &out->target);
}

static bool read_length(struct span value, uint64_t *out)
{
    if (value.length == 0 || value.length > 18)
        return false;
    for (size_t i = 0; i < value.length; i++) {
        if (value.at[i] < '0' || value.at[i] > '9')
            return false;
        *out = *out * 10 + (uint64_t)(value.at[i] - '0');
    }
    return true;
}

static bool is_field_value(struct span value)
{
    for (size_t i = 0; i < value.length; i++) {
        unsigned char c = (unsigned char)value.at[i];
        if ((c < ' ' && c != '\t') || c == 0x7f)
            return false;
    }
    return true;
}

/* A field, and what it means for the framing. */
static bool read_field(struct span line, struct head *head)
{
    struct span value, name = cut(line, ':', &value);
    if (!value.at || !is_token(name) || !is_field_value(value))
        return false;
    value = trim(value);
    if (is_word(name, "host"))
        return ++head->hosts == 1;
    if (is_word(name, "content-length"))
        return ++head->lengths == 1 && read_length(value, &head->content_length);
    if (is_word(name, "transfer-encoding"))
        return ++head->codings == 1 && is_word(value, "chunked");
    if (!is_word(name, "connection"))
        return true;
    if (head->connections == AR_COUNT(head->connection))
        return false;
    head->connection[head->connections++] = value;
    return true;
}

static bool is_named_in(struct span list, const char *word, struct span name)
{
    while (list.at) {
        struct span item = trim(cut(list, ',', &list));
        if (word ? is_word(item, word)
                 : item.length == name.length && strncasecmp(item.at, name.at, item.length) == 0)
            return true;
    }
    return false;
}

static bool is_named(const struct head *head, const char *word, struct span name)
{
    for (size_t i = 0; i < head->connections; i++)
        if (is_named_in(head->connection[i], word, name))
            return true;
    return false;
}

static bool read_framing(const struct head *head, struct proxy_http *out)
{
    if (head->hosts != 1 && !head->is_version_1_0)
        return false;
    if (head->codings > 0 && (head->lengths > 0 || head->is_version_1_0))
        return false;
    if (is_named(head, "content-length", head->url) || is_named(head, "host", head->url) ||
        is_named(head, "transfer-encoding", head->url))
        return false;
    if (out->is_tunnel)
        return head->codings == 0 && head->content_length == 0;
    if (head->codings > 0)
        proxy_body_chunked(&out->body);
    else
        proxy_body_plain(&out->body, head->content_length);
    return true;
}

/* Is a field for this hop only, or one that we write ourselves? */
static bool stays_here(const struct head *head, struct span name)
{
    static const char *const words[] = {"host", "connection", "keep-alive",
                                        "te",   "trailer",    "upgrade"};
    static const char prefix[] = "proxy-";
    for (size_t i = 0; i < AR_COUNT(words); i++)
        if (is_word(name, words[i]))
            return true;
    if (name.length >= sizeof prefix - 1 && strncasecmp(name.at, prefix, sizeof prefix - 1) == 0)
        return true;
    return is_named(head, NULL, name);
}

static void put(struct proxy_http *out, const char *text, size_t length)
{
    if (length > 0)
        memcpy(out->forward + out->forward_length, text, length);
    out->forward_length += length;
}

static void put_text(struct proxy_http *out, const char *text)
{
    put(out, text, strlen(text));
}

static void put_request_line(struct proxy_http *out, const struct head *head)
{
    put(out, head->method.at, head->method.length);
    put_text(out, " ");
    if (head->path.length == 0 && is_word(head->method, "options"))
        put_text(out, "*");
    else if (head->path.length == 0 || head->path.at[0] != '/')
        put_text(out, "/");
    put(out, head->path.at, head->path.length);
    put_text(out, head->is_version_1_0 ? " HTTP/1.0\r\n" : " HTTP/1.1\r\n");
}

/* The head is never longer than what came and what is put in. */
static int make_forward(struct proxy_http *out, const struct head *head, struct span fields)
{
    char authority[TARGET_AUTHORITY_BYTES];
    out->forward = malloc(out->head_bytes + FORWARD_EXTRA);
    if (!out->forward)
        return -ENOMEM;
    target_to_authority(&out->target, 80, authority);
    put_request_line(out, head);
    put_text(out, "Host: ");
    put_text(out, authority);
    put_text(out, "\r\n");
    while (fields.length > 2) {
        struct span value, line = next_line(&fields), name = cut(line, ':', &value);
        if (stays_here(head, name))
            continue;
        put(out, line.at, line.length);
        put_text(out, "\r\n");
    }
    put_text(out, "Connection: close\r\n\r\n");
    return PROXY_HTTP_DONE;
}

int proxy_http_read(const char *data, size_t length, size_t *scanned, struct proxy_http *out)
{
    struct head head = {0};
    *out = (struct proxy_http){0};
    enum proxy_http_result result = find_end(data, length, scanned, &out->head_bytes);
    if (result != PROXY_HTTP_DONE)
        return result;
    struct span rest = {data, out->head_bytes};
    if (memchr(data, '\0', out->head_bytes) || !read_request_line(next_line(&rest), &head, out))
        return PROXY_HTTP_BAD;
    struct span fields = rest;
    while (rest.length > 2)
        if (!read_field(next_line(&rest), &head))
            return PROXY_HTTP_BAD;
    if (!read_framing(&head, out))
        return PROXY_HTTP_BAD;
    return out->is_tunnel ? PROXY_HTTP_DONE : make_forward(out, &head, fields);
}

void proxy_http_free(struct proxy_http *request)
{
    free(request->forward);
    *request = (struct proxy_http){0};
}
