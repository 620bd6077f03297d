/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/lint/net_lint.h"

#include <stdio.h>
#include <stdlib.h>

#include "topo/lint/net_lint_parts.h"

enum { LEAST = 3 };

char *net_end_text(char buf[NET_END], const struct net_view *v, int node, int port)
{
    snprintf(buf, NET_END, "%.70s[%d]", v->label[node], port);
    return buf;
}

static int by_number(const void *x, const void *y)
{
    const int *a = x, *b = y;

    return (*a > *b) - (*a < *b);
}

int net_mode(int *value, int n, int *times)
{
    int best = 0;

    *times = 0;
    if (n)
        qsort(value, (size_t)n, sizeof(*value), by_number);
    for (int i = 0, end; i < n; i = end) {
        for (end = i; end < n && value[end] == value[i]; end++)
            ;
        if (end - i >= *times) { /* of several the larger one */
            *times = end - i;
            best = value[i];
        }
    }
    return best;
}

bool net_most(int times, int n)
{
    return times >= LEAST && 3 * times >= 2 * n;
}

int net_lint(struct lint *l, const struct topo *t)
{
    int before = l->findings;
    struct net_view v;

    if (!t->net)
        return 0;
    net_view_make(&v, t->net, t);
    net_lint_pairs(l, &v);
    net_lint_rates(l, &v);
    net_lint_hosts(l, &v);
    net_view_free(&v);
    return l->findings - before;
}
