/* SPDX-License-Identifier: BSD-3-Clause */
/* net_lint_rates.c - cables that are slower or narrower than their peers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "topo/lint/net_lint_parts.h"

struct kind {            /* of a cable: peers have the same */
    int part, low, high; /* tiers, or -1 and the leaf for adapters */
    int cable;
    int Mbps; /* so that equal rates are equal numbers */
};

static int by_kind(const void *x, const void *y)
{
    const struct kind *a = x, *b = y;
    const int of_a[] = {a->part, a->low, a->high, a->cable},
              of_b[] = {b->part, b->low, b->high, b->cable};

    for (int i = 0; i < 4; i++)
        if (of_a[i] != of_b[i])
            return of_a[i] < of_b[i] ? -1 : 1;
    return 0;
}

/* The kinds of all cables that tell a rate.  Engines for reductions are inside their switch. */
static struct kind *kinds_of(const struct net_view *v, int *count)
{
    const struct net *n = v->net;
    struct kind *k = mem_calloc((size_t)n->cables + 1, sizeof(*k));

    *count = 0;
    for (int i = 0; i < n->cables; i++) {
        const struct net_cable *c = &n->cable[i];
        const struct net_node *a = &n->node[c->a], *b = &n->node[c->b];
        bool hca = a->kind == NET_HCA || b->kind == NET_HCA;
        int leaf = a->kind == NET_SWITCH ? c->a : c->b;
        if (c->Bps <= 0 || (!hca && (a->tier < 0 || b->tier < 0)))
            continue;
        k[(*count)++] = (struct kind){v->part[c->a],
                                      hca                 ? -1
                                      : a->tier < b->tier ? a->tier
                                                          : b->tier,
                                      hca                 ? leaf
                                      : a->tier > b->tier ? a->tier
                                                          : b->tier,
                                      i, (int)(c->Bps * 8 / 1e6)};
    }
    qsort(k, (size_t)*count, sizeof(*k), by_kind);
    return k;
}

/* Whose rate is that of most: any cable of it. */
static const struct net_cable *example(const struct net *n, const struct kind *k, int count,
                                       int mode)
{
    for (int i = 0; i < count; i++)
        if (k[i].Mbps == mode)
            return &n->cable[k[i].cable];
    return NULL;
}

static void say_slow(struct lint *l, const struct net_view *v, const struct net_cable *c,
                     const struct net_cable *most, int times, int peers, bool hca)
{
    char a[NET_END], b[NET_END], what[2 * NET_END + 4];
    bool narrow = c->width < most->width;

    snprintf(what, sizeof(what), "%s - %s", net_end_text(a, v, c->a, c->port_a),
             net_end_text(b, v, c->b, c->port_b));
    lint_add(l, narrow ? "width" : "speed", what, "%s: %dx%s where %d of %d %s have %dx%s", what,
             c->width, c->speed, times, peers,
             hca ? "adapters on that leaf" : "cables between these tiers", most->width,
             most->speed);
}

static void slow_cables(struct lint *l, const struct net_view *v, const struct kind *k, int count)
{
    int *value = mem_calloc((size_t)count + 1, sizeof(*value));

    for (int i = 0, end; i < count; i = end) {
        int times;
        for (end = i; end < count && k[end].part == k[i].part && k[end].low == k[i].low &&
                      k[end].high == k[i].high;
             end++)
            value[end - i] = k[end].Mbps;
        int mode = net_mode(value, end - i, &times);
        const struct net_cable *most = example(v->net, &k[i], end - i, mode);
        for (int j = i; j < end && net_most(times, end - i); j++)
            if (k[j].Mbps < mode)
                say_slow(l, v, &v->net->cable[k[j].cable], most, times, end - i, k[i].low < 0);
    }
    free(value);
}

/* Old simulators turn speeds that they do not know into the first one there was. */
static void all_first(struct lint *l, const struct net_view *v)
{
    int told = 0;

    for (int i = 0; i < v->net->cables; i++) {
        if (v->net->cable[i].width && strcmp(v->net->cable[i].speed, "SDR") != 0)
            return;
        told += v->net->cable[i].width > 0;
    }
    if (told >= 3)
        lint_note(l, "speed", "all cables",
                  "all %d cables tell SDR, the first speed of InfiniBand: more likely somebody on "
                  "the way does not know the real one; speeds are not judged",
                  told);
}

static void ends_differ(struct lint *l, const struct net_view *v)
{
    for (int i = 0; i < v->net->cables; i++) {
        const struct net_cable *c = &v->net->cable[i];
        char a[NET_END], b[NET_END], what[2 * NET_END + 4];
        if (!c->differ)
            continue;
        snprintf(what, sizeof(what), "%s - %s", net_end_text(a, v, c->a, c->port_a),
                 net_end_text(b, v, c->b, c->port_b));
        lint_add(l, "ends", what, "%s: its ends tell different rates; the lower one is %dx%s", what,
                 c->width, c->speed);
    }
}

void net_lint_rates(struct lint *l, const struct net_view *v)
{
    int count;
    struct kind *k = kinds_of(v, &count);

    slow_cables(l, v, k, count);
    ends_differ(l, v);
    all_first(l, v);
    free(k);
}
