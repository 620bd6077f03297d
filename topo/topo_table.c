/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/topo_table_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/units.h"
#include "topo/topo.h"

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
    json_t *utf8 = json_string(text); /* refuse what could not be saved */
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
                    const struct topo_column *column, int columns, struct err *err)
{
    char where[WHERE];
    json_t *names;

    snprintf(where, sizeof(where), "%s: %s", path, name);
    *b = (struct topo_table){
        .path = path, .name = name, .column = column, .columns = columns, .last = -1, .err = err};
    if (json_take(from, where, err, "{s:o, s:o}", "columns", &names, "rows", &b->rows) < 0)
        return -1;
    for (int i = 0; i < columns; i++) {
        const char *is = json_string_value(json_array_get(names, (size_t)i));
        if (!is || strcmp(is, column[i].name) != 0)
            return err_data(err, "%s: columns[%d] is \"%s\" where \"%s\" is needed", where, i,
                            is ? is : "", column[i].name);
    }
    if (json_array_size(names) != (size_t)columns)
        return err_data(err, "%s: %zu columns where %d are needed", where, json_array_size(names),
                        columns);
    if (!json_is_array(b->rows) || json_array_size(b->rows) > TABLE_ROWS_MAX)
        return err_data(err, "%s: rows is %s", where,
                        json_is_array(b->rows) ? "longer than 1048576" : "not a list");
    return 0;
}

int topo_table_next(struct topo_table *b, int *rc)
{
    if (*rc < 0 || b->at >= json_array_size(b->rows))
        return 0;
    b->row = json_array_get(b->rows, b->at++);
    if (json_array_size(b->row) != (size_t)b->columns)
        *rc = err_data(b->err, "%s: %s.rows[%zu]: %zu cells where %d are needed", b->path, b->name,
                       b->at - 1, json_array_size(b->row), b->columns);
    return *rc == 0;
}

int cell_bad(const struct topo_table *b, int col, const char *what)
{
    char *text = json_dumps(json_array_get(b->row, (size_t)col), JSON_ENCODE_ANY | JSON_COMPACT);

    err_data(b->err, "%s: %s.rows[%zu]: %s is %.60s, %s", b->path, b->name, b->at - 1,
             b->column[col].name, text ? text : "(none)", what);
    free(text);
    return -1;
}

int topo_table_rises(struct topo_table *b, int number, const char *what)
{
    if (number <= b->last)
        return cell_bad(b, 0, what);
    b->last = number;
    return 0;
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

/* Number above 0; null gives 0. */
static int cell_number(const struct topo_table *b, int col, double max, double *out)
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

static int cell_flag(const struct topo_table *b, int col, bool *out)
{
    const json_t *v = json_array_get(b->row, (size_t)col);

    *out = json_is_true(v);
    return json_is_boolean(v) ? 0 : cell_bad(b, col, "not true or false");
}

/* true, false or null as 1, 0 or -1. */
static int cell_maybe(const struct topo_table *b, int col, int *out)
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

/* Copy a text into to[size]; null gives "". */
static int cell_copy(const struct topo_table *b, int col, bool null, char *to, size_t size)
{
    const char *text;

    if (cell_text(b, col, size - 1, null, &text) < 0)
        return -1;
    snprintf(to, size, "%s", text ? text : "");
    return 0;
}

int topo_word(const char *const *words, int count, const json_t *text)
{
    for (int i = 0; json_is_string(text) && i < count; i++)
        if (!strcmp(words[i], json_string_value(text)))
            return i;
    return -1;
}

int cell_name(const struct topo_table *b, int col, const char *const *names, int count, int *out)
{
    *out = topo_word(names, count, json_array_get(b->row, (size_t)col));
    return *out < 0 ? cell_bad(b, col, "not a known word") : 0;
}

/* --- rows by their columns, out --- */

/* Member, read with the type of its column. */
union value {
    int whole;
    long long more;
    bool flag;
    double number;
    uint64_t hex;
    char *string;
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
    case CELL_AMOUNT:
        return sizeof(double);
    case CELL_HEX:
    case CELL_GUID:
        return sizeof(uint64_t);
    case CELL_STRING:
    case CELL_STRING_OR_NULL:
        return sizeof(char *);
    case CELL_NAME:
    case CELL_TEXT:
    case CELL_OTHER:
        return 0;
    default:
        return sizeof(int);
    }
}

static json_t *amount_json(double x)
{
    return x < 9e15 && x == floor(x) ? json_integer((json_int_t)x) : json_real(x);
}

json_t *topo_text_json(const char *text)
{
    json_t *j = text && *text ? json_string(text) : NULL;

    return j ? j : json_null();
}

static json_t *cell_json(const struct topo_column *c, const char *object)
{
    const char *at = object + c->at;
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
    case CELL_AMOUNT:
        j = v.number > 0 ? amount_json(v.number) : NULL;
        break;
    case CELL_WORD:
    case CELL_WORD_OR_NULL:
        j = v.whole >= 0 ? json_string(c->words[v.whole]) : NULL;
        break;
    case CELL_NAME:
    case CELL_TEXT:
        return topo_text_json(at);
    case CELL_STRING:
    case CELL_STRING_OR_NULL:
        return topo_text_json(v.string);
    case CELL_GUID:
        j = v.hex ? json_sprintf("0x%016" PRIx64, v.hex) : NULL;
        break;
    case CELL_HEX:
        j = json_sprintf("0x%" PRIx64, v.hex);
        break;
    case CELL_OTHER:
        j = c->out ? c->out(object) : NULL;
        break;
    }
    return j ? j : json_null();
}

json_t *topo_row(const struct topo_column *c, int columns, const void *object)
{
    json_t *row = json_array();

    for (int i = 0; i < columns; i++)
        json_array_append_new(row, cell_json(&c[i], object));
    return row;
}

/* True if JSON needs no escapes for this text. */
static bool is_plain(const char *text)
{
    while (*text >= ' ' && *text < 0x7f && *text != '"' && *text != '\\')
        text++;
    return !*text;
}

/* Fast path of most cells: write a number or plain text without a JSON value; false: not
 * written. */
static bool put_simple(FILE *f, const struct topo_column *c, const char *object)
{
    const char *at = object + c->at, *text = c->cell == CELL_NAME || c->cell == CELL_TEXT ? at : "";
    char number[UNITS_TEXT];
    union value v = {.whole = -1};

    if (c->cell <= CELL_INDEX_OR_NULL || c->cell == CELL_WORD)
        memcpy(&v.whole, at, sizeof(v.whole));
    if (c->cell == CELL_WORD && v.whole >= 0)
        text = c->words[v.whole];
    if (*text && is_plain(text)) {
        putc_unlocked('"', f);
        fputs_unlocked(text, f);
        putc_unlocked('"', f);
        return true;
    }
    if (c->cell > CELL_INDEX_OR_NULL)
        return false;
    if (v.whole >= 0)
        fwrite_unlocked(number, 1, units_whole(number, (uint64_t)v.whole), f);
    else
        fputs_unlocked("null", f);
    return true;
}

void topo_row_put(FILE *f, const struct topo_column *c, int columns, const void *object)
{
    for (int i = 0; i < columns; i++) {
        fputs_unlocked(i ? ", " : "[", f);
        if (put_simple(f, &c[i], object))
            continue;
        json_t *value = cell_json(&c[i], object);
        json_dumpf(value, f, TOPO_JSON);
        json_decref(value);
    }
    putc_unlocked(']', f);
}

/* --- rows in --- */

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

static int cell_string(const struct topo_table *b, int col, size_t max, bool null, char **out)
{
    const char *text;

    if (cell_text(b, col, max, null, &text) < 0)
        return -1;
    *out = text ? mem_strdup(text) : NULL;
    return 0;
}

void topo_row_null(const struct topo_column *c, int columns, void *object)
{
    for (int i = 0; i < columns; i++) {
        bool minus = c[i].cell == CELL_PARENT_OR_NULL || c[i].cell == CELL_INDEX_OR_NULL ||
                     c[i].cell == CELL_LONG_OR_NULL || c[i].cell == CELL_WORD_OR_NULL ||
                     c[i].cell == CELL_MAYBE;
        memset((char *)object + c[i].at, minus ? 0xff : 0, size_of(c[i].cell));
    }
}

static int load_cell(const struct topo_table *b, const struct topo_column *c, int col,
                     const int *parents, char *object)
{
    bool parent = c->cell == CELL_PARENT || c->cell == CELL_PARENT_OR_NULL;
    bool null = c->cell != CELL_PARENT && c->cell != CELL_INDEX;
    char *at = object + c->at;
    union value v = {.more = 0};
    int rc = 0;

    switch (c->cell) {
    case CELL_PARENT:
    case CELL_PARENT_OR_NULL:
    case CELL_INDEX:
    case CELL_INDEX_OR_NULL:
    case CELL_COUNT:
        rc = cell_index(b, col, parent ? parents[(int)c->max] : (int)c->max, null, &v.whole);
        v.whole += c->cell == CELL_COUNT && v.whole < 0;
        break;
    case CELL_BYTES:
    case CELL_LONG_OR_NULL:
        rc = cell_long(b, col, c->cell == CELL_LONG_OR_NULL, &v.more);
        break;
    case CELL_FLAG:
        rc = cell_flag(b, col, &v.flag);
        break;
    case CELL_MAYBE:
        rc = cell_maybe(b, col, &v.whole);
        break;
    case CELL_NUMBER:
    case CELL_AMOUNT:
        rc = cell_number(b, col, c->max, &v.number);
        break;
    case CELL_WORD_OR_NULL:
    case CELL_WORD:
        if (c->cell == CELL_WORD_OR_NULL && json_is_null(json_array_get(b->row, (size_t)col)))
            v.whole = -1;
        else
            rc = cell_name(b, col, c->words, (int)c->max, &v.whole);
        break;
    case CELL_NAME:
    case CELL_TEXT:
        return cell_copy(b, col, c->cell == CELL_TEXT, at, (size_t)c->max);
    case CELL_STRING:
    case CELL_STRING_OR_NULL:
        rc = cell_string(b, col, (size_t)c->max, c->cell == CELL_STRING_OR_NULL, &v.string);
        break;
    case CELL_HEX:
        rc = cell_hex(b, col, &v.hex);
        break;
    case CELL_GUID:
        rc = cell_guid(b, col, &v.hex);
        break;
    case CELL_OTHER:
        return c->in ? c->in(b, col, object) : 0;
    }
    memcpy(at, &v, size_of(c->cell));
    return rc;
}

int topo_row_load(const struct topo_table *b, const int *parents, void *object)
{
    for (int i = 0; i < b->columns; i++)
        if (load_cell(b, &b->column[i], i, parents, object) < 0)
            return -1;
    return 0;
}
