/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "topo/lint/lint_impl.h"
#include "topo/net/net_view.h"

/* lint_cables.c - how many cables join switches, to whom there is none, and which are slower or
 * narrower than their peers. */

struct pair { /* two switches of different tiers with cables between them */
    int low, high;
    int cable; /* one of them */
    int cables;
    int part, tier_low, tier_high;
};

static const char *tier_word(char buf[24], int tier)
{
    static const char *const words[] = {"leaf", "spine", "core"};

    if (tier < 3)
        return words[tier];
    snprintf(buf, 24, "tier %d", tier);
    return buf;
}

static int by_ends(const void *x, const void *y)
{
    const struct pair *a = x, *b = y;

    if (a->low != b->low)
        return a->low < b->low ? -1 : 1;
    return (a->high > b->high) - (a->high < b->high);
}

static int by_kind(const void *x, const void *y)
{
    const struct pair *a = x, *b = y;
    const int of_a[] = {a->part, a->tier_low, a->tier_high},
              of_b[] = {b->part, b->tier_low, b->tier_high};

    for (int i = 0; i < 3; i++)
        if (of_a[i] != of_b[i])
            return of_a[i] < of_b[i] ? -1 : 1;
    return by_ends(x, y);
}

static bool same_kind(const struct pair *a, const struct pair *b)
{
    return a->part == b->part && a->tier_low == b->tier_low && a->tier_high == b->tier_high;
}

static struct pair *pairs_of(const struct net_view *v, int *count)
{
    const struct net *n = v->net;
    struct pair *p = mem_calloc((size_t)n->cables + 1, sizeof(*p));
    int all = 0;

    *count = 0;
    for (int i = 0; i < n->cables; i++) {
        int a = n->cable[i].a, b = n->cable[i].b;
        int low = n->node[a].tier < n->node[b].tier ? a : b, high = low == a ? b : a;
        if (n->node[low].tier >= 0 && n->node[low].tier != n->node[high].tier)
            p[all++] =
                (struct pair){low, high, i, 1, v->part[a], n->node[low].tier, n->node[high].tier};
    }
    qsort(p, (size_t)all, sizeof(*p), by_ends);
    for (int i = 0; i < all; i++)
        if (*count && by_ends(&p[*count - 1], &p[i]) == 0)
            p[*count - 1].cables++;
        else
            p[(*count)++] = p[i];
    return p;
}

/* Cables that are there, as "leaf-03[35] - spine-02[32]" of the first. */
static void say_fewer(struct lint *l, const struct net_view *v, const struct pair *p, int mode,
                      int times, int pairs)
{
    const struct net_cable *c = &v->net->cable[p->cable];
    char low[24], high[24], a[NET_END], b[NET_END], what[2 * NET_END];

    snprintf(what, sizeof(what), "%.70s - %.70s", v->label[p->low], v->label[p->high]);
    net_end_text(a, v, p->low, c->a == p->low ? c->port_a : c->port_b);
    net_end_text(b, v, p->high, c->a == p->high ? c->port_a : c->port_b);
    lint_add(l, "cables", what,
             "%s: %d cable%s where %d of %d pairs of %s and %s have %d; there is %s to %s%s", what,
             p->cables, p->cables == 1 ? "" : "s", times, pairs, tier_word(low, p->tier_low),
             tier_word(high, p->tier_high), mode, a, b, p->cables > 1 ? " and others" : "");
}

static void few_cables(struct lint *l, const struct net_view *v, struct pair *p, int pairs)
{
    int *value = mem_calloc((size_t)pairs + 1, sizeof(*value));

    qsort(p, (size_t)pairs, sizeof(*p), by_kind);
    for (int i = 0, end; i < pairs; i = end) {
        int times;
        for (end = i; end < pairs && same_kind(&p[i], &p[end]); end++)
            value[end - i] = p[end].cables;
        int mode = lint_mode(value, end - i, &times);
        for (int k = i; k < end && lint_most(times, end - i); k++)
            if (p[k].cables < mode)
                say_fewer(l, v, &p[k], mode, times, end - i);
    }
    free(value);
}

/* --- neighbours --- */

struct range { /* pairs of a switch in an array that is sorted by it */
    int first, end;
};

static int by_high(const void *x, const void *y)
{
    const struct pair *a = x, *b = y;

    if (a->high != b->high)
        return a->high < b->high ? -1 : 1;
    return (a->low > b->low) - (a->low < b->low);
}

/* One tier up only; sorted by low, or by high. */
static struct pair *steps(const struct pair *p, int pairs, bool low, int nodes, struct range **of,
                          int *count)
{
    struct pair *s = mem_calloc((size_t)pairs + 1, sizeof(*s));

    *count = 0;
    *of = mem_calloc((size_t)nodes + 1, sizeof(**of));
    for (int i = 0; i < pairs; i++)
        if (p[i].tier_high == p[i].tier_low + 1)
            s[(*count)++] = p[i];
    qsort(s, (size_t)*count, sizeof(*s), low ? by_ends : by_high);
    for (int i = 0; i < *count; i++) {
        struct range *r = &(*of)[low ? s[i].low : s[i].high];
        if (r->end != i)
            r->first = i;
        r->end = i + 1;
    }
    return s;
}

/* Peers of a switch share half of its neighbours.  Of each neighbour of theirs that it lacks: how
 * many of them have it. */
static void missing_of(struct lint *l, const struct net_view *v, int x, const struct pair *up,
                       const struct range *up_of, const struct pair *down,
                       const struct range *down_of, int *shared, int *have)
{
    int mine = up_of[x].end - up_of[x].first, peers = 0, nodes = v->net->nodes;

    for (int i = 0; i < nodes; i++)
        shared[i] = have[i] = 0;
    for (int i = up_of[x].first; i < up_of[x].end; i++)
        for (int k = down_of[up[i].high].first; k < down_of[up[i].high].end; k++)
            shared[down[k].low]++;
    for (int y = 0; y < nodes; y++) {
        if (y == x || 2 * shared[y] < mine || !shared[y])
            continue;
        peers++;
        for (int i = up_of[y].first; i < up_of[y].end; i++)
            have[up[i].high]++;
    }
    for (int i = up_of[x].first; i < up_of[x].end; i++)
        have[up[i].high] = 0;
    for (int s = 0; s < nodes; s++)
        if (lint_most(have[s], peers))
            lint_add(
                l, "uplink", v->label[x],
                "%.80s: no cable to %.80s, to which %d of %d switches with the same neighbours "
                "have one",
                v->label[x], v->label[s], have[s], peers);
}

static void missing(struct lint *l, const struct net_view *v, const struct pair *p, int pairs)
{
    struct range *up_of, *down_of;
    int nodes = v->net->nodes, ups, downs;
    struct pair *up = steps(p, pairs, true, nodes, &up_of, &ups);
    struct pair *down = steps(p, pairs, false, nodes, &down_of, &downs);
    int *shared = mem_calloc((size_t)nodes + 1, sizeof(*shared)),
        *have = mem_calloc((size_t)nodes + 1, sizeof(*have));

    for (int x = 0; x < nodes; x++)
        if (up_of[x].end > up_of[x].first)
            missing_of(l, v, x, up, up_of, down, down_of, shared, have);
    free(have);
    free(shared);
    free(down_of);
    free(up_of);
    free(down);
    free(up);
}

/* --- rates --- */

struct kind {            /* of a cable: peers have the same */
    int part, low, high; /* tiers, or -1 and the leaf for adapters */
    int cable;
    int Mbps; /* so that equal rates are equal numbers */
};

static int by_cable_kind(const void *x, const void *y)
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
    qsort(k, (size_t)*count, sizeof(*k), by_cable_kind);
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
        int mode = lint_mode(value, end - i, &times);
        const struct net_cable *most = example(v->net, &k[i], end - i, mode);
        for (int j = i; j < end && lint_most(times, end - i); j++)
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

void lint_cables(struct lint *l, const struct net_view *v)
{
    int pairs, count;
    struct pair *p = pairs_of(v, &pairs);
    struct kind *k = kinds_of(v, &count);

    few_cables(l, v, p, pairs);
    missing(l, v, p, pairs);
    free(p);
    slow_cables(l, v, k, count);
    ends_differ(l, v);
    all_first(l, v);
    free(k);
}
