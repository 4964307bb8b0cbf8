/*
 * fuzz_proxy.c - any bytes of code to the proxy. What is understood is understood in the same way byte
 * by byte; a target is a sound name or an address; and the head that goes on to the origin is one that
 * a strict reader takes for one request with the same framing.
 */
#include "protocol/proxy_http.h"
#include "protocol/proxy_socks.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void check_target(const struct target *target)
{
    struct target again;
    char text[TARGET_AUTHORITY_BYTES];
    require(target->port > 0);
    require(target->is_address == (target->name[0] == '\0'));
    target_to_authority(target, 0, text);
    require(target_parse_authority(text, strlen(text), 0, &again));
    require(again.port == target->port && again.is_address == target->is_address);
    require(strcmp(again.name, target->name) == 0);
    require(memcmp(&again.address, &target->address, sizeof again.address) == 0);
}

/* One request line, one Host, one Connection: close, one end; never a way to frame it twice. */
static void check_forward(const struct proxy_http *request)
{
    const char *head = request->forward;
    size_t length = request->forward_length;
    require(length > 4 && memcmp(head + length - 4, "\r\n\r\n", 4) == 0);
    require(memmem(head, length - 1, "\r\n\r\n", 4) == NULL);
    require(!memchr(head, '\0', length));
    for (size_t i = 0; i < length; i++)
        require((head[i] == '\r') == (i + 1 < length && head[i + 1] == '\n'));
}

static void check_http(const char *data, size_t size)
{
    struct proxy_http all, one;
    size_t scanned = 0;
    int result = proxy_http_read(data, size, &scanned, &all), step = PROXY_HTTP_MORE;
    require(result >= 0 && scanned <= size);
    scanned = 0;
    for (size_t n = 0; n <= size && step == PROXY_HTTP_MORE; n++)
        step = proxy_http_read(data, n, &scanned, &one);
    require(step == result);
    if (result == PROXY_HTTP_DONE) {
        check_target(&all.target);
        require(all.head_bytes == one.head_bytes && all.head_bytes <= PROXY_HTTP_MAX_BYTES);
        require(all.is_tunnel == (all.forward == NULL));
        if (all.forward)
            check_forward(&all);
    }
    proxy_http_free(&all);
    if (step == PROXY_HTTP_DONE)
        proxy_http_free(&one);
}

static void check_body(const char *data, size_t size)
{
    struct proxy_body all, one;
    proxy_body_chunked(&all);
    proxy_body_chunked(&one);
    size_t taken = proxy_body_take(&all, data, size), steps = 0;
    while (steps < size && proxy_body_take(&one, data + steps, 1) == 1)
        steps++;
    require(taken == steps && taken <= size);
    require(all.state == one.state && all.left == one.left);
}

static void check_socks(const uint8_t *data, size_t size)
{
    struct target target;
    enum proxy_socks_code code = PROXY_SOCKS_FAILURE;
    size_t used = 0;
    bool offered = false;
    if (proxy_socks_greeting(data, size, &used, &offered) == PROXY_SOCKS_DONE)
        require(used <= size && used <= PROXY_SOCKS_MAX_BYTES);
    if (proxy_socks_request(data, size, &used, &code, &target) == PROXY_SOCKS_DONE) {
        require(used <= size);
        if (code == PROXY_SOCKS_GRANTED)
            check_target(&target);
    }
    require(size < PROXY_SOCKS_MAX_BYTES ||
            proxy_socks_request(data, size, &used, &code, &target) != PROXY_SOCKS_MORE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_http((const char *)data, size);
    check_body((const char *)data, size);
    check_socks(data, size);
    return 0;
}
