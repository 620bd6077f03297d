/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void table_init(struct table *t, const char *align)
{
    *t = (struct table){.columns = (int)strlen(align), .align = align};
}

void table_row(struct table *t, ...)
{
    va_list ap;

    va_start(ap, t);
    for (int i = 0; i < t->columns; i++) {
        const char *s = va_arg(ap, const char *);
        MEM_PUSH(t->cell, t->cells) = mem_strdup(s ? s : "-");
    }
    va_end(ap);
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
    *t = (struct table){0};
}
