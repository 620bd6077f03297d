/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/lint/lint_impl.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { TEXT = 1024, LEAST = 3 };

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

/* --- majorities --- */

static int by_number(const void *x, const void *y)
{
    const int *a = x, *b = y;

    return (*a > *b) - (*a < *b);
}

int lint_mode(int *value, int n, int *times)
{
    int best = 0;

    *times = 0;
    if (n)
        qsort(value, (size_t)n, sizeof(*value), by_number);
    for (int i = 0, end; i < n; i = end) {
        for (end = i; end < n && value[end] == value[i]; end++)
            ;
        if (end - i >= *times) { /* ties: the larger value */
            *times = end - i;
            best = value[i];
        }
    }
    return best;
}

bool lint_most(int times, int n)
{
    return times >= LEAST && 3 * times >= 2 * n;
}

static int by_kind(const void *x, const void *y)
{
    const struct lint_peer *a = x, *b = y;

    for (int i = 0; i < 3; i++)
        if (a->kind[i] != b->kind[i])
            return a->kind[i] < b->kind[i] ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

void lint_fewer(struct lint *l, struct lint_peer *p, int n,
                void (*say)(struct lint *l, const struct lint_peer *odd,
                            const struct lint_usual *usual, const void *of),
                const void *of)
{
    int *value = mem_calloc((size_t)n + 1, sizeof(*value));

    if (n)
        qsort(p, (size_t)n, sizeof(*p), by_kind);
    for (int i = 0, end; i < n; i = end) {
        struct lint_usual u = {.id = -1};
        for (end = i; end < n && !memcmp(p[end].kind, p[i].kind, sizeof(p->kind)); end++)
            value[u.peers++] = p[end].value;
        u.value = lint_mode(value, u.peers, &u.times);
        for (int k = i; k < end && u.id < 0; k++)
            u.id = p[k].value == u.value ? p[k].id : -1;
        for (int k = i; k < end && lint_most(u.times, u.peers); k++)
            if (p[k].value < u.value)
                say(l, &p[k], &u, of);
    }
    free(value);
}

static int by_device(const void *x, const void *y)
{
    const struct lint_port *a = x, *b = y;
    int order =
        a->group != b->group ? (a->group > b->group ? 1 : -1) : strcmp(a->device, b->device);

    if (order)
        return order;
    return a->port != b->port ? (a->port > b->port ? 1 : -1) : (a->id > b->id) - (a->id < b->id);
}

void lint_ports(struct lint *l, struct lint_port *s, int n,
                void (*say)(struct lint *l, const struct lint_port *odd, int leaf, int times, int n,
                            const void *of),
                const void *of)
{
    int *value = mem_calloc((size_t)n + 1, sizeof(*value)), times;

    if (n)
        qsort(s, (size_t)n, sizeof(*s), by_device);
    for (int i = 0, end; i < n; i = end) {
        for (end = i; end < n && s[end].group == s[i].group && s[end].port == s[i].port &&
                      !strcmp(s[end].device, s[i].device);
             end++)
            value[end - i] = s[end].leaf;
        int leaf = lint_mode(value, end - i, &times);
        for (int k = i; k < end && lint_most(times, end - i); k++)
            if (s[k].leaf != leaf)
                say(l, &s[k], leaf, times, end - i, of);
    }
    free(value);
}
