/*
 * check_proxy_http.c - heads of requests to the proxy: what goes on to the origin, and everything that
 * two readers could understand in two ways, which is refused; byte by byte as all at once.
 */
#include "protocol/proxy_http.h"
#include "tests/unit/unit.h"

#define HOST "Host: a.test\r\n"

/* Reads it in pieces of one byte, and all at once with more behind it: both agree. */
static int read_head(const char *head, size_t length, struct proxy_http *out)
{
    static const char behind[] = "\r\n\r\nGET http://b.test/ HTTP/1.1\r\n\r\n";
    size_t scanned = 0;
    int one = PROXY_HTTP_MORE;
    for (size_t n = 0; n <= length && one == PROXY_HTTP_MORE; n++)
        one = proxy_http_read(head, n, &scanned, out);
    struct proxy_http all;
    AR_AUTO_FREE char *text = malloc(length + sizeof behind);
    ck_assert_ptr_nonnull(text);
    memcpy(text, head, length);
    memcpy(text + length, behind, sizeof behind);
    scanned = 0;
    int both = proxy_http_read(text, one == PROXY_HTTP_DONE ? length + sizeof behind - 1 : length,
                               &scanned, &all);
    ck_assert_msg(one == both, "%d and %d: %s", one, both, head);
    if (one == PROXY_HTTP_DONE) {
        ck_assert_uint_eq(all.head_bytes, out->head_bytes);
        ck_assert_uint_eq(all.head_bytes, length);
        ck_assert_uint_eq(all.forward_length, out->forward_length);
        if (all.forward)
            ck_assert_mem_eq(all.forward, out->forward, all.forward_length);
    }
    proxy_http_free(&all);
    return one;
}

static void expect_forward(const char *head, const char *forward)
{
    struct proxy_http request;
    ck_assert_msg(read_head(head, strlen(head), &request) == PROXY_HTTP_DONE, "%s", head);
    ck_assert(!request.is_tunnel);
    ck_assert_uint_eq(request.forward_length, strlen(forward));
    ck_assert_mem_eq(request.forward, forward, request.forward_length);
    proxy_http_free(&request);
}

static void expect_bad(const char *head)
{
    struct proxy_http request;
    ck_assert_msg(read_head(head, strlen(head), &request) == PROXY_HTTP_BAD, "%s", head);
    proxy_http_free(&request);
}

START_TEST(test_tunnels)
{
    static const char *const right[] = {
        "CONNECT a.test:443 HTTP/1.1\r\n" HOST "\r\n", "CONNECT A.TEST.:443 HTTP/1.0\r\n\r\n",
        "CONNECT a.test:443 HTTP/1.1\r\nHost: b.test:1\r\nProxy-Connection: keep-alive\r\n\r\n",
        "CONNECT a.test:443 HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n", NULL};
    for (size_t i = 0; right[i]; i++) {
        struct proxy_http request;
        ck_assert_msg(read_head(right[i], strlen(right[i]), &request) == PROXY_HTTP_DONE, "%s",
                      right[i]);
        ck_assert(request.is_tunnel && !request.forward);
        ck_assert_str_eq(request.target.name, "a.test");
        ck_assert_uint_eq(request.target.port, 443);
    }
}
END_TEST

START_TEST(test_no_tunnels)
{
    static const char *const targets[] = {"a.test",
                                          "a.test:",
                                          "a.test:0",
                                          "a.test:0443",
                                          "a.test:443/",
                                          "user@a.test:443",
                                          "http://a.test:443",
                                          "/",
                                          "*",
                                          "",
                                          ":443",
                                          "127.1:443",
                                          "0x7f000001:443",
                                          "2130706433:443",
                                          "::1:443",
                                          "a.test%00.evil.test:443",
                                          "a.test:443 b.test:443",
                                          "a.test:443\tx",
                                          NULL};
    for (size_t i = 0; targets[i]; i++) {
        AR_AUTO_FREE char *head =
            unit_repeat("CONNECT ", targets[i], 1, " HTTP/1.1\r\n" HOST "\r\n");
        expect_bad(head);
    }
    expect_bad("CONNECT a.test:443 HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\n");
    expect_bad("CONNECT a.test:443 HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n");
    expect_bad("connect a.test:443 HTTP/1.1\r\n" HOST "\r\n");
}
END_TEST

START_TEST(test_forwarded)
{
    expect_forward("GET http://a.test/x?y=z HTTP/1.1\r\n" HOST "\r\n",
                   "GET /x?y=z HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
    expect_forward("GET HTTP://A.Test.:8080 HTTP/1.0\r\n\r\n",
                   "GET / HTTP/1.0\r\nHost: a.test:8080\r\nConnection: close\r\n\r\n");
    expect_forward("GET http://a.test?q HTTP/1.1\r\nHost: other.test\r\nAccept: */*\r\n\r\n",
                   "GET /?q HTTP/1.1\r\nHost: a.test\r\nAccept: */*\r\nConnection: close\r\n\r\n");
    expect_forward("OPTIONS http://a.test HTTP/1.1\r\n" HOST "\r\n",
                   "OPTIONS * HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
    expect_forward("GET http://[2001:DB8::1]:80/ HTTP/1.1\r\n" HOST "\r\n",
                   "GET / HTTP/1.1\r\nHost: [2001:db8::1]\r\nConnection: close\r\n\r\n");
    expect_forward("GET http://a.test//b.test/ HTTP/1.1\r\n" HOST "\r\n",
                   "GET //b.test/ HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
    /* What is for this hop only stays here, and what Connection names. */
    expect_forward(
        "POST http://a.test/ HTTP/1.1\r\n" HOST
        "Connection: keep-alive, X-One ,\tx-two\r\nConnection:\r\nConnection: X-three\r\n"
        "x-ONE: 1\r\nX-Two: 2\r\nX-Three: 3\r\nX-Four: \t4 \r\nKeep-Alive: 5\r\n"
        "Proxy-Authorization: Basic eA==\r\nProxy-Connection: close\r\nTE: trailers\r\n"
        "Trailer: x\r\nUpgrade: websocket\r\ncontent-length: 3\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a.test\r\nX-Four: \t4 \r\ncontent-length: 3\r\n"
        "Connection: close\r\n\r\n");
}
END_TEST

START_TEST(test_bodies)
{
    struct proxy_http request;
    static const char plain[] =
        "POST http://a.test/ HTTP/1.1\r\n" HOST "Content-Length: 42\r\n\r\n";
    static const char chunked[] =
        "POST http://a.test/ HTTP/1.1\r\n" HOST "Transfer-Encoding: Chunked\r\n\r\n";
    ck_assert_int_eq(read_head(plain, sizeof plain - 1, &request), PROXY_HTTP_DONE);
    ck_assert_int_eq(request.body.state, PROXY_BODY_PLAIN);
    ck_assert_uint_eq(request.body.left, 42);
    proxy_http_free(&request);
    ck_assert_int_eq(read_head(chunked, sizeof chunked - 1, &request), PROXY_HTTP_DONE);
    ck_assert_int_eq(request.body.state, PROXY_BODY_SIZE);
    proxy_http_free(&request);
}
END_TEST

START_TEST(test_bad_lines)
{
    static const char *const lines[] = {"GET / HTTP/1.1",
                                        "GET * HTTP/1.1",
                                        "GET a.test:80 HTTP/1.1",
                                        "GET https://a.test/ HTTP/1.1",
                                        "GET ftp://a.test/ HTTP/1.1",
                                        "GET http:/a.test/ HTTP/1.1",
                                        "GET http:///x HTTP/1.1",
                                        "GET http:// HTTP/1.1",
                                        "GET http://user@a.test/ HTTP/1.1",
                                        "GET http://user:80@a.test/ HTTP/1.1",
                                        "GET http://a.test:/ HTTP/1.1",
                                        "GET http://a.test:080/ HTTP/1.1",
                                        "GET http://a.test\\@b.test/ HTTP/1.1",
                                        "GET http://a.test#@b.test/ HTTP/1.1",
                                        "GET http://a.test/# HTTP/1.1",
                                        "GET http://a.test/\x80 HTTP/1.1",
                                        "GET http://a.test/\x01 HTTP/1.1",
                                        "GET http://a.test/\rx HTTP/1.1",
                                        "GET http://127.1/ HTTP/1.1",
                                        "GET http://0x7f.1/ HTTP/1.1",
                                        "GET http://%61.test/ HTTP/1.1",
                                        "GET  http://a.test/ HTTP/1.1",
                                        "GET http://a.test/  HTTP/1.1",
                                        "GET http://a.test/ HTTP/1.1 ",
                                        "GET\thttp://a.test/ HTTP/1.1",
                                        " GET http://a.test/ HTTP/1.1",
                                        "GET http://a.test/ HTTP/1.2",
                                        "GET http://a.test/ HTTP/2.0",
                                        "GET http://a.test/ http/1.1",
                                        "GET http://a.test/ HTTP/1.1x",
                                        "GET http://a.test/",
                                        "G(T http://a.test/ HTTP/1.1",
                                        "http://a.test/ HTTP/1.1",
                                        "ABCDEFGHIJABCDEFGHIJABCDEFGHIJABC http://a.test/ HTTP/1.1",
                                        "",
                                        NULL};
    for (size_t i = 0; lines[i]; i++) {
        AR_AUTO_FREE char *head = unit_repeat("", lines[i], 1, "\r\n" HOST "\r\n");
        expect_bad(head);
    }
}
END_TEST

START_TEST(test_bad_fields)
{
    static const char *const fields[] = {"Host: b.test",
                                         "HOST: a.test",
                                         "No colon",
                                         ": no name",
                                         "Space : x",
                                         "Sp ace: x",
                                         " Folded: x",
                                         "\tFolded: x",
                                         "X: a\r\n folded",
                                         "X: a\rb",
                                         "X: a\nY: b",
                                         "X: \x01",
                                         "X: \x7f",
                                         "X\xc3\xa9: y",
                                         "Content-Length: 1\r\nContent-Length: 1",
                                         "Content-Length: 1\r\ncontent-length: 2",
                                         "Content-Length: 1, 1",
                                         "Content-Length: +1",
                                         "Content-Length: -1",
                                         "Content-Length: 0x1",
                                         "Content-Length:",
                                         "Content-Length: 1 2",
                                         "Content-Length: 9999999999999999999",
                                         "Content-Length: 1\r\nTransfer-Encoding: chunked",
                                         "Transfer-Encoding: chunked\r\nContent-Length: 0",
                                         "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
                                         "Transfer-Encoding: gzip, chunked",
                                         "Transfer-Encoding: chunked, identity",
                                         "Transfer-Encoding: identity",
                                         "Transfer-Encoding: xchunked",
                                         "Transfer-Encoding:",
                                         "Connection: Content-Length\r\nContent-Length: 3",
                                         "Connection: close, transfer-encoding",
                                         "Connection: host",
                                         NULL};
    for (size_t i = 0; fields[i]; i++) {
        AR_AUTO_FREE char *head =
            unit_repeat("GET http://a.test/ HTTP/1.1\r\n" HOST, fields[i], 1, "\r\n\r\n");
        expect_bad(head);
    }
    expect_bad("GET http://a.test/ HTTP/1.1\r\n\r\n");
    expect_bad("POST http://a.test/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n");
    expect_bad("GET http://a.test/ HTTP/1.1\n" HOST "\r\n");
    expect_bad("\r\nGET http://a.test/ HTTP/1.1\r\n" HOST "\r\n");
    struct proxy_http request;
    static const char nul[] = "GET http://a.test/ HTTP/1.1\r\n" HOST "X: a\0b\r\n\r\n";
    ck_assert_int_eq(read_head(nul, sizeof nul - 1, &request), PROXY_HTTP_BAD);
    AR_AUTO_FREE char *many =
        unit_repeat("GET http://a.test/ HTTP/1.1\r\n" HOST, "Connection: x\r\n", 9, "\r\n");
    expect_bad(many);
}
END_TEST

/* To the byte: a head as long as may be, and one byte more. */
START_TEST(test_longest)
{
    static const char begin[] = "GET http://a.test/ HTTP/1.1\r\n" HOST "X: ";
    struct proxy_http request;
    size_t scanned = 0, fill = PROXY_HTTP_MAX_BYTES - (sizeof begin - 1) - 4;
    AR_AUTO_FREE char *longest = unit_repeat(begin, "x", fill, "\r\n\r\n");
    AR_AUTO_FREE char *longer = unit_repeat(begin, "x", fill + 1, "\r\n\r\n");
    ck_assert_int_eq(proxy_http_read(longest, strlen(longest), &scanned, &request),
                     PROXY_HTTP_DONE);
    ck_assert_uint_eq(request.head_bytes, PROXY_HTTP_MAX_BYTES);
    proxy_http_free(&request);
    scanned = 0;
    ck_assert_int_eq(proxy_http_read(longer, strlen(longer), &scanned, &request), PROXY_HTTP_BAD);
    scanned = 0;
    ck_assert_int_eq(proxy_http_read(longer, PROXY_HTTP_MAX_BYTES - 1, &scanned, &request),
                     PROXY_HTTP_MORE);
    ck_assert_int_eq(proxy_http_read(longer, PROXY_HTTP_MAX_BYTES, &scanned, &request),
                     PROXY_HTTP_BAD);
}
END_TEST

/* What of the bytes is the body, in pieces of any size. */
static size_t taken(const char *data, size_t length, size_t piece, struct proxy_body *body)
{
    size_t all = 0;
    proxy_body_chunked(body);
    for (size_t at = 0; at < length; at += piece) {
        size_t n = length - at < piece ? length - at : piece;
        size_t took = proxy_body_take(body, data + at, n);
        all += took;
        if (took < n)
            break;
    }
    return all;
}

START_TEST(test_chunks)
{
    static const struct {
        const char *text;
        size_t taken;
        bool over, broken;
    } cases[] = {
        {"0\r\n\r\nGET /", 5, true, false},
        {"000\r\n\r\nx", 7, true, false},
        {"5\r\nhello\r\n0\r\n\r\nx", 15, true, false},
        {"aA\r\n", 4, false, false},
        {"1\r\nx\r\n1\r\ny\r\n0\r\n\r\n", 17, true, false},
        {"5;ext\r\nhello", 1, false, true},
        {"5 \r\nhello", 1, false, true},
        {"0x5\r\n", 1, false, true},
        {"\r\n", 0, false, true},
        {"-1\r\n", 0, false, true},
        {"g\r\n", 0, false, true},
        {"1\nx", 1, false, true},
        {"1\r\nxy\r\n", 4, false, true},
        {"1\r\nx\n", 4, false, true},
        {"0\r\nTrailer: x\r\n\r\n", 3, false, true},
        {"0\r\n\n", 3, false, true},
        {"fffffffffffffff\r\nx", 18, false, false},
        {"0000000000000001\r\nx", 15, false, true},
    };
    for (size_t i = 0; i < AR_COUNT(cases); i++)
        for (size_t piece = 1; piece <= strlen(cases[i].text); piece++) {
            struct proxy_body body;
            size_t n = taken(cases[i].text, strlen(cases[i].text), piece, &body);
            ck_assert_msg(n == cases[i].taken, "%zu of %s", n, cases[i].text);
            ck_assert_int_eq(proxy_body_is_over(&body), cases[i].over);
            ck_assert_int_eq(proxy_body_is_broken(&body), cases[i].broken);
        }
}
END_TEST

START_TEST(test_lengths)
{
    struct proxy_body body;
    proxy_body_plain(&body, 0);
    ck_assert(proxy_body_is_over(&body));
    proxy_body_plain(&body, 5);
    ck_assert_uint_eq(proxy_body_take(&body, "abc", 3), 3);
    ck_assert(!proxy_body_is_over(&body));
    ck_assert_uint_eq(proxy_body_take(&body, "defg", 4), 2);
    ck_assert(proxy_body_is_over(&body));
    ck_assert_uint_eq(proxy_body_take(&body, "hij", 3), 0);
}
END_TEST

int main(void)
{
    static const TTest **const all[] = {
        &test_tunnels,    &test_no_tunnels, &test_forwarded, &test_bodies,  &test_bad_lines,
        &test_bad_fields, &test_longest,    &test_chunks,    &test_lengths, NULL};
    static const struct unit_case cases[] = {{"proxy_http", all}};
    return unit_main("proxy_http", cases, AR_COUNT(cases));
}
