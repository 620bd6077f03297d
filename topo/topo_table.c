/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "topo/topo_impl.h"

enum { WHERE = 320 };

/* --- texts from outside --- */

int topo_text_check(const char *text, size_t max, const char *where, struct err *err)
{
    size_t len = text ? strlen(text) : 0;

    if (!text)
        return err_data(err, "%s: no text", where);
    if (!len || len > max)
        return err_data(err, "%s: a text of %zu characters where 1..%zu are possible", where, len,
                        max);
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        if (*c < 0x20 || *c == 0x7f || (*c == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0)) /* C0, C1 */
            return err_data(err, "%s: a control character (0x%02x) at position %td", where, *c,
                            (const char *)c - text);
    json_t *utf8 = json_string(text); /* what cannot be saved is not taken */
    json_decref(utf8);
    return utf8 ? 0 : err_data(err, "%s: a text that is not UTF-8", where);
}

int topo_host_name_check(const char *host, const char *where, struct err *err)
{
    if (topo_text_check(host, 255, where, err) < 0)
        return -1;
    if (strpbrk(host, "[],"))
        return err_data(err, "%s: host \"%.100s\" has a bracket or a comma in its name", where,
                        host);
    if (*host == '-')
        return err_data(err, "%s: host \"%.100s\" begins with a dash, as options do", where, host);
    return 0;
}

/* --- tables --- */
int topo_table_open(struct topo_table *b, const char *path, const char *name, json_t *from,
                    const char *const *columns, int count, struct err *err)
{
    char where[WHERE];
    json_t *names;

    snprintf(where, sizeof(where), "%s: %s", path, name);
    *b = (struct topo_table){.path = path, .name = name, .columns = columns, .err = err};
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

int topo_table_next(struct topo_table *b, int columns, int *rc)
{
    if (*rc < 0 || b->at >= json_array_size(b->rows))
        return 0;
    b->row = json_array_get(b->rows, b->at++);
    if (json_array_size(b->row) != (size_t)columns)
        *rc = err_data(b->err, "%s: %s.rows[%zu]: %zu cells where %d are needed", b->path, b->name,
                       b->at - 1, json_array_size(b->row), columns);
    return *rc == 0;
}

int cell_bad(const struct topo_table *b, int col, const char *what)
{
    char *text = json_dumps(json_array_get(b->row, (size_t)col), JSON_ENCODE_ANY | JSON_COMPACT);

    err_data(b->err, "%s: %s.rows[%zu]: %s is %.60s, %s", b->path, b->name, b->at - 1,
             b->columns[col], text ? text : "(none)", what);
    free(text);
    return -1;
}

int cell_index(const struct topo_table *b, int col, int max, bool null, int *out)
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

int cell_number(const struct topo_table *b, int col, double max, double *out)
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

int cell_flag(const struct topo_table *b, int col, bool *out)
{
    const json_t *v = json_array_get(b->row, (size_t)col);

    *out = json_is_true(v);
    return json_is_boolean(v) ? 0 : cell_bad(b, col, "not true or false");
}

int cell_maybe(const struct topo_table *b, int col, int *out)
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

int cell_text(const struct topo_table *b, int col, size_t max, bool null, const char **out)
{
    const json_t *v = json_array_get(b->row, (size_t)col);

    *out = json_string_value(v);
    if (json_is_null(v) && null)
        return 0;
    return *out && topo_text_check(*out, max, "", NULL) == 0
               ? 0
               : cell_bad(b, col, "not a text of fitting length without control characters");
}

int cell_copy(const struct topo_table *b, int col, bool null, char *to, size_t size)
{
    const char *text;

    if (cell_text(b, col, size - 1, null, &text) < 0)
        return -1;
    snprintf(to, size, "%s", text ? text : "");
    return 0;
}

int cell_name(const struct topo_table *b, int col, const char *const *names, int count, int *out)
{
    const char *text = json_string_value(json_array_get(b->row, (size_t)col));

    for (*out = 0; *out < count; ++*out)
        if (text && !strcmp(text, names[*out]))
            return 0;
    return cell_bad(b, col, "not a known word");
}
