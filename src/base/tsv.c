/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/tsv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/units.h"

enum { TSV_MAX_COLUMNS = 256 };
#define TSV_MAX_BYTES ((size_t)4 << 30)

int tsv_load(struct tsv *t, const char *path, struct err *err)
{
    char *text;

    memset(t, 0, sizeof(*t));
    if (file_read(&text, NULL, path, TSV_MAX_BYTES, err) < 0)
        return -1;
    return tsv_parse(t, path, text, err);
}

/* Cut `line` at tabs into cells; returns their number (also if more than max). */
static int split(char *line, char **cell, int max)
{
    int n = 0;

    for (char *next = line; next; n++) {
        char *here = next;
        next = strchr(here, '\t');
        if (next)
            *next++ = '\0';
        if (n < max)
            cell[n] = here;
    }
    return n;
}

/* 0x80 in each byte of v that is below `limit` <= 128, if all are ASCII: exact, without carries. */
static uint64_t below(uint64_t v, unsigned limit)
{
    return ~(v + (128 - limit) * (~0ULL / 255)) & 0x80 * (~0ULL / 255);
}

/* Length of the plain beginning of the text, in steps of eight bytes: printable ASCII and tabs. */
static size_t plain(const char *text, size_t len)
{
    const uint64_t ones = ~0ULL / 255;
    size_t i = 0;

    for (uint64_t v; i + sizeof(v) <= len; i += sizeof(v)) {
        memcpy(&v, text + i, sizeof(v));
        if (v & 0x80 * ones || (below(v, 0x20) & ~below(v ^ '\t' * ones, 1)) ||
            below(v ^ 0x7f * ones, 1))
            break;
    }
    return i;
}

int tsv_clean(const char *path, int line, const char *text, size_t len, struct err *err)
{
    for (size_t i = plain(text, len); i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f ||
            (c == 0xc2 && i + 1 < len && ((unsigned char)text[i + 1] & 0xe0) == 0x80))
            return err_data(err, "%s:%d: a control character (0x%02x) at position %zu", path, line,
                            c, i);
    }
    return 0;
}

int tsv_parse(struct tsv *t, const char *path, char *text, struct err *err)
{
    char *cells[TSV_MAX_COLUMNS];
    size_t used = 0;
    int line = 0;

    memset(t, 0, sizeof(*t));
    t->path = mem_strdup(path);
    t->text = text;
    for (char *next = text; next && *next;) {
        char *here = next;
        next = strchr(here, '\n');
        if (next)
            *next++ = '\0';
        line++;
        if (tsv_clean(path, line, here, strlen(here), err) < 0)
            goto fail;
        if (*here == '#') {
            MEM_PUSH(t->comment, t->comments) = here;
            continue;
        }
        if (!*here)
            continue;
        int n = split(here, cells, TSV_MAX_COLUMNS);
        if (n > TSV_MAX_COLUMNS) {
            err_data(err, "%s:%d: %d columns are more than %d", path, line, n, TSV_MAX_COLUMNS);
            goto fail;
        }
        if (!t->columns) {
            t->columns = n;
            t->name = mem_calloc((size_t)n, sizeof(*t->name));
            memcpy(t->name, cells, (size_t)n * sizeof(*cells));
            continue;
        }
        if (n != t->columns) {
            err_data(err, "%s:%d: %d columns where the header has %d", path, line, n, t->columns);
            goto fail;
        }
        struct tsv_row row = {line, NULL};
        MEM_PUSH(t->row, t->rows) = row;
        for (int i = 0; i < n; i++)
            MEM_PUSH(t->cells, used) = cells[i];
    }
    if (!t->columns) {
        err_data(err, "%s: no header line", path);
        goto fail;
    }
    for (int i = 0; i < t->rows; i++)
        t->row[i].cell = t->cells + (size_t)i * (size_t)t->columns;
    return 0;
fail:
    tsv_free(t);
    return -1;
}

void tsv_free(struct tsv *t)
{
    free(t->path);
    free(t->text);
    free(t->name);
    free(t->row);
    free(t->comment);
    free(t->cells);
    memset(t, 0, sizeof(*t));
}

int tsv_find(const struct tsv *t, const char *name)
{
    for (int i = 0; i < t->columns; i++)
        if (!strcmp(t->name[i], name))
            return i;
    return -1;
}

int tsv_column(const struct tsv *t, const char *name, struct err *err)
{
    int i = tsv_find(t, name);

    return i >= 0 ? i : err_data(err, "%s: no column \"%s\"", t->path, name);
}

static int bad_cell(const struct tsv *t, int row, int col, const struct err *why, struct err *err)
{
    return err_data(err, "%s:%d: column %s: %s", t->path, t->row[row].line, t->name[col],
                    why->text);
}

int tsv_double(const struct tsv *t, int row, int col, double min, double max, double *out,
               struct err *err)
{
    struct err why;

    if (units_double(out, t->row[row].cell[col], min, max, &why) < 0)
        return bad_cell(t, row, col, &why, err);
    return 0;
}

int tsv_int(const struct tsv *t, int row, int col, int min, int max, int *out, struct err *err)
{
    struct err why;

    if (units_int(out, t->row[row].cell[col], min, max, &why) < 0)
        return bad_cell(t, row, col, &why, err);
    return 0;
}

int tsv_size(const struct tsv *t, int row, int col, size_t *out, struct err *err)
{
    struct err why;

    if (units_bytes(out, t->row[row].cell[col], &why) < 0)
        return bad_cell(t, row, col, &why, err);
    return 0;
}
