/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/table.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/units.h"

static void push(struct table *t, const char *text)
{
    MEM_PUSH(t->cell, t->cells) = text ? mem_strdup(text) : NULL;
}

void table_open(struct table *t, const struct table_column *column)
{
    *t = (struct table){.column = column, .rows = json_array()};
    for (const struct table_column *c = column; c->unit; c++)
        if (c->head) {
            push(t, c->head);
            t->columns++;
        }
}

static const char *number(char buf[UNITS_TEXT], const struct table_column *c, double x)
{
    const char *unit = c->unit, *format = strchr(unit, '%');

    if (isnan(x) || (isinf(x) && strcmp(unit, "exact") != 0))
        return NULL;
    if (!strcmp(unit, "bytes"))
        return units_bytes_text(buf, x);
    if (!strcmp(unit, "seconds"))
        return x > 0 ? units_seconds_text(buf, x) : NULL;
    if (!strcmp(unit, "rate"))
        return x > 0 ? units_rate_text(buf, x) : NULL;
    snprintf(buf, UNITS_TEXT, format ? format : "%.9g", format > unit ? atof(unit) * x : x);
    return buf;
}

/* Convert a value to JSON, a new reference; *text is its text, in buf if it is composed. */
static json_t *take(const struct table_column *c, va_list *ap, const char **text, char *buf)
{
    if (!strncmp(c->unit, "text", 4) || !strcmp(c->unit, "figure")) {
        *text = va_arg(*ap, const char *);
        /* json_string(NULL) is NULL. */
        return *text || c->unit[4] != '?' ? json_string(*text) : json_null();
    }
    if (!strcmp(c->unit, "json"))
        return va_arg(*ap, json_t *);
    if (!strcmp(c->unit, "flag")) {
        bool yes = va_arg(*ap, int);
        *text = yes ? "yes" : "no";
        return json_boolean(yes);
    }
    if (!strcmp(c->unit, "count")) {
        int n = va_arg(*ap, int);
        snprintf(buf, UNITS_TEXT, "%d", n);
        *text = buf;
        return json_integer(n);
    }
    double x = va_arg(*ap, double);
    *text = number(buf, c, x);
    return json_finite(x);
}

void table_add(struct table *t, ...)
{
    json_t *row = json_object();
    va_list ap;

    va_start(ap, t);
    for (const struct table_column *c = t->column; c->unit; c++) {
        char buf[UNITS_TEXT];
        const char *text = NULL;
        json_t *value = take(c, &ap, &text, buf);
        if (c->head)
            push(t, text);
        json_object_set_new(row, c->key, value); /* does nothing without key or value */
    }
    va_end(ap);
    json_array_append_new(t->rows, row);
}

/* Width in characters: continuation bytes of UTF-8 do not count. */
static int width(const char *s)
{
    int n = 0;

    for (; *s; s++)
        n += ((unsigned char)*s & 0xc0) != 0x80;
    return n;
}

/* Names are left-aligned; numbers, and "figure" texts, right-aligned. */
static bool is_left(const struct table_column *c)
{
    return !strncmp(c->unit, "text", 4) || !strcmp(c->unit, "flag");
}

/* Column of text number `at`. */
static const struct table_column *column_of(const struct table *t, int at)
{
    const struct table_column *c = t->column;

    for (int i = 0; i <= at; i++, c++)
        while (!c->head)
            c++;
    return c - 1;
}

static const char *shown(const struct table *t, int i)
{
    return t->cell[i] ? t->cell[i] : "-";
}

void table_print(FILE *out, const struct table *t, int indent)
{
    int *widest = mem_calloc((size_t)t->columns, sizeof(*widest));

    for (int i = 0; i < t->cells; i++) {
        int w = width(shown(t, i)), *best = &widest[i % t->columns];
        *best = w > *best ? w : *best;
    }
    for (int i = 0; i < t->cells; i++) {
        int at = i % t->columns, pad = widest[at] - width(shown(t, i));
        bool last = at == t->columns - 1;
        const struct table_column *c = column_of(t, at);
        fprintf(out, "%*s", at ? 2 : indent, "");
        if (i >= t->columns && t->cell[i] && !strcmp(c->unit, "text!")) {
            log_mark(out, t->cell[i]);
            fprintf(out, "%*s", last ? 0 : pad, "");
        } else if (is_left(c))
            fprintf(out, "%s%*s", shown(t, i), last ? 0 : pad, "");
        else
            fprintf(out, "%*s%s", pad, "", shown(t, i));
        if (last)
            fputc('\n', out);
    }
    free(widest);
}

void table_tsv(FILE *out, const struct table *t)
{
    for (int i = 0; i < t->cells; i++)
        fprintf(out, "%s%c", t->cell[i] ? t->cell[i] : "", (i + 1) % t->columns ? '\t' : '\n');
}

json_t *table_rows(struct table *t)
{
    json_t *rows = json_incref(t->rows);

    table_free(t);
    return rows;
}

void table_free(struct table *t)
{
    for (int i = 0; i < t->cells; i++)
        free(t->cell[i]);
    free(t->cell);
    json_decref(t->rows);
    *t = (struct table){0};
}
