/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/table.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/units.h"

void table_init(struct table *t, const char *align)
{
    *t = (struct table){.columns = (int)strlen(align), .align = mem_strdup(align)};
}

static void push(struct table *t, const char *text)
{
    MEM_PUSH(t->cell, t->cells) = mem_strdup(text ? text : "-");
}

void table_row(struct table *t, ...)
{
    va_list ap;

    va_start(ap, t);
    for (int i = 0; i < t->columns; i++)
        push(t, va_arg(ap, const char *));
    va_end(ap);
}

void table_open(struct table *t, const struct table_column *column)
{
    *t = (struct table){.column = column, .rows = json_array()};
    for (const struct table_column *c = column; c->unit; c++)
        if (c->head) {
            MEM_PUSH(t->align, t->columns) = strcmp(c->unit, "text") ? 'r' : 'l';
            push(t, c->head);
        }
}

static const char *number(char buf[UNITS_TEXT], const char *unit, double x)
{
    if (!isfinite(x))
        return NULL;
    if (!strcmp(unit, "bytes"))
        return units_bytes_text(buf, x);
    if (!strcmp(unit, "seconds"))
        return x > 0 ? units_seconds_text(buf, x) : NULL;
    if (!strcmp(unit, "rate"))
        return x > 0 ? units_rate_text(buf, x) : NULL;
    snprintf(buf, UNITS_TEXT, strcmp(unit, "count") != 0 ? unit : "%.0f", x);
    return buf;
}

void table_add(struct table *t, ...)
{
    json_t *row = json_object(), *value;
    va_list ap;

    va_start(ap, t);
    for (const struct table_column *c = t->column; c->unit; c++) {
        char buf[UNITS_TEXT];
        const char *text;
        if (!strcmp(c->unit, "text")) {
            text = va_arg(ap, const char *);
            value = json_string(text); /* NULL of NULL */
        } else {
            double x = !strcmp(c->unit, "count") ? va_arg(ap, int) : va_arg(ap, double);
            text = number(buf, c->unit, x);
            value = json_finite(x);
        }
        if (c->head)
            push(t, text);
        json_object_set_new(row, c->key, value); /* none without key or value */
    }
    va_end(ap);
    json_array_append_new(t->rows, row);
}

/* Characters, not bytes: continuation bytes of UTF-8 do not count. */
static int width(const char *s)
{
    int n = 0;

    for (; *s; s++)
        n += ((unsigned char)*s & 0xc0) != 0x80;
    return n;
}

void table_print(FILE *out, const struct table *t, int indent)
{
    int *widest = mem_calloc((size_t)t->columns, sizeof(*widest));

    for (int i = 0; i < t->cells; i++) {
        int w = width(t->cell[i]), *best = &widest[i % t->columns];
        *best = w > *best ? w : *best;
    }
    for (int i = 0; i < t->cells; i++) {
        int c = i % t->columns, pad = widest[c] - width(t->cell[i]);
        int last = c == t->columns - 1;
        fprintf(out, "%*s", c ? 2 : indent, "");
        if (t->align[c] == 'r')
            fprintf(out, "%*s%s", pad, "", t->cell[i]);
        else
            fprintf(out, "%s%*s", t->cell[i], last ? 0 : pad, "");
        if (last)
            fputc('\n', out);
    }
    free(widest);
}

void table_free(struct table *t)
{
    for (int i = 0; i < t->cells; i++)
        free(t->cell[i]);
    free(t->cell);
    free(t->align);
    json_decref(t->rows);
    *t = (struct table){0};
}
