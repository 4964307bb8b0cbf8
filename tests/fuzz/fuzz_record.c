/*
 * fuzz_record.c - a record as it is read from a journal or an import. One that is taken has the same
 * canonical bytes after each way out and back in, and none of its values holds a newline.
 */
#include "protocol/record.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void require_same(const struct record *a, const struct record *b)
{
    size_t length_a = 0, length_b = 0;
    char *text_a = row_canonical(&record_layout, a, &length_a);
    char *text_b = row_canonical(&record_layout, b, &length_b);
    require(text_a && text_b && length_a == length_b && memcmp(text_a, text_b, length_a) == 0);
    free(text_a);
    free(text_b);
}

static void check_columns(const struct record *record)
{
    struct record *copy = record_new();
    require(copy != NULL);
    for (size_t i = 0; i < record_layout.count; i++) {
        char *text = NULL;
        require(row_get(&record_layout, record, i, &text) == 0);
        require(!text || !strchr(text, '\n'));
        require(row_set(&record_layout, copy, i, text) == 0);
        free(text);
    }
    require_same(record, copy);
    record_free(copy);
}

static void check_record(const struct record *record)
{
    struct record *copy = NULL;
    struct fault fault = {0};
    json_t *value = record_to_journal_json(record);
    require(value && record_from_json(value, true, &copy, &fault) == 0);
    require_same(record, copy);
    require(record_check(record) >= 0);
    check_columns(record);
    record_free(copy);
    json_decref(value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct json_document document;
    struct record *record = NULL;
    struct fault fault = {0};
    int outcome = json_parse((const char *)data, size, &document);
    require(outcome >= 0);
    if (outcome == JSON_BROKEN)
        return 0;
    if (outcome == JSON_OK && record_from_json(document.root, true, &record, &fault) == 0)
        check_record(record);
    record_free(record);
    json_document_free(&document);
    return 0;
}
