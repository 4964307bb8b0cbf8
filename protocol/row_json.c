/*
 * row_json.c - rows as JSON objects and back (declared in row.h).
 */
#include "protocol/row.h"

#include <stdio.h>
#include <string.h>

/* ---- out ---------------------------------------------------------------------------------------- */

static json_t *column_json(const struct row_layout *layout, const void *row, size_t column)
{
    char scratch[ROW_SCRATCH_BYTES];
    struct row_value value = row_value(layout, row, column);
    if (value.is_null)
        return json_null();
    switch (layout->columns[column].form) {
    case ROW_INTEGER:
        return json_integer(value.integer);
    case ROW_BOOL:
        return json_boolean(value.integer);
    case ROW_OBJECT:
    case ROW_ARRAY:
        return json_loads(value.text, JSON_ALLOW_NUL, NULL);
    default:
        return json_string(row_text(layout, row, column, scratch));
    }
}

json_t *row_to_json(const struct row_layout *layout, const void *row)
{
    AR_AUTO_JSON json_t *object = json_object();
    for (size_t i = 0; i < layout->count; i++)
        if (json_object_set_new(object, layout->columns[i].name, column_json(layout, row, i)))
            return NULL;
    return AR_TAKE(object);
}

/* ---- in ----------------------------------------------------------------------------------------- */

static bool is_of_form(const json_t *value, enum row_form form)
{
    switch (form) {
    case ROW_INTEGER:
        return json_is_integer(value);
    case ROW_BOOL:
        return json_is_boolean(value);
    case ROW_OBJECT:
    case ROW_ARRAY:
        return json_is_object(value) || json_is_array(value);
    default:
        return json_is_string(value);
    }
}

/* The canonical text of a value that is of the column's form; NULL and *problem otherwise. */
static char *canonical_text(const json_t *value, enum row_form form, enum problem *problem)
{
    char scratch[ROW_SCRATCH_BYTES];
    *problem = PROBLEM_NONE;
    if (!is_of_form(value, form)) {
        *problem = PROBLEM_WRONG_TYPE;
        return NULL;
    }
    switch (form) {
    case ROW_OBJECT:
    case ROW_ARRAY:
        return json_canonical(value);
    case ROW_BOOL:
        return strdup(json_is_true(value) ? "true" : "false");
    case ROW_INTEGER:
        (void)snprintf(scratch, sizeof(scratch), "%lld", (long long)json_integer_value(value));
        return strdup(scratch);
    default:
        break;
    }
    if (strlen(json_string_value(value)) != json_string_length(value)) {
        *problem = PROBLEM_CONTROL_CHARACTER;
        return NULL;
    }
    return strdup(json_string_value(value));
}

static int read_column(const struct row_layout *layout, void *row, size_t column,
                       const json_t *object, struct fault *fault)
{
    const char *name = layout->columns[column].name;
    const json_t *value = json_object_get(object, name);
    AR_AUTO_FREE char *text = NULL;
    if (!value)
        return json_fault(fault, NULL, name, PROBLEM_MISSING);
    if (!json_is_null(value)) {
        enum problem problem;
        text = canonical_text(value, layout->columns[column].form, &problem);
        if (!text)
            return problem == PROBLEM_NONE ? -ENOMEM : json_fault(fault, NULL, name, problem);
    }
    int error = row_set(layout, row, column, text);
    if (error <= 0)
        return error;
    return json_fault(fault, NULL, name, text ? PROBLEM_MALFORMED : PROBLEM_WRONG_TYPE);
}

/* Every member is a column, or one of those that may be there beside them. */
static int check_members(const struct row_layout *layout, const json_t *value,
                         const struct json_member *more, size_t more_count, struct fault *fault)
{
    struct json_member members[2 * ROW_MAX_COLUMNS];
    size_t count = 0;
    for (; count < layout->count; count++)
        members[count] = (struct json_member){layout->columns[count].name, true};
    for (size_t i = 0; i < more_count && count < AR_COUNT(members); i++)
        members[count++] = more[i];
    return json_check_object(value, members, count, NULL, fault);
}

int row_from_json(const struct row_layout *layout, const json_t *value,
                  const struct json_member *more, size_t more_count, void *row, struct fault *fault)
{
    if (check_members(layout, value, more, more_count, fault))
        return 1;
    for (size_t i = 0; i < layout->count; i++) {
        int error = read_column(layout, row, i, value, fault);
        if (error)
            return error;
    }
    return 0;
}
