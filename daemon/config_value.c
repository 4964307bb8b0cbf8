/*
 * config_value.c - parsers of single configuration values.
 *
 * Pure text in, checked value out; what a value means is config.c's matter. User and group names are
 * looked up once, when the file is read.
 */
#include "daemon/config_value.h"

#include "daemon/config.h"
#include "daemon/log.h"
#include "daemon/unit.h"

#include <event2/util.h>
#include <grp.h>
#include <netinet/in.h>
#include <pwd.h>
#include <string.h>

#define CONFIG_MAX_NUMBER 1000000000000000 /* 10^15: far above use, far below overflow */

int config_value_bool(const char *text, void *out)
{
    static const struct {
        const char *word;
        bool value;
    } words[] = {{"yes", true},    {"no", false}, {"true", true},
                 {"false", false}, {"on", true},  {"off", false}};
    for (size_t i = 0; i < AR_COUNT(words); i++) {
        if (strcmp(text, words[i].word) == 0) {
            *(bool *)out = words[i].value;
            return 0;
        }
    }
    return 1;
}

/* Reads digits; *end is where they stop. False when there are none or the number is absurd. */
static bool read_number(const char *text, int64_t *out, const char **end)
{
    int64_t value = 0;
    const char *p = text;
    for (; *p >= '0' && *p <= '9'; p++) {
        value = value * 10 + (*p - '0');
        if (value > CONFIG_MAX_NUMBER)
            return false;
    }
    *out = value;
    *end = p;
    return p != text;
}

struct unit {
    const char *word;
    int64_t factor;
};

static int read_with_unit(const char *text, const struct unit *units, size_t count, int64_t max,
                          int64_t *out)
{
    int64_t value;
    const char *end;
    if (!read_number(text, &value, &end))
        return 1;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(end, units[i].word) != 0)
            continue;
        if (!base_mul(value, units[i].factor, &value) || value < 1 || value > max)
            return 1;
        *out = value;
        return 0;
    }
    return 1;
}

int config_value_count(const char *text, void *out)
{
    static const struct unit none[] = {{"", 1}};
    return read_with_unit(text, none, AR_COUNT(none), 1000000000, out);
}

int config_value_size(const char *text, void *out)
{
    static const struct unit units[] = {{"", 1}, {"K", 1 << 10}, {"M", 1 << 20}, {"G", 1 << 30}};
    return read_with_unit(text, units, AR_COUNT(units), INT64_C(1) << 50, out);
}

int config_value_duration(const char *text, void *out)
{
    static const struct unit units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};
    return read_with_unit(text, units, AR_COUNT(units), 86400000, out);
}

int config_value_mode(const char *text, void *out)
{
    int64_t mode = 0;
    size_t length = strlen(text);
    if (length < 3 || length > 4 || strspn(text, "01234567") != length)
        return 1;
    for (const char *p = text; *p; p++)
        mode = mode * 8 + (*p - '0');
    if (mode > 0777)
        return 1;
    *(int64_t *)out = mode;
    return 0;
}

int config_value_text(const char *text, void *out)
{
    if (!text[0])
        return 1;
    char *copy = strdup(text);
    if (!copy)
        return -ENOMEM;
    free(*(char **)out);
    *(char **)out = copy;
    return 0;
}

int config_value_path(const char *text, void *out)
{
    return text_is_canonical_path(text) ? config_value_text(text, out) : 1;
}

/* Cuts the next word out of *rest: blanks separate, '…' and "…" keep together, '\' takes the next
 * character as it is. word has room for all of *rest. 0, 1 at the end, 2 for an open quote. */
static int next_word(const char **rest, char *word)
{
    const char *p = *rest + strspn(*rest, " \t");
    char quote = 0;
    if (!*p)
        return 1;
    for (; *p && (quote || (*p != ' ' && *p != '\t')); p++) {
        if (quote && *p == quote)
            quote = 0;
        else if (!quote && (*p == '\'' || *p == '"'))
            quote = *p;
        else if (*p == '\\' && quote != '\'' && p[1])
            *word++ = *++p;
        else
            *word++ = *p;
    }
    *word = 0;
    *rest = p;
    return quote ? 2 : 0;
}

int config_value_words(const char *text, void *out)
{
    struct text_list *list = out;
    AR_AUTO_FREE char *word = malloc(strlen(text) + 1);
    int found;
    if (!word)
        return -ENOMEM;
    text_list_free(list);
    while ((found = next_word(&text, word)) == 0) {
        int rc = text_list_add(list, word);
        if (rc < 0)
            return rc;
    }
    return found == 1 ? 0 : 1;
}

static bool all_are(const struct text_list *list, bool (*is_right)(const char *text))
{
    for (size_t i = 0; i < list->count; i++)
        if (!is_right(list->items[i]))
            return false;
    return true;
}

int config_value_paths(const char *text, void *out)
{
    struct text_list *list = out;
    int rc = config_value_words(text, list);
    return rc == 0 && !all_are(list, text_is_canonical_path) ? 1 : rc;
}

int config_value_endpoints(const char *text, void *out)
{
    struct text_list *list = out;
    int rc = config_value_words(text, list);
    for (size_t i = 0; rc == 0 && i < list->count; i++) {
        struct sockaddr_storage storage;
        int length = sizeof storage;
        rc = evutil_parse_sockaddr_port(list->items[i], (struct sockaddr *)&storage, &length) == 0
                 ? 0
                 : 1;
    }
    return rc;
}

static bool is_loopback(const struct sockaddr_storage *storage)
{
    if (storage->ss_family == AF_INET) {
        const struct sockaddr_in *four = (const struct sockaddr_in *)storage;
        return ntohl(four->sin_addr.s_addr) >> 24 == 127 && four->sin_port != 0;
    }
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)storage;
    return IN6_IS_ADDR_LOOPBACK(&six->sin6_addr) && six->sin6_port != 0;
}

int config_value_loopback(const char *text, void *out)
{
    struct sockaddr_storage storage = {0};
    int length = sizeof storage;
    if (evutil_parse_sockaddr_port(text, (struct sockaddr *)&storage, &length) != 0 ||
        !is_loopback(&storage))
        return 1;
    return config_value_text(text, out);
}

int config_value_ranges(const char *text, void *out)
{
    struct config_ranges *ranges = out;
    AR_CLEANUP(text_list_free) struct text_list words = {0};
    int rc = config_value_words(text, &words);
    if (rc != 0)
        return rc;
    free(ranges->items);
    ranges->count = 0;
    ranges->items = calloc(words.count + 1, sizeof *ranges->items);
    if (!ranges->items)
        return -ENOMEM;
    for (size_t i = 0; i < words.count; i++)
        if (!address_range_parse(words.items[i], &ranges->items[ranges->count++]))
            return 1;
    return 0;
}

int config_value_names(const char *text, void *out)
{
    struct config_names *names = out;
    int rc = config_value_words(text, &names->list);
    if (rc != 0)
        return rc;
    names->all = names->list.count == 1 && strcmp(names->list.items[0], "*") == 0;
    return 0;
}

static int read_names_of(const char *text, bool (*is_right)(const char *text),
                         struct config_names *names)
{
    int rc = config_value_names(text, names);
    return rc == 0 && !names->all && !all_are(&names->list, is_right) ? 1 : rc;
}

int config_value_hosts(const char *text, void *out)
{
    return read_names_of(text, text_is_host_pattern, out);
}

int config_value_methods(const char *text, void *out)
{
    return read_names_of(text, text_is_api_method, out);
}

int config_value_secrets(const char *text, void *out)
{
    return read_names_of(text, text_is_identifier, out);
}

int config_value_units(const char *text, void *out)
{
    struct text_list *units = out;
    int rc = config_value_words(text, units);
    return rc == 0 && (units->count == 0 || !all_are(units, unit_is_name)) ? 1 : rc;
}

/* One user or group by number or name. */
static int find_id(const char *word, bool group, int64_t *out)
{
    const char *end;
    if (read_number(word, out, &end) && !*end)
        return *out < (int64_t)UINT32_MAX ? 0 : 1;
    if (group) {
        const struct group *entry = getgrnam(word);
        *out = entry ? (int64_t)entry->gr_gid : 0;
        return entry ? 0 : 1;
    }
    const struct passwd *entry = getpwnam(word);
    *out = entry ? (int64_t)entry->pw_uid : 0;
    return entry ? 0 : 1;
}

static int read_ids(const char *text, bool group, struct config_ids *ids)
{
    struct text_list words = {0};
    int rc = config_value_words(text, &words);
    if (rc == 0 && words.count == 0)
        rc = 1;
    if (rc == 0) {
        free(ids->ids);
        ids->count = 0;
        ids->ids = calloc(words.count, sizeof *ids->ids);
        rc = ids->ids ? 0 : -ENOMEM;
    }
    for (size_t i = 0; rc == 0 && i < words.count; i++) {
        rc = find_id(words.items[i], group, &ids->ids[i]);
        ids->count = i + 1;
    }
    text_list_free(&words);
    return rc;
}

int config_value_users(const char *text, void *out)
{
    return read_ids(text, false, out);
}

int config_value_groups(const char *text, void *out)
{
    return read_ids(text, true, out);
}

int config_value_log_level(const char *text, void *out)
{
    enum log_level level;
    if (!log_level_from_word(text, &level))
        return 1;
    *(int *)out = (int)level;
    return 0;
}

int config_value_network(const char *text, void *out)
{
    return network_mode_from_word(text, out) ? 0 : 1;
}

int config_value_files(const char *text, void *out)
{
    static const char *const words[] = {
        [CONFIG_FILES_NONE] = "none", [CONFIG_FILES_READ] = "read", [CONFIG_FILES_WRITE] = "write"};
    for (size_t i = 0; i < AR_COUNT(words); i++) {
        if (strcmp(text, words[i]) == 0) {
            *(enum config_files *)out = (enum config_files)i;
            return 0;
        }
    }
    return 1;
}

int config_value_when_down(const char *text, void *out)
{
    enum config_when_down *when_down = out;
    if (strcmp(text, "refuse") != 0 && strcmp(text, "keep") != 0)
        return 1;
    *when_down = text[0] == 'r' ? CONFIG_REFUSE : CONFIG_KEEP;
    return 0;
}
