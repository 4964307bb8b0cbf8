/*
 * check_manual.c - auditrun.conf(5) and etc/auditrun.conf against the settings table.
 *
 * Each setting has an entry in the man page and a line in the shipped file, in the section where it
 * belongs, and neither has one that does not exist. The shipped file is good as it is, and what it
 * shows commented out is the default: taken in, it changes nothing.
 */
#include "daemon/config.h"
#include "tests/unit/unit.h"

#include <limits.h>

#define LINE_BYTES 512

static FILE *open_source(const char *path)
{
    const char *top = getenv("AUDITRUN_SOURCE");
    char whole[PATH_MAX];
    (void)snprintf(whole, sizeof(whole), "%s/%s", top ? top : ".", path);
    FILE *file = fopen(whole, "re");
    ck_assert_msg(file != NULL, "%s", whole);
    return file;
}

/* "section.key" of the line, or "" when it is none; the section is remembered from line to line. */
typedef void entry_fn(const char *line, char section[64], char entry[128]);

static void man_entry(const char *line, char section[64], char entry[128])
{
    char key[64];
    entry[0] = '\0';
    if (strncmp(line, ".Sh", 3) == 0)
        section[0] = '\0';
    else if (sscanf(line, ".Ss [%63[a-z-]", section) == 1 || !section[0])
        return;
    else if (sscanf(line, ".It Cm %63[a-z_]", key) == 1)
        (void)snprintf(entry, 128, "%s.%s", section, key);
}

static void file_entry(const char *line, char section[64], char entry[128])
{
    char key[64], equals[2];
    entry[0] = '\0';
    if (line[0] == '#')
        line++;
    if (sscanf(line, "[%63[a-z-]", section) == 1)
        return;
    if (sscanf(line, "%63[a-z_] %1[=]", key, equals) == 2)
        (void)snprintf(entry, 128, "%s.%s", section, key);
}

/* How many times the document has an entry; "": how many that are no setting. */
static int count_entries(const char *path, entry_fn *find, const char *wanted)
{
    char line[LINE_BYTES], section[64] = "", entry[128];
    int count = 0;
    FILE *file = open_source(path);
    while (fgets(line, sizeof(line), file)) {
        const char *known_section, *key;
        bool known = false;
        find(line, section, entry);
        for (size_t i = 0; !known && config_setting(i, &known_section, &key); i++)
            known = strncmp(entry, known_section, strlen(known_section)) == 0 &&
                    entry[strlen(known_section)] == '.' &&
                    strcmp(entry + strlen(known_section) + 1, key) == 0;
        if (wanted[0] ? strcmp(entry, wanted) == 0 : entry[0] && !known)
            count++;
    }
    ck_assert_int_eq(fclose(file), 0);
    return count;
}

/* Of a section that it has more than once, a file can have a key more than once. */
static void check_document(const char *path, entry_fn *find, int most)
{
    const char *section, *key;
    size_t i = 0;
    for (; config_setting(i, &section, &key); i++) {
        char wanted[128];
        (void)snprintf(wanted, sizeof(wanted), "%s.%s", section, key);
        int count = count_entries(path, find, wanted);
        ck_assert_msg(count >= 1 && count <= most, "%s: %d entries for %s", path, count, wanted);
    }
    ck_assert_uint_gt(i, 30);
    ck_assert_msg(count_entries(path, find, "") == 0, "%s: a setting that does not exist", path);
}

START_TEST(test_man_page_has_each_setting)
{
    check_document("man/auditrun.conf.5", man_entry, 1);
}
END_TEST

START_TEST(test_shipped_file_has_each_setting)
{
    check_document("etc/auditrun.conf", file_entry, 2);
}
END_TEST

/* A line of the shipped file as this machine can take it. */
static void put_line(FILE *out, const char *line, bool uncommented)
{
    char section[64] = "x", entry[128];
    const char *placeholder;
    file_entry(line, section, entry);
    bool setting = entry[0] || strncmp(line, "#[", 2) == 0;
    if (uncommented && line[0] == '#' && setting)
        line++;
    if (strncmp(line, "program =", 9) == 0)
        (void)fputs("program = /bin/true\n", out);
    else if (strncmp(line, "gid =", 5) == 0)
        (void)fputs("gid = root\n", out);
    else if ((placeholder = strchr(line, '@')) && strchr(placeholder + 1, '@'))
        (void)fprintf(out, "%.*s%s", (int)(placeholder - line), line,
                      strchr(placeholder + 1, '@') + 1);
    else
        (void)fputs(line, out);
}

static const struct config *load_shipped(bool uncommented)
{
    char path[] = "/tmp/auditrun-conf.XXXXXX", line[LINE_BYTES], message[CONFIG_MESSAGE_BYTES];
    const struct config *config = NULL;
    FILE *shipped = open_source("etc/auditrun.conf");
    int fd = mkstemp(path);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof(line), shipped))
        put_line(file, line, uncommented);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(fclose(shipped), 0);
    int rc = config_load(path, &config, message);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_msg(rc == 0, "%s", rc > 0 ? message : "out of memory");
    return config;
}

START_TEST(test_shipped_file_is_good)
{
    const struct config *config = load_shipped(false);
    ck_assert_uint_eq(config->executor_count, 1);
    ck_assert_uint_eq(config->client_count, 2);
    ck_assert_uint_eq(config->clients[0].gids.count, 0);
    ck_assert_int_eq(config->clients[0].uids.ids[0], 0);
    ck_assert(config->clients[0].switches);
    ck_assert_uint_eq(config->clients[1].uids.count, 0);
    ck_assert(!config->clients[1].switches);
    ck_assert_uint_eq(config->company_count + config->language_count, 0);
    config_release(config);
}
END_TEST

START_TEST(test_what_is_commented_out_is_the_default)
{
    const struct config *plain = load_shipped(false), *full = load_shipped(true);
#define SAME(member) ck_assert_int_eq((int64_t)plain->member, (int64_t)full->member)
    SAME(enabled);
    SAME(log_level);
    SAME(drain_timeout_ms);
    SAME(socket_mode);
    SAME(max_connections);
    SAME(max_line_bytes);
    SAME(max_pending);
    SAME(stall_timeout_ms);
    SAME(ledger_deadline_ms);
    SAME(when_down);
    SAME(max_wall_ms);
    SAME(max_output_bytes);
    SAME(max_running);
    SAME(max_queued);
    SAME(max_running_company);
    SAME(max_queued_company);
    SAME(queue_deadline_ms);
    SAME(network.allowlist);
    SAME(network.open);
    SAME(network.max_connections);
    SAME(network.max_bytes);
    SAME(network.connect_timeout_ms);
    SAME(network.idle_timeout_ms);
    SAME(data_port.max_request_bytes);
    SAME(data_port.max_answer_bytes);
    SAME(data_port.max_pending);
    SAME(data_port.max_rate);
    SAME(data_port.timeout_ms);
    SAME(secrets.credentials);
    SAME(secrets.mask_secrets);
    SAME(metrics.mode);
    SAME(executors[0].enabled);
    SAME(executors[0].slots);
    SAME(executors[0].recycle);
    SAME(clients[1].purposes.all);
    SAME(clients[1].executors.all);
    SAME(clients[1].languages.all);
    SAME(clients[1].ceilings.network);
    SAME(clients[1].ceilings.hosts.all);
    SAME(clients[1].ceilings.data_api.all);
    SAME(clients[1].ceilings.secrets.all);
    SAME(clients[1].ceilings.files);
    SAME(clients[1].max_running);
    SAME(clients[1].switches);
    for (size_t i = 0; i < LIMIT_COUNT; i++)
        SAME(limits.value[i]);
#undef SAME
    ck_assert_uint_eq(full->company_count, 1);
    ck_assert_uint_eq(full->language_count, 1);
    config_release(plain);
    config_release(full);
}
END_TEST

static const TTest **const tests[] = {
    &test_man_page_has_each_setting, &test_shipped_file_has_each_setting,
    &test_shipped_file_is_good, &test_what_is_commented_out_is_the_default, NULL};
static const struct unit_case cases[] = {{"settings", tests}};

int main(void)
{
    return unit_main("manual", cases, AR_COUNT(cases));
}
