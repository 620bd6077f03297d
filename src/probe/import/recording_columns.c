/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/import/recording_columns.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"

enum { WORDS = 40 };

static const struct {
    const char *name, *other;
} column_name[COLUMNS] = {
    [COLUMN_SIZE] = {"size", ""},         [COLUMN_COUNT] = {"count", ""},
    [COLUMN_TYPE] = {"type", ""},         [COLUMN_REDOP] = {"redop", ""},
    [COLUMN_ROOT] = {"root", ""},         [COLUMN_TIME] = {"time", ""},
    [COLUMN_ALGBW] = {"algbw", ""},       [COLUMN_BUSBW] = {"busbw", ""},
    [COLUMN_WRONG] = {"#wrong", "error"}, [COLUMN_LEAST] = {"i_min", ""},
    [COLUMN_MOST] = {"i_max", ""},
};

int columns_split(char *text, char **word, int max)
{
    char *save = NULL;
    int n = 0;

    for (char *w = strtok_r(text, " \t\r", &save); w; w = strtok_r(NULL, " \t\r", &save), n++)
        if (n < max)
            word[n] = w;
    return n;
}

static int kind_of(const char *column)
{
    int k = 0;

    while (k < COLUMNS && strcmp(column, column_name[k].name) &&
           strcmp(column, column_name[k].other))
        k++;
    return k;
}

int columns_read(struct columns *c, const struct recording *r, int line, char *text,
                 struct err *err)
{
    char *word[WORDS];
    int n = columns_split(text, word, WORDS), half = -1;

    memset(c->at, -1, sizeof(c->at));
    c->words = n;
    if (n > WORDS)
        return err_data(err, "%s:%d: %d columns", r->path, line, n);
    for (int i = 0; i < n; i++) {
        if (!strcmp(word[i], "cputime"))
            return err_data(err,
                            "%s:%d: cputime: these times are of the calling CPU (-C 1), not of the "
                            "collective",
                            r->path, line);
        if (!strcmp(word[i], "timestamp"))
            c->words++; /* a day and a time of day */
        int kind = kind_of(word[i]);
        half += kind == COLUMN_TIME;
        if (kind < COLUMNS && half < 2)
            c->at[half > 0][kind] = i;
    }
    if (c->at[0][COLUMN_SIZE] != 0 || c->at[0][COLUMN_COUNT] != 1 || c->at[0][COLUMN_TYPE] < 0)
        return err_data(err, "%s:%d: the columns do not begin with size, count and type", r->path,
                        line);
    for (int k = COLUMN_TIME; k <= COLUMN_WRONG; k++)
        if (c->at[0][k] < 0 || c->at[1][k] < 0)
            return err_data(err, "%s:%d: column %s is not there twice (out of place, in place)",
                            r->path, line, column_name[k].name);
    return 0;
}

/* One line below the names. */
struct cells {
    const struct columns *columns;
    const struct recording *r;
    int line, iters;
    char *word[WORDS + 1];
};

static const char *cell(const struct cells *in, int half, enum column kind)
{
    return in->word[in->columns->at[half][kind]];
}

/* *out stays as it is where there is no such column. */
static int number(const struct cells *in, int half, enum column kind, double max, double *out,
                  struct err *err)
{
    if (in->columns->at[half][kind] < 0 ||
        units_double(out, cell(in, half, kind), 0, max, err) == 0)
        return 0;
    return err_data(err, "%s:%d: %s \"%.40s\" is not a number from 0 to %g", in->r->path, in->line,
                    column_name[kind].name, cell(in, half, kind), max);
}

static int read_half(const struct cells *in, struct recording_row *row, int half, struct err *err)
{
    struct recording_half *h = &row->half[half];
    bool checked = strcmp(cell(in, half, COLUMN_WRONG), "N/A") != 0;
    double us = 0, rate[2] = {0, 0}, count = 0, least = NAN, most = NAN;

    h->wrong = -1;
    if (!strcmp(cell(in, half, COLUMN_TIME), "N/A"))
        return 0;
    if (number(in, half, COLUMN_TIME, 1e12, &us, err) < 0 ||
        number(in, half, COLUMN_ALGBW, 1e9, &rate[0], err) < 0 ||
        number(in, half, COLUMN_BUSBW, 1e9, &rate[1], err) < 0 ||
        (checked && number(in, half, COLUMN_WRONG, 1e18, &count, err) < 0) ||
        number(in, half, COLUMN_LEAST, 1e12, &least, err) < 0 ||
        number(in, half, COLUMN_MOST, 1e12, &most, err) < 0)
        return -1;
    if (!row->bytes)
        return 0;
    if (us <= 0)
        return err_data(err, "%s:%d: time %s us is not positive", in->r->path, in->line,
                        cell(in, half, COLUMN_TIME));
    /* Before 2.11 the column is the largest difference, which rounding makes: nothing is wrong. */
    if (checked && count == floor(count))
        h->wrong = count > 1e9 ? 1000000000 : (int)count;
    int rc = recording_set(in->r, row, h, us / 1e6, rate, in->iters, err);
    h->sec.min = least / 1e6;
    h->sec.max = most / 1e6;
    return rc;
}

/* Size, type, reduction and root. */
static int read_kind(const struct cells *in, struct recording_row *row, struct err *err)
{
    const int *at = in->columns->at[0];
    char *const *word = in->word;
    bool redop = at[COLUMN_REDOP] >= 0;

    if (units_bytes(&row->bytes, word[0], err) < 0 || row->bytes > (size_t)1 << 60)
        return err_data(err, "%s:%d: size \"%s\" is not a number of bytes", in->r->path, in->line,
                        word[0]);
    snprintf(row->type, sizeof(row->type), "%s", word[at[COLUMN_TYPE]]);
    snprintf(row->redop, sizeof(row->redop), "%s", redop ? word[at[COLUMN_REDOP]] : "");
    if (recording_plain(in->r, in->line, "a type", row->type, 15, err) < 0 ||
        (redop && recording_plain(in->r, in->line, "a redop", row->redop, 15, err) < 0))
        return -1;
    if (at[COLUMN_ROOT] >= 0 && units_int(&row->root, word[at[COLUMN_ROOT]], -1, 1 << 24, err) < 0)
        return err_data(err, "%s:%d: root \"%.40s\" is not a rank or -1", in->r->path, in->line,
                        word[at[COLUMN_ROOT]]);
    return 0;
}

static bool digits(const char *text)
{
    return *text && !text[strspn(text, "0123456789")];
}

int columns_row(const struct columns *c, struct recording_row *row, const struct recording *r,
                int iters, char *text, struct err *err)
{
    struct cells in = {.columns = c, .r = r, .line = row->line, .iters = iters};
    int n = columns_split(text, in.word, WORDS + 1);

    if (n < 2 || !digits(in.word[0]) || !digits(in.word[1]))
        return 0;
    if (n != c->words)
        return err_data(err, "%s:%d: %d columns where %d are named above", r->path, in.line, n,
                        c->words);
    row->root = -1;
    if (read_kind(&in, row, err) < 0)
        return -1;
    for (int half = 0; half < 2; half++)
        if (read_half(&in, row, half, err) < 0)
            return -1;
    return 1;
}
