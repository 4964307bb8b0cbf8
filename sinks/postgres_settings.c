/*
 * postgres_settings.c - see postgres_settings.h.
 *
 * There are two views of the string: what it says itself (given), which is handed on to libpq, and
 * what is in force (effective), from which the hosts are taken. libpq tells the second only of a
 * connection; it is given a word that it refuses before it does anything.
 */
#include "sinks/postgres_settings.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define DEFAULT_LIMIT_S   3
#define LONGEST_LIMIT_S   600
#define MOST_HOSTS        64
#define MOST_KEYWORDS     96
#define PASSFILE_BYTES    65536
#define FD_PATH_BYTES     32
#define CREDENTIAL_FOLDER "CREDENTIALS_DIRECTORY"

struct postgres_settings {
    char *conninfo;
    PQconninfoOption *given;                 /* NULL: not understood */
    char *host_list, *addr_list, *port_list; /* cut into the hosts */
    struct postgres_host *hosts;
    size_t host_count;
    int limit_ms;
    const char *attributes; /* what the session must be able to do */
    char *passfile;         /* of the service manager; NULL when libpq finds its own */
};

/* ---- the string ----------------------------------------------------------------------------- */

static const char *value_of(const PQconninfoOption *options, const char *keyword)
{
    for (; options && options->keyword; options++)
        if (strcmp(options->keyword, keyword) == 0)
            return options->val ? options->val : "";
    return "";
}

/* A connection that has failed before it began, because of a word that libpq does not know. */
static PGconn *start_nothing(const char *conninfo)
{
    const char *const names[] = {"dbname", "channel_binding", NULL};
    const char *const values[] = {conninfo, "none that there is", NULL};
    return PQconnectStartParams(names, values, 1);
}

/* NULL when memory is short. */
static PQconninfoOption *read_effective(const char *conninfo)
{
    PGconn *pg = start_nothing(conninfo);
    PQconninfoOption *options = PQconninfo(pg);
    PQfinish(pg);
    return options;
}

static size_t count_items(const char *list)
{
    size_t count = 1;
    for (; *list; list++)
        count += *list == ',';
    return count;
}

/* The next item of a list; the last one again and again when there is just one. */
static const char *take_item(char **list, bool single)
{
    if (single)
        return *list;
    const char *item = strsep(list, ",");
    return item ? item : "";
}

static int cut_lists(struct postgres_settings *settings, size_t count)
{
    char *host = settings->host_list, *addr = settings->addr_list, *port = settings->port_list;
    bool one_port = !strchr(port, ',');
    settings->hosts = calloc(count, sizeof(*settings->hosts));
    if (!settings->hosts)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        settings->hosts[i].host = take_item(&host, false);
        settings->hosts[i].hostaddr = take_item(&addr, false);
        settings->hosts[i].port = take_item(&port, one_port);
    }
    settings->host_count = count;
    return 0;
}

/* With lists that do not match there is nothing to connect to. */
static bool lists_match(const char *hosts, const char *addrs, const char *ports, size_t count)
{
    return count <= MOST_HOSTS && (!hosts[0] || count_items(hosts) == count) &&
           (!addrs[0] || count_items(addrs) == count) &&
           (count_items(ports) == 1 || count_items(ports) == count);
}

static int read_hosts(struct postgres_settings *settings, const PQconninfoOption *effective)
{
    const char *hosts = value_of(effective, "host");
    const char *addrs = value_of(effective, "hostaddr");
    const char *ports = value_of(effective, "port");
    size_t count = count_items(addrs[0] ? addrs : hosts);
    if (!lists_match(hosts, addrs, ports, count)) {
        PQconninfoFree(AR_TAKE(settings->given));
        hosts = addrs = ports = "";
        count = 1;
    }
    settings->host_list = strdup(hosts);
    settings->addr_list = strdup(addrs);
    settings->port_list = strdup(ports);
    if (!settings->host_list || !settings->addr_list || !settings->port_list)
        return -ENOMEM;
    return cut_lists(settings, count);
}

static int read_limit(const PQconninfoOption *effective)
{
    long seconds = strtol(value_of(effective, "connect_timeout"), NULL, 10);
    if (seconds <= 0)
        seconds = DEFAULT_LIMIT_S;
    return (int)(seconds > LONGEST_LIMIT_S ? LONGEST_LIMIT_S : seconds) * 1000;
}

/* The rows must be written: any other wish than these two would only find a server for nothing. */
static const char *read_attributes(const PQconninfoOption *effective)
{
    return strcmp(value_of(effective, "target_session_attrs"), "primary") == 0 ? "primary"
                                                                               : "read-write";
}

static bool is_credential(const char *path)
{
    const char *folder = getenv(CREDENTIAL_FOLDER);
    size_t length = folder ? strlen(folder) : 0;
    return length > 0 && strncmp(path, folder, length) == 0 && path[length] == '/';
}

static int read_effects(struct postgres_settings *settings, const PQconninfoOption *effective)
{
    const char *passfile = value_of(effective, "passfile");
    settings->limit_ms = read_limit(effective);
    settings->attributes = read_attributes(effective);
    if (is_credential(passfile)) {
        settings->passfile = strdup(passfile);
        if (!settings->passfile)
            return -ENOMEM;
    }
    return read_hosts(settings, effective);
}

int postgres_settings_new(const char *conninfo, struct postgres_settings **out)
{
    struct postgres_settings *settings = calloc(1, sizeof(*settings));
    if (!settings)
        return -ENOMEM;
    settings->conninfo = strdup(conninfo);
    settings->given = PQconninfoParse(conninfo, NULL);
    PQconninfoOption *effective = read_effective(conninfo);
    int rc = settings->conninfo ? read_effects(settings, effective) : -ENOMEM;
    PQconninfoFree(effective);
    if (rc == 0)
        *out = settings;
    else
        postgres_settings_free(settings);
    return rc;
}

void postgres_settings_free(struct postgres_settings *settings)
{
    if (!settings)
        return;
    PQconninfoFree(settings->given);
    free(settings->conninfo);
    free(settings->host_list);
    free(settings->addr_list);
    free(settings->port_list);
    free(settings->hosts);
    free(settings->passfile);
    free(settings);
}

/* ---- questions ------------------------------------------------------------------------------ */

size_t postgres_settings_hosts(const struct postgres_settings *settings)
{
    return settings->host_count;
}

const struct postgres_host *postgres_settings_host(const struct postgres_settings *settings,
                                                   size_t index)
{
    return &settings->hosts[index];
}

static bool is_address(const char *host)
{
    struct in6_addr any;
    return inet_pton(AF_INET, host, &any) == 1 || inet_pton(AF_INET6, host, &any) == 1;
}

const char *postgres_settings_name(const struct postgres_settings *settings, size_t index)
{
    const struct postgres_host *host = &settings->hosts[index];
    if (host->hostaddr[0] || !host->host[0] || host->host[0] == '/' || host->host[0] == '@' ||
        is_address(host->host))
        return NULL;
    return host->host;
}

int postgres_settings_limit_ms(const struct postgres_settings *settings)
{
    return settings->limit_ms;
}

/* ---- a password of the service manager ------------------------------------------------------ */

/* libpq refuses a password file that the mode of its group lets read. That is how the mode of a
 * credential looks which an access list opens to the service alone; its folder is what protects it.
 * So libpq gets a copy in memory with the mode that it wants. -1 when that is not possible. */
static int copy_credential(const char *path)
{
    char text[PASSFILE_BYTES];
    AR_AUTO_CLOSE int from = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    AR_AUTO_CLOSE int to = memfd_create("passfile", MFD_CLOEXEC);
    struct stat info;
    if (from < 0 || to < 0 || fstat(from, &info) < 0 || !S_ISREG(info.st_mode) ||
        fchmod(to, S_IRUSR | S_IWUSR) < 0)
        return -1;
    ssize_t length = read(from, text, sizeof(text));
    bool copied =
        length > 0 && length < PASSFILE_BYTES && write(to, text, (size_t)length) == length;
    explicit_bzero(text, sizeof(text));
    return copied ? base_take_fd(&to) : -1;
}

/* ---- connecting ----------------------------------------------------------------------------- */

struct parameters {
    const char *names[MOST_KEYWORDS + 1], *values[MOST_KEYWORDS + 1];
    size_t count;
};

/* A later value of a keyword takes the place of an earlier one. An empty one is as good as none. */
static void add(struct parameters *parameters, const char *name, const char *value)
{
    if (!value || !value[0] || parameters->count == MOST_KEYWORDS)
        return;
    parameters->names[parameters->count] = name;
    parameters->values[parameters->count] = value;
    parameters->count++;
}

static bool is_of_host(const char *keyword)
{
    return strcmp(keyword, "host") == 0 || strcmp(keyword, "hostaddr") == 0 ||
           strcmp(keyword, "port") == 0;
}

static void add_given(struct parameters *parameters, const PQconninfoOption *given)
{
    for (; given->keyword; given++)
        if (!is_of_host(given->keyword))
            add(parameters, given->keyword, given->val);
}

PGconn *postgres_settings_start(const struct postgres_settings *settings, size_t index,
                                const char *address)
{
    struct parameters all = {.count = 0};
    const struct postgres_host *host = &settings->hosts[index];
    char path[FD_PATH_BYTES];
    if (!settings->given)
        return start_nothing(settings->conninfo);
    AR_AUTO_CLOSE int passfile = settings->passfile ? copy_credential(settings->passfile) : -1;
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", passfile);
    /* What the string can say otherwise. Kerberos would ask its servers and wait for them. */
    add(&all, "fallback_application_name", "auditrund");
    add(&all, "gssencmode", "disable");
    add(&all, "keepalives_idle", "30");
    add(&all, "tcp_user_timeout", "30000");
    add_given(&all, settings->given);
    /* What it can not. */
    add(&all, "client_encoding", "UTF8");
    add(&all, "target_session_attrs", settings->attributes);
    add(&all, "host", host->host);
    add(&all, "hostaddr", address ? address : host->hostaddr);
    add(&all, "port", host->port);
    add(&all, "passfile", passfile >= 0 ? path : NULL);
    return PQconnectStartParams(all.names, all.values, 0);
}
