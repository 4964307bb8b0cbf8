/*
 * config.c - the configuration file as a checked, immutable struct.
 *
 * The settings table below is the whole grammar: a section, a key, how its value is parsed, where it
 * goes, and its default. Sections that can occur several times carry a name ("[executor NAME]") and
 * their rows are offsets into an item of a list. Everything unknown is an error, never ignored: a
 * misspelt "companies" must not quietly allow nothing or everything.
 */
#include "daemon/config.h"

#include "daemon/config_entries.h"
#include "daemon/config_value.h"
#include "daemon/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct setting {
    const char *section;
    const char *key;
    config_value_fn *parse;
    size_t offset;
    const char *fallback; /* default, in the words of the file; NULL: none */
    const char *form;     /* what a good value looks like, for the error */
};

#define IN(member)       offsetof(struct config, member)
#define LIMIT(limit)     (offsetof(struct config, limits.value) + (limit) * sizeof(int64_t))
#define OF(type, member) offsetof(struct config_##type, member)
#define CEILING(limit)   (OF(client, ceilings.limits) + (limit) * sizeof(int64_t))

#define FORM_BOOL     "yes or no"
#define FORM_COUNT    "a number from 1"
#define FORM_SIZE     "a size such as 64M"
#define FORM_DURATION "a time such as 5s or 250ms"
#define FORM_PATH     "an absolute path without '..'"
#define FORM_NAMES    "names separated by blanks, or *"

static const struct setting settings[] = {
    {"daemon", "enabled", config_value_bool, IN(enabled), "yes", FORM_BOOL},
    {"daemon", "log_level", config_value_log_level, IN(log_level), "info",
     "error, warning, info or debug"},
    {"daemon", "drain_timeout", config_value_duration, IN(drain_timeout_ms), "10s", FORM_DURATION},
    {"socket", "path", config_value_path, IN(socket_path), "/run/auditrun/auditrun.sock",
     FORM_PATH},
    {"socket", "mode", config_value_mode, IN(socket_mode), "0660", "an octal mode such as 0660"},
    {"socket", "max_connections", config_value_count, IN(max_connections), "1024", FORM_COUNT},
    {"socket", "max_line", config_value_size, IN(max_line_bytes), "8M", FORM_SIZE},
    {"socket", "stall_timeout", config_value_duration, IN(stall_timeout_ms), "30s", FORM_DURATION},
    {"socket", "max_pending", config_value_count, IN(max_pending), "256", FORM_COUNT},
    {"ledger", "url", config_value_text, IN(ledger_url), "sqlite:/var/lib/auditrun/ledger.db",
     "sqlite:PATH or postgres:CONNECTION"},
    {"ledger", "deadline", config_value_duration, IN(ledger_deadline_ms), "5s", FORM_DURATION},
    {"ledger", "when_down", config_value_when_down, IN(when_down), "refuse", "refuse or keep"},
    {"ledger", "checkpoint_key", config_value_path, IN(checkpoint_key), NULL, FORM_PATH},
    {"ledger", "checkpoint_every", config_value_duration, IN(checkpoint_every_ms), "10m",
     FORM_DURATION},
    {"journal", "directory", config_value_path, IN(journal_directory), "/var/lib/auditrun/journal",
     FORM_PATH},
    {"journal", "max_size", config_value_size, IN(journal_max_bytes), "1G", FORM_SIZE},
    {"limits", "wall", config_value_duration, LIMIT(LIMIT_WALL_MS), "10s", FORM_DURATION},
    {"limits", "cpu", config_value_duration, LIMIT(LIMIT_CPU_MS), "10s", FORM_DURATION},
    {"limits", "memory", config_value_size, LIMIT(LIMIT_MEMORY_BYTES), "256M", FORM_SIZE},
    {"limits", "processes", config_value_count, LIMIT(LIMIT_PROCESSES), "64", FORM_COUNT},
    {"limits", "open_files", config_value_count, LIMIT(LIMIT_OPEN_FILES), "256", FORM_COUNT},
    {"limits", "scratch", config_value_size, LIMIT(LIMIT_SCRATCH_BYTES), "64M", FORM_SIZE},
    {"limits", "output", config_value_size, LIMIT(LIMIT_OUTPUT_BYTES), "1M", FORM_SIZE},
    {"limits", "max_wall", config_value_duration, IN(max_wall_ms), "1h", FORM_DURATION},
    {"limits", "max_output", config_value_size, IN(max_output_bytes), "64M", FORM_SIZE},
    {"limits", "max_running", config_value_count, IN(max_running), "64", FORM_COUNT},
    {"limits", "max_queued", config_value_count, IN(max_queued), "1024", FORM_COUNT},
    {"limits", "max_running_company", config_value_count, IN(max_running_company), "64",
     FORM_COUNT},
    {"limits", "max_queued_company", config_value_count, IN(max_queued_company), "512", FORM_COUNT},
    {"limits", "queue_deadline", config_value_duration, IN(queue_deadline_ms), "30s",
     FORM_DURATION},
    {"network", "allowlist", config_value_bool, IN(network.allowlist), "yes", FORM_BOOL},
    {"network", "open", config_value_bool, IN(network.open), "no", FORM_BOOL},
    {"network", "nameservers", config_value_endpoints, IN(network.nameservers), "",
     "addresses, with or without a port"},
    {"network", "addresses", config_value_ranges, IN(network.allowed), "",
     "address ranges such as 10.1.0.0/16"},
    {"network", "max_connections", config_value_count, IN(network.max_connections), "64",
     FORM_COUNT},
    {"network", "max_bytes", config_value_size, IN(network.max_bytes), "1G", FORM_SIZE},
    {"network", "connect_timeout", config_value_duration, IN(network.connect_timeout_ms), "10s",
     FORM_DURATION},
    {"network", "idle_timeout", config_value_duration, IN(network.idle_timeout_ms), "60s",
     FORM_DURATION},
    {"data-port", "socket", config_value_path, IN(data_port.socket), NULL, FORM_PATH},
    {"data-port", "max_request", config_value_size, IN(data_port.max_request_bytes), "1M",
     FORM_SIZE},
    {"data-port", "max_answer", config_value_size, IN(data_port.max_answer_bytes), "2M", FORM_SIZE},
    {"data-port", "max_pending", config_value_count, IN(data_port.max_pending), "16", FORM_COUNT},
    {"data-port", "max_rate", config_value_count, IN(data_port.max_rate), "100", FORM_COUNT},
    {"data-port", "timeout", config_value_duration, IN(data_port.timeout_ms), "10s", FORM_DURATION},
    {"secrets", "directory", config_value_path, IN(secrets.directory), NULL, FORM_PATH},
    {"secrets", "credentials", config_value_bool, IN(secrets.credentials), "no", FORM_BOOL},
    {"secrets", "mask_secrets", config_value_bool, IN(secrets.mask_secrets), "yes", FORM_BOOL},
    {"metrics", "socket", config_value_path, IN(metrics.socket), NULL, FORM_PATH},
    {"metrics", "mode", config_value_mode, IN(metrics.mode), "0660", "an octal mode such as 0660"},
    {"metrics", "listen", config_value_loopback, IN(metrics.listen), NULL,
     "a loopback address with a port, such as 127.0.0.1:9464"},
    {"executor", "program", config_value_path, OF(executor, program), NULL, FORM_PATH},
    {"executor", "args", config_value_words, OF(executor, args), "", "words, quoted as in a shell"},
    {"executor", "enabled", config_value_bool, OF(executor, enabled), "yes", FORM_BOOL},
    {"executor", "slots", config_value_count, OF(executor, slots), "4", FORM_COUNT},
    {"executor", "recycle", config_value_count, OF(executor, recycle), "1000", FORM_COUNT},
    {"client", "uid", config_value_users, OF(client, uids), NULL, "user names or numbers"},
    {"client", "gid", config_value_groups, OF(client, gids), NULL, "group names or numbers"},
    {"client", "unit", config_value_units, OF(client, units), NULL,
     "names of units such as billing.service"},
    {"client", "companies", config_value_names, OF(client, companies), NULL, FORM_NAMES},
    {"client", "purposes", config_value_names, OF(client, purposes), "*",
     "texts, quoted as in a shell, or *"},
    {"client", "executors", config_value_names, OF(client, executors), "*", FORM_NAMES},
    {"client", "languages", config_value_names, OF(client, languages), "*", FORM_NAMES},
    {"client", "network", config_value_network, OF(client, ceilings.network), "open",
     "none, allowlist or open"},
    {"client", "hosts", config_value_hosts, OF(client, ceilings.hosts), "*",
     "hosts such as *.example.com:443, or *"},
    {"client", "data_api", config_value_methods, OF(client, ceilings.data_api), "*",
     "methods such as invoices.*, or *"},
    {"client", "secrets", config_value_secrets, OF(client, ceilings.secrets), "*",
     "names of secrets, or *"},
    {"client", "filesystem", config_value_files, OF(client, ceilings.files), "write",
     "none, read or write"},
    {"client", "max_wall", config_value_duration, CEILING(LIMIT_WALL_MS), NULL, FORM_DURATION},
    {"client", "max_cpu", config_value_duration, CEILING(LIMIT_CPU_MS), NULL, FORM_DURATION},
    {"client", "max_memory", config_value_size, CEILING(LIMIT_MEMORY_BYTES), NULL, FORM_SIZE},
    {"client", "max_processes", config_value_count, CEILING(LIMIT_PROCESSES), NULL, FORM_COUNT},
    {"client", "max_open_files", config_value_count, CEILING(LIMIT_OPEN_FILES), NULL, FORM_COUNT},
    {"client", "max_scratch", config_value_size, CEILING(LIMIT_SCRATCH_BYTES), NULL, FORM_SIZE},
    {"client", "max_output", config_value_size, CEILING(LIMIT_OUTPUT_BYTES), NULL, FORM_SIZE},
    {"client", "max_running", config_value_count, OF(client, max_running), "1000000", FORM_COUNT},
    {"client", "switches", config_value_bool, OF(client, switches), "no", FORM_BOOL},
    {"company", "enabled", config_value_bool, OF(company, enabled), "yes", FORM_BOOL},
    {"company", "read", config_value_paths, OF(company, read), "", "absolute paths"},
    {"company", "write", config_value_paths, OF(company, write), "", "absolute paths"},
    {"language", "enabled", config_value_bool, OF(language, enabled), "yes", FORM_BOOL},
};

/* What is read at the start only: a reload does not change it. */
static const struct {
    const char *section, *key;
} fixed[] = {
    {"socket", "path"},       {"socket", "mode"},           {"socket", "max_connections"},
    {"ledger", "url"},        {"ledger", "checkpoint_key"}, {"ledger", "checkpoint_every"},
    {"journal", "directory"}, {"journal", "max_size"},      {"network", "nameservers"},
    {"metrics", "socket"},    {"metrics", "mode"},          {"metrics", "listen"},
};

/* The sections with a name: where their list lies, and how big an item is. Each item begins with
 * char *name. */
static const struct list {
    const char *section;
    size_t items, count, size;
} lists[] = {
    {"executor", IN(executors), IN(executor_count), sizeof(struct config_executor)},
    {"client", IN(clients), IN(client_count), sizeof(struct config_client)},
    {"company", IN(companies), IN(company_count), sizeof(struct config_company)},
    {"language", IN(languages), IN(language_count), sizeof(struct config_language)},
};

struct loading {
    struct config *config;
    const char *path;
    char *message;
};

static int fail(const struct loading *loading, int line, const char *format, ...) AR_PRINTF(3, 4);

static int fail(const struct loading *loading, int line, const char *format, ...)
{
    char what[CONFIG_MESSAGE_BYTES / 2];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    if (line > 0)
        (void)snprintf(loading->message, CONFIG_MESSAGE_BYTES, "%.200s:%d: %s", loading->path, line,
                       what);
    else
        (void)snprintf(loading->message, CONFIG_MESSAGE_BYTES, "%.200s: %s", loading->path, what);
    return 1;
}

static const struct list *find_list(const char *section)
{
    for (size_t i = 0; i < AR_COUNT(lists); i++)
        if (strcmp(lists[i].section, section) == 0)
            return &lists[i];
    return NULL;
}

static const struct setting *find_setting(const char *section, const char *key)
{
    for (size_t i = 0; i < AR_COUNT(settings); i++)
        if (strcmp(settings[i].section, section) == 0 && strcmp(settings[i].key, key) == 0)
            return &settings[i];
    return NULL;
}

static bool is_section(const char *section)
{
    for (size_t i = 0; i < AR_COUNT(settings); i++)
        if (strcmp(settings[i].section, section) == 0)
            return true;
    return false;
}

/* Remembers the text of a setting that a reload does not change. */
static int note_fixed(struct config *config, const struct setting *setting, const char *text)
{
    for (size_t i = 0; i < AR_COUNT(fixed); i++) {
        if (strcmp(fixed[i].section, setting->section) != 0 ||
            strcmp(fixed[i].key, setting->key) != 0)
            continue;
        free(config->fixed[i]);
        config->fixed[i] = strdup(text);
        return config->fixed[i] ? 0 : -ENOMEM;
    }
    return 0;
}

/* Puts the defaults of a section into place. */
static int set_defaults(struct config *config, const char *section, char *base)
{
    for (size_t i = 0; i < AR_COUNT(settings); i++) {
        const struct setting *setting = &settings[i];
        if (strcmp(setting->section, section) != 0 || !setting->fallback)
            continue;
        int rc = setting->parse(setting->fallback, base + setting->offset);
        if (rc > 0)
            log_fatal("a default of the settings table does not parse");
        if (rc == 0)
            rc = note_fixed(config, setting, setting->fallback);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* The item of a named section, made with its defaults when it is new. */
static int find_item(struct config *config, const struct list *list, const char *name, char **out)
{
    char **items = (char **)((char *)config + list->items);
    size_t *count = (size_t *)((char *)config + list->count);
    for (size_t i = 0; i < *count; i++) {
        *out = *items + i * list->size;
        if (strcmp(*(char **)*out, name) == 0)
            return 0;
    }
    char *grown = reallocarray(*items, *count + 1, list->size);
    if (!grown)
        return -ENOMEM;
    *items = grown;
    *out = grown + *count * list->size;
    memset(*out, 0, list->size);
    *(char **)*out = strdup(name);
    if (!*(char **)*out)
        return -ENOMEM;
    ++*count;
    return set_defaults(config, list->section, *out);
}

static bool is_good_name(const struct list *list, const char *name)
{
    if (strcmp(list->section, "company") == 0)
        return name[0] && strlen(name) <= 200 && !text_has_control(name, strlen(name));
    return text_is_name(name);
}

/* A word of the file for a message: as it is where nothing in it could mislead whoever reads it. */
static const char *plain_word(const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    return word[0] && strlen(word) <= 32 && word[strspn(word, plain)] == 0 ? word : "of this name";
}

/* The struct that an entry's section speaks of. */
static int find_base(const struct loading *loading, const struct config_entry *entry, char *section,
                     size_t room, char **base)
{
    const char *blank = strchr(entry->section, ' ');
    size_t length = blank ? (size_t)(blank - entry->section) : strlen(entry->section);
    const char *name = blank ? blank + strspn(blank, " ") : "";
    if (length >= room)
        length = room - 1;
    memcpy(section, entry->section, length);
    section[length] = 0;
    const struct list *list = find_list(section);
    if (!is_section(section))
        return fail(loading, entry->line, "there is no section [%s]", plain_word(section));
    if (!list && blank)
        return fail(loading, entry->line, "[%s] takes no name", section);
    *base = (char *)loading->config;
    if (!list)
        return 0;
    if (!is_good_name(list, name))
        return fail(loading, entry->line, "[%s NAME] needs a name", section);
    if (*(size_t *)(*base + list->count) >= CONFIG_MAX_ITEMS)
        return fail(loading, entry->line, "too many [%s] sections", section);
    return find_item(loading->config, list, name, base);
}

static bool given_before(const struct config_entries *entries, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (strcmp(entries->items[i].section, entries->items[at].section) == 0 &&
            strcmp(entries->items[i].key, entries->items[at].key) == 0)
            return true;
    return false;
}

static int apply(const struct loading *loading, const struct config_entries *entries, size_t at)
{
    const struct config_entry *entry = &entries->items[at];
    char section[32];
    char *base = NULL;
    int rc = find_base(loading, entry, section, sizeof section, &base);
    if (rc != 0)
        return rc;
    const struct setting *setting = find_setting(section, entry->key);
    if (!setting)
        return fail(loading, entry->line, "[%s] has no key %s", section, plain_word(entry->key));
    if (given_before(entries, at))
        return fail(loading, entry->line, "%s is given twice", setting->key);
    rc = setting->parse(entry->value, base + setting->offset);
    if (rc > 0)
        return fail(loading, entry->line, "%s must be %s", setting->key, setting->form);
    return rc == 0 ? note_fixed(loading->config, setting, entry->value) : rc;
}

/* What can only be said of the file as a whole. */
static int check_whole(const struct loading *loading)
{
    const struct config *config = loading->config;
    for (size_t i = 0; i < config->executor_count; i++) {
        const struct config_executor *executor = &config->executors[i];
        if (!executor->program)
            return fail(loading, 0, "[executor %s] needs a program", executor->name);
        if (executor->enabled && access(executor->program, X_OK) != 0)
            return fail(loading, 0, "[executor %s] program %s cannot be executed: %s",
                        executor->name, executor->program, strerror(errno));
    }
    for (size_t i = 0; i < config->client_count; i++) {
        const struct config_client *client = &config->clients[i];
        if (!client->uids.count && !client->gids.count && !client->units.count)
            return fail(loading, 0, "[client %s] needs a uid, a gid or a unit", client->name);
        if (!client->companies.list.count)
            return fail(loading, 0, "[client %s] needs companies", client->name);
    }
    if (config->secrets.directory && config->secrets.credentials)
        return fail(loading, 0, "[secrets] come from a directory or from credentials, not both");
    if (config->journal_max_bytes < CONFIG_MIN_JOURNAL_BYTES)
        return fail(loading, 0, "[journal] max_size is less than 1M");
    if (config->limits.value[LIMIT_WALL_MS] > config->max_wall_ms)
        return fail(loading, 0, "[limits] wall is more than max_wall");
    if (config->limits.value[LIMIT_OUTPUT_BYTES] > config->max_output_bytes)
        return fail(loading, 0, "[limits] output is more than max_output");
    return 0;
}

static int load_entries(const struct loading *loading, const struct config_entries *entries)
{
    static const char *const plain[] = {"daemon",  "socket",    "ledger",  "journal", "limits",
                                        "network", "data-port", "secrets", "metrics"};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < AR_COUNT(plain); i++)
        rc = set_defaults(loading->config, plain[i], (char *)loading->config);
    for (size_t i = 0; i < LIMIT_COUNT; i++)
        loading->config->limits.has[i] = true;
    memcpy(loading->config->sha256, entries->sha256, sizeof loading->config->sha256);
    for (size_t i = 0; rc == 0 && i < entries->count; i++)
        rc = apply(loading, entries, i);
    return rc ? rc : check_whole(loading);
}

static void free_clients(struct config *config)
{
    for (size_t i = 0; i < config->client_count; i++) {
        struct config_client *client = &config->clients[i];
        struct text_list *owned[] = {&client->units,
                                     &client->companies.list,
                                     &client->purposes.list,
                                     &client->executors.list,
                                     &client->languages.list,
                                     &client->ceilings.hosts.list,
                                     &client->ceilings.data_api.list,
                                     &client->ceilings.secrets.list};
        for (size_t k = 0; k < AR_COUNT(owned); k++)
            text_list_free(owned[k]);
        free(client->name);
        free(client->uids.ids);
        free(client->gids.ids);
    }
    free(config->clients);
}

static void free_executors(struct config *config)
{
    for (size_t i = 0; i < config->executor_count; i++) {
        free(config->executors[i].name);
        free(config->executors[i].program);
        text_list_free(&config->executors[i].args);
    }
    free(config->executors);
}

static void free_config(struct config *config)
{
    if (!config)
        return;
    for (size_t i = 0; config->fixed && i < AR_COUNT(fixed); i++)
        free(config->fixed[i]);
    free(config->fixed);
    free_executors(config);
    free_clients(config);
    for (size_t i = 0; i < config->company_count; i++) {
        free(config->companies[i].name);
        text_list_free(&config->companies[i].read);
        text_list_free(&config->companies[i].write);
    }
    for (size_t i = 0; i < config->language_count; i++)
        free(config->languages[i].name);
    free(config->companies);
    free(config->languages);
    text_list_free(&config->network.nameservers);
    free(config->network.allowed.items);
    free(config->data_port.socket);
    free(config->secrets.directory);
    free(config->metrics.socket);
    free(config->metrics.listen);
    free(config->socket_path);
    free(config->ledger_url);
    free(config->checkpoint_key);
    free(config->journal_directory);
    free(config);
}

int config_load(const char *path, const struct config **out, char message[CONFIG_MESSAGE_BYTES])
{
    struct config_entries entries;
    int line;
    const char *what;
    struct loading loading = {.path = path, .message = message};
    int rc = config_entries_read(path, &entries, &line, &what);
    if (rc < 0)
        return rc;
    if (rc > 0 && line == 0)
        return fail(&loading, 0, "%s: %s", what, strerror(errno));
    if (rc > 0)
        return fail(&loading, line, "%s", what);
    loading.config = calloc(1, sizeof *loading.config);
    if (loading.config)
        loading.config->fixed = calloc(AR_COUNT(fixed), sizeof(char *));
    rc = loading.config && loading.config->fixed ? load_entries(&loading, &entries) : -ENOMEM;
    config_entries_free(&entries);
    if (rc != 0) {
        free_config(loading.config);
        return rc;
    }
    *out = config_hold(loading.config);
    return 0;
}

/* Only whoever holds a configuration touches this, and the rest of it never changes. */
static int64_t *holders_of(const struct config *config)
{
    return (int64_t *)(uintptr_t)&config->holders;
}

const struct config *config_hold(const struct config *config)
{
    ++*holders_of(config);
    return config;
}

void config_release(const struct config *config)
{
    if (config && --*holders_of(config) == 0)
        free_config((struct config *)(uintptr_t)config);
}

bool config_names_allow(const struct config_names *names, const char *name)
{
    return names->all || text_list_has(&names->list, name);
}

const struct config_client *config_client(const struct config *config, const char *name)
{
    for (size_t i = 0; i < config->client_count; i++)
        if (strcmp(config->clients[i].name, name) == 0)
            return &config->clients[i];
    return NULL;
}

const struct config_company *config_company(const struct config *config, const char *name)
{
    for (size_t i = 0; i < config->company_count; i++)
        if (strcmp(config->companies[i].name, name) == 0)
            return &config->companies[i];
    return NULL;
}

bool config_language_enabled(const struct config *config, const char *name)
{
    for (size_t i = 0; i < config->language_count; i++)
        if (strcmp(config->languages[i].name, name) == 0)
            return config->languages[i].enabled;
    return true;
}

bool config_next_fixed(const struct config *one, const struct config *other, size_t *i,
                       const char **section, const char **key)
{
    for (; *i < AR_COUNT(fixed); ++*i) {
        const char *here = one->fixed[*i] ? one->fixed[*i] : "";
        if (strcmp(here, other->fixed[*i] ? other->fixed[*i] : "") == 0)
            continue;
        *section = fixed[*i].section;
        *key = fixed[*i].key;
        ++*i;
        return true;
    }
    return false;
}

bool config_setting(size_t i, const char **section, const char **key)
{
    if (i >= AR_COUNT(settings))
        return false;
    *section = settings[i].section;
    *key = settings[i].key;
    return true;
}
