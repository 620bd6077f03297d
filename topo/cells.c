/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "topo/topo_file.h"

enum { WHERE = 320 };

int table_open(struct table *b, const char *path, const char *name, json_t *from,
               const char *const *columns, int count, struct err *err)
{
    char where[WHERE];
    json_t *names;

    snprintf(where, sizeof(where), "%s: %s", path, name);
    *b = (struct table){.path = path, .name = name, .columns = columns, .err = err};
    if (json_take(from, where, err, "{s:o, s:o}", "columns", &names, "rows", &b->rows) < 0)
        return -1;
    for (int i = 0; i < count; i++) {
        const char *is = json_string_value(json_array_get(names, (size_t)i));
        if (!is || strcmp(is, columns[i]) != 0)
            return err_data(err, "%s: columns[%d] is \"%s\" where \"%s\" is needed", where, i,
                            is ? is : "", columns[i]);
    }
    if (json_array_size(names) != (size_t)count)
        return err_data(err, "%s: %zu columns where %d are needed", where, json_array_size(names),
                        count);
    if (!json_is_array(b->rows) || json_array_size(b->rows) > TABLE_ROWS_MAX)
        return err_data(err, "%s: rows is %s", where,
                        json_is_array(b->rows) ? "longer than 1048576" : "not a list");
    return 0;
}

int table_next(struct table *b, int columns, int *rc)
{
    if (*rc < 0 || b->at >= json_array_size(b->rows))
        return 0;
    b->row = json_array_get(b->rows, b->at++);
    if (json_array_size(b->row) != (size_t)columns)
        *rc = err_data(b->err, "%s: %s.rows[%zu]: %zu cells where %d are needed", b->path, b->name,
                       b->at - 1, json_array_size(b->row), columns);
    return *rc == 0;
}

int cell_bad(const struct table *b, int col, const char *what)
{
    char *text = json_dumps(json_array_get(b->row, (size_t)col), JSON_ENCODE_ANY | JSON_COMPACT);

    err_data(b->err, "%s: %s.rows[%zu]: %s is %.60s, %s", b->path, b->name, b->at - 1,
             b->columns[col], text ? text : "(none)", what);
    free(text);
    return -1;
}

int cell_index(const struct table *b, int col, int max, bool null, int *out)
{
    const json_t *v = json_array_get(b->row, (size_t)col);
    char what[64];

    *out = -1;
    if (json_is_null(v) && null)
        return 0;
    if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) >= max) {
        snprintf(what, sizeof(what), "not a whole number of 0..%d%s", max - 1,
                 null ? " or null" : "");
        return cell_bad(b, col, max > 0 ? what : "but there are none");
    }
    *out = (int)json_integer_value(v);
    return 0;
}

int cell_number(const struct table *b, int col, double max, double *out)
{
    const json_t *v = json_array_get(b->row, (size_t)col);
    double x = json_number_value(v);

    *out = 0;
    if (json_is_null(v))
        return 0;
    if (!json_is_number(v) || !(x > 0 && x <= max))
        return cell_bad(b, col, "not a positive number in range or null");
    *out = x;
    return 0;
}

int cell_flag(const struct table *b, int col, bool *out)
{
    const json_t *v = json_array_get(b->row, (size_t)col);

    *out = json_is_true(v);
    return json_is_boolean(v) ? 0 : cell_bad(b, col, "not true or false");
}

int cell_maybe(const struct table *b, int col, int *out)
{
    bool on = false;

    *out = -1;
    if (json_is_null(json_array_get(b->row, (size_t)col)))
        return 0;
    if (cell_flag(b, col, &on) < 0)
        return -1;
    *out = on;
    return 0;
}

int cell_text(const struct table *b, int col, size_t max, bool null, const char **out)
{
    const json_t *v = json_array_get(b->row, (size_t)col);

    *out = json_string_value(v);
    if (json_is_null(v) && null)
        return 0;
    return *out && topo_text_check(*out, max, "", NULL) == 0
               ? 0
               : cell_bad(b, col, "not a text of fitting length without control characters");
}

int cell_copy(const struct table *b, int col, bool null, char *to, size_t size)
{
    const char *text;

    if (cell_text(b, col, size - 1, null, &text) < 0)
        return -1;
    snprintf(to, size, "%s", text ? text : "");
    return 0;
}

int cell_name(const struct table *b, int col, const char *const *names, int count, int *out)
{
    const char *text = json_string_value(json_array_get(b->row, (size_t)col));

    for (*out = 0; *out < count; ++*out)
        if (text && !strcmp(text, names[*out]))
            return 0;
    return cell_bad(b, col, "not a known word");
}
