/*
 * check_config.c - the configuration: every fault names file, line and key, and nothing unknown
 * passes.
 */
#include "daemon/config.h"
#include "tests/suite.h"
#include "tests/unit/unit.h"

#include <fcntl.h>

static char path[] = "/tmp/auditrun-config-XXXXXX";
static char message[CONFIG_MESSAGE_BYTES];

static void setup(void)
{
    memcpy(path + strlen(path) - 6, "XXXXXX", 6);
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    (void)close(fd);
    message[0] = 0;
}

static void teardown(void)
{
    (void)unlink(path);
}

static int load(const char *text, const struct config **config)
{
    FILE *file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
    return config_load(path, config, message);
}

static const struct config *load_good(const char *text)
{
    const struct config *config = NULL;
    int rc = load(text, &config);
    ck_assert_msg(rc == 0, "%s", message);
    return config;
}

START_TEST(test_defaults)
{
    const struct config *config = load_good("");
    ck_assert(config->enabled);
    ck_assert_str_eq(config->socket_path, "/run/auditrun/auditrun.sock");
    ck_assert_int_eq(config->socket_mode, 0660);
    ck_assert_int_eq(config->when_down, CONFIG_REFUSE);
    ck_assert_int_eq(config->limits.value[LIMIT_WALL_MS], 10000);
    ck_assert_int_eq(config->limits.value[LIMIT_MEMORY_BYTES], 256 << 20);
    ck_assert_uint_eq(config->client_count, 0); /* nobody may do anything */
    config_release(config);
}
END_TEST

START_TEST(test_sections_with_names)
{
    const struct config *config = load_good("[executor one]\n"
                                            "program = /bin/true\n"
                                            "args = --x 'a b' c\\ d\n"
                                            "slots = 3\n"
                                            "[client ci]\n"
                                            "uid = root 1234\n"
                                            "gid = 0\n"
                                            "companies = acme globex\n"
                                            "[company acme corp]\n"
                                            "write = /srv/outbox/acme\n"
                                            "  /srv/more\n"
                                            "[language perl]\n"
                                            "enabled = no\n");
    ck_assert_uint_eq(config->executors[0].args.count, 3);
    ck_assert_str_eq(config->executors[0].args.items[1], "a b");
    ck_assert_str_eq(config->executors[0].args.items[2], "c d");
    ck_assert_int_eq(config->executors[0].slots, 3);
    ck_assert_uint_eq(config->clients[0].uids.count, 2);
    ck_assert_int_eq(config->clients[0].uids.ids[1], 1234);
    ck_assert(config_names_allow(&config->clients[0].companies, "globex"));
    ck_assert(!config_names_allow(&config->clients[0].companies, "glob"));
    ck_assert(config_names_allow(&config->clients[0].languages, "anything"));
    ck_assert(config_names_allow(&config->clients[0].purposes, "anything"));
    ck_assert_int_eq(config->clients[0].ceilings.network, NETWORK_OPEN);
    ck_assert(config->clients[0].ceilings.hosts.all);
    ck_assert_int_eq(config->clients[0].ceilings.files, CONFIG_FILES_WRITE);
    ck_assert(!config->clients[0].switches);
    ck_assert_uint_eq(config_company(config, "acme corp")->write.count, 2);
    ck_assert_ptr_null(config_company(config, "acme"));
    ck_assert(!config_language_enabled(config, "perl"));
    ck_assert(config_language_enabled(config, "python"));
    config_release(config);
}
END_TEST

START_TEST(test_policy_of_a_client)
{
    const struct config *config =
        load_good("[client ci]\n"
                  "unit = billing.service 'a\\x2db@1.service'\n"
                  "companies = acme\n"
                  "purposes = \"monthly report\" plugin\n"
                  "network = allowlist\n"
                  "hosts = *.t.test:443\n"
                  "  [2001:db8::1]:443\n"
                  "data_api = invoices.* mail.send\n"
                  "secrets = BILLING_KEY\n"
                  "filesystem = read\n"
                  "max_wall = 5s\nmax_cpu = 2s\nmax_memory = 64M\nmax_processes = 8\n"
                  "max_open_files = 32\nmax_scratch = 1M\nmax_output = 4K\n"
                  "max_running = 3\nswitches = yes\n");
    const struct config_client *client = &config->clients[0];
    static const int64_t limits[LIMIT_COUNT] = {
        [LIMIT_WALL_MS] = 5000,        [LIMIT_CPU_MS] = 2000,   [LIMIT_MEMORY_BYTES] = 64 << 20,
        [LIMIT_PROCESSES] = 8,         [LIMIT_OPEN_FILES] = 32, [LIMIT_SCRATCH_BYTES] = 1 << 20,
        [LIMIT_OUTPUT_BYTES] = 4 << 10};
    ck_assert_uint_eq(client->uids.count + client->gids.count, 0);
    ck_assert_uint_eq(client->units.count, 2);
    ck_assert_str_eq(client->units.items[1], "a\\x2db@1.service");
    ck_assert(config_names_allow(&client->purposes, "monthly report"));
    ck_assert(!config_names_allow(&client->purposes, "monthly"));
    ck_assert_int_eq(client->ceilings.network, NETWORK_ALLOWLIST);
    ck_assert_uint_eq(client->ceilings.hosts.list.count, 2);
    ck_assert_uint_eq(client->ceilings.data_api.list.count, 2);
    ck_assert_uint_eq(client->ceilings.secrets.list.count, 1);
    ck_assert_int_eq(client->ceilings.files, CONFIG_FILES_READ);
    ck_assert_mem_eq(client->ceilings.limits, limits, sizeof limits);
    ck_assert_int_eq(client->max_running, 3);
    ck_assert(client->switches);
    config_release(config);
}
END_TEST

static const struct {
    const char *text;
    const char *says;
} faults[] = {
    {"[nothing]\nx = 1\n", ":2: there is no section [nothing]"},
    {"[daemon]\n\nlog_levle = info\n", ":3: [daemon] has no key log_levle"},
    {"[daemon]\nlog_level = loud\n", ":2: log_level must be error, warning, info or debug"},
    {"[daemon x]\nenabled = yes\n", ":2: [daemon] takes no name"},
    {"[socket]\nmode = 999\n", ":2: mode must be an octal mode"},
    {"[socket]\npath = run/x\n", ":2: path must be an absolute path"},
    {"[socket]\npath = /run/../x\n", ":2: path must be an absolute path"},
    {"[socket]\nmax_line = 8X\n", ":2: max_line must be a size"},
    {"[socket]\nmax_line = 0\n", ":2: max_line must be a size"},
    {"[socket]\nmax_line = 99999999999999999999\n", ":2: max_line must be a size"},
    {"[metrics]\nlisten = 127.0.0.1\n", ":2: listen must be a loopback address"},
    {"[metrics]\nlisten = 192.0.2.1:9464\n", ":2: listen must be a loopback address"},
    {"[metrics]\nlisten = [::]:9464\n", ":2: listen must be a loopback address"},
    {"[metrics]\nlisten = 0.0.0.0:9464\n", ":2: listen must be a loopback address"},
    {"[limits]\nwall = 5\n", ":2: wall must be a time"},
    {"[limits]\nwall = -5s\n", ":2: wall must be a time"},
    {"[limits]\nwall = 5s\nwall = 6s\n", ":3: wall is given twice"},
    {"[limits]\nwall = 2h\n", "[limits] wall is more than max_wall"},
    {"[executor]\nprogram = /bin/true\n", ":2: [executor NAME] needs a name"},
    {"[executor A]\nprogram = /bin/true\n", ":2: [executor NAME] needs a name"},
    {"[executor a]\nslots = 2\n", "[executor a] needs a program"},
    {"[executor a]\nprogram = /nonexistent\n", "program /nonexistent cannot be executed"},
    {"[executor a]\nprogram = /bin/true\nargs = 'open\n", ":3: args must be words"},
    {"[client a]\ncompanies = *\n", "[client a] needs a uid, a gid or a unit"},
    {"[client a]\nunit =\n", ":2: unit must be names of units"},
    {"[client a]\nunit = billing\n", ":2: unit must be names of units"},
    {"[client a]\nunit = a.service system.slice\n", ":2: unit must be names of units"},
    {"[client a]\nnetwork = some\n", ":2: network must be none, allowlist or open"},
    {"[client a]\nhosts = t.test\n", ":2: hosts must be hosts such as"},
    {"[client a]\nhosts = * t.test:443\n", ":2: hosts must be hosts such as"},
    {"[client a]\ndata_api = invoices.\n", ":2: data_api must be methods such as"},
    {"[client a]\nsecrets = A-B\n", ":2: secrets must be names of secrets"},
    {"[client a]\nfilesystem = all\n", ":2: filesystem must be none, read or write"},
    {"[client a]\nmax_memory = 0\n", ":2: max_memory must be a size"},
    {"[client a]\npurposes = 'open\n", ":2: purposes must be texts"},
    {"[client a]\nswitches = perhaps\n", ":2: switches must be yes or no"},
    {"[client a]\nuid = 0\n", "[client a] needs companies"},
    {"[client a]\nuid = no-such-user-here\n", ":2: uid must be user names or numbers"},
    {"[client a]\nuid = 4294967295\n", ":2: uid must be user names or numbers"},
    {"daemon = yes\n", "there is no section [of this name]"},
    {"[daemon]\nrubbish\n", ":2: neither [section], key = value nor # comment"},
};

START_TEST(test_faults_name_their_place)
{
    const struct config *config = NULL;
    ck_assert_int_eq(load(faults[_i].text, &config), 1);
    ck_assert_msg(strstr(message, faults[_i].says) != NULL, "%s", message);
    ck_assert_msg(strstr(message, path) == message, "%s", message);
}
END_TEST

START_TEST(test_long_line_is_not_cut)
{
    const struct config *config = NULL;
    char *text = unit_repeat("[executor a]\nprogram = /bin/true\nargs = ", "x", 300, "\n");
    ck_assert_int_eq(load(text, &config), 1);
    ck_assert_msg(strstr(message, ":3: line too long") != NULL, "%s", message);
    free(text);
}
END_TEST

START_TEST(test_missing_file)
{
    const struct config *config = NULL;
    ck_assert_int_eq(config_load("/nonexistent/auditrun.conf", &config, message), 1);
    ck_assert_str_eq(message,
                     "/nonexistent/auditrun.conf: cannot be read: No such file or directory");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("config");
    TCase *tcase = tcase_create("config");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, test_defaults);
    tcase_add_test(tcase, test_sections_with_names);
    tcase_add_test(tcase, test_policy_of_a_client);
    tcase_add_loop_test(tcase, test_faults_name_their_place, 0, (int)AR_COUNT(faults));
    tcase_add_test(tcase, test_long_line_is_not_cut);
    tcase_add_test(tcase, test_missing_file);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
