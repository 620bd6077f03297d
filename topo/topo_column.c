/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/topo_column.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/topo_impl.h"

/* A member whose type the column knows. */
union value {
    int whole;
    long long more;
    bool flag;
    double number;
    uint64_t hex;
};

static size_t size_of(enum topo_cell cell)
{
    switch (cell) {
    case CELL_BYTES:
    case CELL_LONG_OR_NULL:
        return sizeof(long long);
    case CELL_FLAG:
        return sizeof(bool);
    case CELL_NUMBER:
        return sizeof(double);
    case CELL_HEX:
    case CELL_GUID:
        return sizeof(uint64_t);
    case CELL_TEXT:
    case CELL_OTHER:
        return 0;
    default:
        return sizeof(int);
    }
}

static json_t *cell_json(const struct topo_column *c, const char *at)
{
    union value v = {.more = 0};
    json_t *j = NULL; /* null */

    memcpy(&v, at, size_of(c->cell));
    switch (c->cell) {
    case CELL_PARENT:
    case CELL_PARENT_OR_NULL:
    case CELL_INDEX:
    case CELL_INDEX_OR_NULL:
        j = v.whole >= 0 ? json_integer(v.whole) : NULL;
        break;
    case CELL_COUNT:
        j = v.whole > 0 ? json_integer(v.whole) : NULL;
        break;
    case CELL_BYTES:
    case CELL_LONG_OR_NULL:
        j = v.more >= 0 ? json_integer(v.more) : NULL;
        break;
    case CELL_FLAG:
        j = json_boolean(v.flag);
        break;
    case CELL_MAYBE:
        j = v.whole >= 0 ? json_boolean(v.whole) : NULL;
        break;
    case CELL_NUMBER:
        j = v.number > 0 ? json_real(v.number) : NULL;
        break;
    case CELL_WORD:
    case CELL_WORD_OR_NULL:
        j = v.whole >= 0 ? json_string(c->words[v.whole]) : NULL;
        break;
    case CELL_TEXT:
        j = *at ? json_string(at) : NULL;
        break;
    case CELL_GUID:
        j = v.hex ? json_sprintf("0x%016" PRIx64, v.hex) : NULL;
        break;
    case CELL_HEX:
        j = json_sprintf("0x%" PRIx64, v.hex);
        break;
    case CELL_OTHER:
        break;
    }
    return j ? j : json_null();
}

json_t *topo_row(const struct topo_column *c, int columns, const void *object)
{
    json_t *row = json_array();

    for (int i = 0; i < columns; i++)
        json_array_append_new(row, cell_json(&c[i], (const char *)object + c[i].at));
    return row;
}

void topo_column_names(const char **name, const struct topo_column *c, int columns)
{
    for (int i = 0; i < columns; i++)
        name[i] = c[i].name;
}

int topo_columns_open(struct topo_table *b, const char *path, const char *name, json_t *from,
                      const struct topo_column *c, int columns, struct err *err)
{
    const char *names[TOPO_COLUMNS_MAX] = {NULL};

    topo_column_names(names, c, columns);
    int rc = topo_table_open(b, path, name, from, names, columns, err);
    topo_column_names(b->name_of, c, columns);
    b->columns = b->name_of;
    return rc;
}

json_t *topo_table_json(const struct topo_column *c, int columns, json_t **rows)
{
    json_t *names = json_array();

    *rows = json_array();
    for (int i = 0; i < columns; i++)
        json_array_append_new(names, json_string(c[i].name));
    return json_pack("{s:o, s:o}", "columns", names, "rows", *rows);
}

/* --- in --- */

static int cell_hex(const struct topo_table *b, int col, uint64_t *out)
{
    const char *text;
    char *end;

    if (cell_text(b, col, 18, false, &text) < 0)
        return -1;
    errno = 0;
    *out = strtoull(text, &end, 16);
    return errno || *end || text[0] != '0' || text[1] != 'x'
               ? cell_bad(b, col, "not a number like 0x1f")
               : 0;
}

enum { GUID_TEXT = 18 };

static int cell_guid(const struct topo_table *b, int col, uint64_t *out)
{
    const char *text;

    *out = 0;
    if (cell_text(b, col, GUID_TEXT, true, &text) < 0)
        return -1;
    if (!text)
        return 0;
    if (strlen(text) != GUID_TEXT || strncmp(text, "0x", 2) != 0 ||
        strspn(text + 2, "0123456789abcdef") != GUID_TEXT - 2)
        return cell_bad(b, col, "not a GUID of 16 hexadecimal digits behind 0x");
    *out = strtoull(text, NULL, 16);
    return *out ? 0 : cell_bad(b, col, "which no GUID is");
}

static int cell_long(const struct topo_table *b, int col, bool null, long long *out)
{
    const json_t *v = json_array_get(b->row, (size_t)col);

    *out = null && json_is_null(v) ? -1 : json_integer_value(v);
    if ((null && json_is_null(v)) || (json_is_integer(v) && *out >= 0))
        return 0;
    return cell_bad(b, col, null ? "not a whole number from 0 or null" : "not a number of bytes");
}

static int load_cell(const struct topo_table *b, const struct topo_column *c, int col, int parents,
                     char *at)
{
    bool parent = c->cell == CELL_PARENT || c->cell == CELL_PARENT_OR_NULL;
    bool null = c->cell != CELL_PARENT && c->cell != CELL_INDEX;
    union value v = {.more = 0};
    int rc = 0;

    switch (c->cell) {
    case CELL_PARENT:
    case CELL_PARENT_OR_NULL:
    case CELL_INDEX:
    case CELL_INDEX_OR_NULL:
    case CELL_COUNT:
        rc = cell_index(b, col, parent ? parents : (int)c->max, null, &v.whole);
        v.whole += c->cell == CELL_COUNT && v.whole < 0;
        break;
    case CELL_BYTES:
    case CELL_LONG_OR_NULL:
        rc = cell_long(b, col, c->cell != CELL_BYTES, &v.more);
        break;
    case CELL_FLAG:
        rc = cell_flag(b, col, &v.flag);
        break;
    case CELL_MAYBE:
        rc = cell_maybe(b, col, &v.whole);
        break;
    case CELL_NUMBER:
        rc = cell_number(b, col, c->max, &v.number);
        break;
    case CELL_WORD:
    case CELL_WORD_OR_NULL:
        v.whole = -1;
        if (c->cell == CELL_WORD || !json_is_null(json_array_get(b->row, (size_t)col)))
            rc = cell_name(b, col, c->words, (int)c->max, &v.whole);
        break;
    case CELL_TEXT:
        return cell_copy(b, col, true, at, (size_t)c->max);
    case CELL_HEX:
        rc = cell_hex(b, col, &v.hex);
        break;
    case CELL_GUID:
        rc = cell_guid(b, col, &v.hex);
        break;
    case CELL_OTHER:
        break;
    }
    memcpy(at, &v, size_of(c->cell));
    return rc;
}

int topo_row_load(const struct topo_table *b, const struct topo_column *c, int columns, int parents,
                  void *object)
{
    for (int i = 0; i < columns; i++)
        if (load_cell(b, &c[i], i, parents, (char *)object + c[i].at) < 0)
            return -1;
    return 0;
}
