/*
 * check_exposition.c - the text that Prometheus reads: both formats, bounds, and labels that are escaped;
 * and docs/metrics.md against the table of metrics.
 */
#include "daemon/exposition.h"
#include "daemon/metrics_table.h"
#include "tests/suite.h"
#include "tests/unit/unit.h"

#include <event2/buffer.h>

static struct exposition begin(bool open_metrics)
{
    struct exposition exposition = {.out = evbuffer_new(), .open_metrics = open_metrics};
    ck_assert_ptr_nonnull(exposition.out);
    return exposition;
}

static void expect(struct exposition *exposition, const char *wanted)
{
    ck_assert_int_eq(exposition_end(exposition), 0);
    ck_assert_int_eq(evbuffer_add(exposition->out, "", 1), 0);
    ck_assert_str_eq((const char *)evbuffer_pullup(exposition->out, -1), wanted);
    evbuffer_free(exposition->out);
}

static void write_some(struct exposition *exposition)
{
    const struct exposition_label labels[] = {{"a", "x"}, {"b", "y\"\\\nz"}};
    exposition_family(exposition, "runs", EXPOSITION_COUNTER, "Runs.");
    exposition_number(exposition, labels, 2, 7);
    exposition_family(exposition, "build", EXPOSITION_INFO, "Build.");
    exposition_number(exposition, labels, 1, 1);
    exposition_family(exposition, "age_seconds", EXPOSITION_GAUGE, "Age.");
    exposition_time(exposition, NULL, 0, 1250000);
    exposition_time(exposition, NULL, 0, -1);
}

START_TEST(test_text_of_prometheus)
{
    struct exposition exposition = begin(false);
    write_some(&exposition);
    expect(&exposition, "# HELP runs_total Runs.\n# TYPE runs_total counter\n"
                        "runs_total{a=\"x\",b=\"y\\\"\\\\\\nz\"} 7\n"
                        "# HELP build_info Build.\n# TYPE build_info gauge\n"
                        "build_info{a=\"x\"} 1\n"
                        "# HELP age_seconds Age.\n# TYPE age_seconds gauge\n"
                        "age_seconds 1.25\nage_seconds 0.0\n");
}
END_TEST

START_TEST(test_open_metrics)
{
    struct exposition exposition = begin(true);
    write_some(&exposition);
    expect(&exposition, "# HELP runs Runs.\n# TYPE runs counter\n"
                        "runs_total{a=\"x\",b=\"y\\\"\\\\\\nz\"} 7\n"
                        "# HELP build Build.\n# TYPE build info\n"
                        "build_info{a=\"x\"} 1\n"
                        "# HELP age_seconds Age.\n# TYPE age_seconds gauge\n"
                        "age_seconds 1.25\nage_seconds 0.0\n# EOF\n");
}
END_TEST

static const struct histogram_scale scale = {.count = 3, .bounds = {500, 1000000, 60000000}};

START_TEST(test_histogram_of_times)
{
    struct exposition exposition = begin(false);
    struct histogram histogram = {.scale = &scale};
    const struct exposition_label labels[] = {{"stage", "queue"}};
    static const int64_t added[] = {-5, 500, 501, 1000000, 60000001};
    for (size_t i = 0; i < AR_COUNT(added); i++)
        histogram_add(&histogram, added[i]);
    ck_assert_int_eq(histogram_count(&histogram), 5);
    exposition_family(&exposition, "t_seconds", EXPOSITION_HISTOGRAM, "Times.");
    exposition_histogram(&exposition, labels, 1, &histogram, true);
    expect(&exposition, "# HELP t_seconds Times.\n# TYPE t_seconds histogram\n"
                        "t_seconds_bucket{stage=\"queue\",le=\"0.0005\"} 2\n"
                        "t_seconds_bucket{stage=\"queue\",le=\"1.0\"} 4\n"
                        "t_seconds_bucket{stage=\"queue\",le=\"60.0\"} 4\n"
                        "t_seconds_bucket{stage=\"queue\",le=\"+Inf\"} 5\n"
                        "t_seconds_sum{stage=\"queue\"} 61.001002\n"
                        "t_seconds_count{stage=\"queue\"} 5\n");
}
END_TEST

START_TEST(test_histogram_of_numbers)
{
    struct exposition exposition = begin(true);
    struct histogram histogram = {.scale = &scale};
    histogram_add(&histogram, 500);
    exposition_family(&exposition, "rows", EXPOSITION_HISTOGRAM, "Rows.");
    exposition_histogram(&exposition, NULL, 0, &histogram, false);
    expect(&exposition, "# HELP rows Rows.\n# TYPE rows histogram\n"
                        "rows_bucket{le=\"500.0\"} 1\nrows_bucket{le=\"1000000.0\"} 1\n"
                        "rows_bucket{le=\"60000000.0\"} 1\nrows_bucket{le=\"+Inf\"} 1\n"
                        "rows_sum 500\nrows_count 1\n# EOF\n");
}
END_TEST

START_TEST(test_scales_rise)
{
    const struct histogram_scale *const all[] = {&histogram_stages, &histogram_latency,
                                                 &histogram_rows};
    for (size_t i = 0; i < AR_COUNT(all); i++) {
        ck_assert_uint_le(all[i]->count, HISTOGRAM_MAX_BOUNDS);
        for (size_t at = 1; at < all[i]->count; at++)
            ck_assert_int_gt(all[i]->bounds[at], all[i]->bounds[at - 1]);
    }
}
END_TEST

static char *read_document(void)
{
    const char *source = getenv("AUDITRUN_SOURCE");
    char path[4096];
    (void)snprintf(path, sizeof(path), "%s/docs/metrics.md", source ? source : ".");
    FILE *file = fopen(path, "re");
    ck_assert_msg(file != NULL, "%s", path);
    char *text = calloc(1, 1 << 17);
    ck_assert_ptr_nonnull(text);
    ck_assert_uint_gt(fread(text, 1, (1 << 17) - 1, file), 0);
    (void)fclose(file);
    return text;
}

/* One row for each metric, in the order of the code, and none besides. */
START_TEST(test_document_has_the_metrics)
{
    static const char *const types[] = {[EXPOSITION_COUNTER] = "counter",
                                        [EXPOSITION_GAUGE] = "gauge",
                                        [EXPOSITION_INFO] = "info",
                                        [EXPOSITION_HISTOGRAM] = "histogram"};
    AR_AUTO_FREE char *text = read_document();
    const char *rest = strstr(text, "\n## All metrics\n");
    enum exposition_type type;
    char *name;
    ck_assert_ptr_nonnull(rest);
    rest = strstr(rest, "|---|---|---|---|\n");
    ck_assert_ptr_nonnull(rest);
    for (size_t i = 0; (name = metrics_table_name(i, &type)); i++, free(name)) {
        char row[128];
        rest = strchr(rest, '\n') + 1;
        (void)snprintf(row, sizeof(row), "| `%s` | %s | ", name, types[type]);
        ck_assert_msg(strncmp(rest, row, strlen(row)) == 0, "%s, and not %.60s", row, rest);
    }
    rest = strchr(rest, '\n') + 1;
    ck_assert_msg(*rest == '\n', "no such metric: %.60s", rest);
}
END_TEST

static const TTest **const text[] = {&test_text_of_prometheus, &test_open_metrics,
                                     &test_histogram_of_times, &test_histogram_of_numbers,
                                     &test_scales_rise,        NULL};
static const TTest **const document[] = {&test_document_has_the_metrics, NULL};

int main(void)
{
    static const struct unit_case cases[] = {{"text", text}, {"document", document}};
    return unit_main("exposition", cases, AR_COUNT(cases));
}
