/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/lint/lint.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

enum { TEXT = 1024 };

static void add(struct lint *l, bool bad, const char *kind, const char *what, const char *fmt,
                va_list args)
{
    char text[TEXT];

    vsnprintf(text, sizeof(text), fmt, args);
    MEM_PUSH(l->finding, l->findings) =
        (struct lint_finding){mem_strdup(kind), mem_strdup(what), mem_strdup(text), bad};
}

void lint_add(struct lint *l, const char *kind, const char *what, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    add(l, true, kind, what, fmt, args);
    va_end(args);
}

void lint_note(struct lint *l, const char *kind, const char *what, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    add(l, false, kind, what, fmt, args);
    va_end(args);
}

int lint_bad(const struct lint *l)
{
    int n = 0;

    for (int i = 0; i < l->findings; i++)
        n += l->finding[i].bad;
    return n;
}

void lint_free(struct lint *l)
{
    for (int i = 0; i < l->findings; i++) {
        free(l->finding[i].kind);
        free(l->finding[i].what);
        free(l->finding[i].text);
    }
    free(l->finding);
    *l = (struct lint){0};
}
