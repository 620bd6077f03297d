/* SPDX-License-Identifier: BSD-3-Clause */
/* api_group.c - librailgauge: collectives, and groups resolved once. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "matrix/api_impl.h"

/* Exceptions that may concern members of a group, each once, ascending. */
enum { NEARBY_MAX = 64 };
struct nearby {
    int at[NEARBY_MAX], count;
};

/* false: they are more than it holds. */
static bool add_near(struct nearby *near, const struct lists *l, int item)
{
    for (int k = item < 0 ? 0 : l->start[item]; item >= 0 && k < l->start[item + 1]; k++) {
        int i = near->count;
        while (i > 0 && near->at[i - 1] > l->at[k])
            i--;
        if (i > 0 && near->at[i - 1] == l->at[k])
            continue;
        if (near->count == NEARBY_MAX)
            return false;
        memmove(near->at + i + 1, near->at + i, (size_t)(near->count++ - i) * sizeof(int));
        near->at[i] = l->at[k];
    }
    return true;
}

/* false: they are more than it holds. */
static bool add_odd(struct nearby *near, const struct railgauge *r, int id)
{
    return add_near(near, &r->by_endpoint, id) &&
           add_near(near, &r->by_rack, topo_at(&r->m.topo, id, LEVEL_RACK));
}

static void resolve(struct collective_quote *q, const struct railgauge *r, enum op op,
                    const int *ids, int n)
{
    struct nearby near = {.count = 0};
    struct ways ways;
    bool all = false;

    for (int i = 0; i < n && !all; i++)
        if (r->key[ids[i]] & KEY_ODD)
            all = !add_odd(&near, r, ids[i]);
    ways_of_some(&ways, &r->m, &(struct members){ids, n, NULL}, op, all ? NULL : near.at,
                 all ? r->m.exceptions : near.count);
    collective_resolve(q, &r->m, op, &ways, false, r->known);
}

/* --- ranges --- */

/* The first that is no smaller, of ascending numbers. */
static int from_here(const int *at, int n, int least)
{
    int lo = 0;

    for (int hi = n; lo < hi;) {
        int mid = lo + (hi - lo) / 2;
        if (at[mid] < least)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static bool add_odds(struct nearby *near, const struct railgauge *r,
                     const struct railgauge_range *at)
{
    bool all = false;

    for (int k = from_here(r->odd, r->odds, at->first);
         k < r->odds && r->odd[k] <= range_last(at) && !all; k++)
        if (at->step == 1 || (r->odd[k] - at->first) % at->step == 0)
            all = !add_odd(near, r, r->odd[k]);
    return !all;
}

/* True if the ranges ascend, one after the other. */
static bool in_a_row(const struct ranges *g)
{
    for (int i = 1; i < g->count; i++)
        if (g->at[i].first <= range_last(&g->at[i - 1]))
            return false;
    return g->stairs->regular;
}

static int resolve_ranges(struct collective_quote *q, const struct railgauge *r, enum op op,
                          const struct ranges *g)
{
    struct nearby near = {.count = 0};
    struct ways ways;
    bool all = false;

    if (!in_a_row(g))
        return -1;
    for (int i = 0; i < g->count && !all; i++)
        all = !add_odds(&near, r, &g->at[i]);
    if (ways_of_some(&ways, &r->m, &(struct members){NULL, g->ranks, g}, op, all ? NULL : near.at,
                     all ? r->m.exceptions : near.count) < 0)
        return -1;
    collective_resolve(q, &r->m, op, &ways, false, r->known);
    return 0;
}

/* The same by members, where ranges do not tell; NAN: no memory. */
static double by_members(const struct railgauge *r, const char *op, const struct ranges *g,
                         size_t bytes)
{
    int *ids = malloc((size_t)g->ranks * sizeof(*ids)), n = 0;

    for (int i = 0; ids && i < g->count; i++)
        for (int k = 0; k < g->at[i].count; k++)
            ids[n++] = g->at[i].first + k * g->at[i].step;
    double sec = ids ? railgauge_collective(r, op, ids, n, bytes) : NAN;
    free(ids);
    return sec;
}

/* Ranks of ranges; 0: an endpoint is not there, or they are more than there are. */
static int count_ranks(const struct railgauge *r, const struct railgauge_range *at, int ranges)
{
    long ranks = 0, endpoints = r->m.topo.endpoints;

    for (int i = 0; i < ranges; i++) {
        long last = at[i].first + (at[i].count - 1L) * at[i].step;
        if (at[i].first < 0 || at[i].count < 1 || at[i].step < 1 || last >= endpoints)
            return 0;
        ranks += at[i].count;
    }
    return ranks <= endpoints ? (int)ranks : 0;
}

double railgauge_collective_ranges(const struct railgauge *r, const char *op,
                                   const struct railgauge_range *ranges, int n, size_t bytes)
{
    struct ranges g = {r ? &r->stairs : NULL, ranges, n,
                       r && ranges ? count_ranks(r, ranges, n) : 0};
    int which = op ? op_find(op) : -1;
    struct collective_quote q;

    if (which < 0 || op_is_pair((enum op)which) || g.ranks < 2)
        return NAN;
    if (resolve_ranges(&q, r, (enum op)which, &g) < 0)
        return by_members(r, op, &g, bytes);
    return collective_time(&q, (double)bytes);
}

enum { SEEN_WORDS = 2048 }; /* 131,072 endpoints without an allocation */

/* Return an endpoint that is in the list twice; -1: none, -2: no memory. */
static int find_repeated(const int *ids, int n, int endpoints)
{
    size_t words = (size_t)endpoints / 64 + 1;
    uint64_t own[SEEN_WORDS], *seen = own;
    int i = 1;

    while (i < n && ids[i] > ids[i - 1])
        i++;
    if (i >= n)
        return -1; /* ascending, as most lists are */
    if (words <= SEEN_WORDS)
        memset(own, 0, words * sizeof(*own));
    else if (!(seen = calloc(words, sizeof(*seen))))
        return -2;
    int found = -1;
    for (i = 0; i < n && found < 0; i++) {
        uint64_t bit = (uint64_t)1 << ids[i] % 64, *word = &seen[ids[i] / 64];
        found = *word & bit ? ids[i] : -1;
        *word |= bit;
    }
    if (seen != own)
        free(seen);
    return found;
}

static int check_group(const struct railgauge *r, const char *op, const int *ids, int n,
                       struct err *err)
{
    int which = op ? op_find(op) : -1;

    if (!r || !ids)
        return err_usage(err, "no %s (NULL)", r ? "list of endpoints" : "matrix");
    if (which < 0 || op_is_pair((enum op)which))
        return err_usage(err, "%s is no collective", op ? op : "nothing");
    if (n < 2)
        return err_usage(err, "a group of %d: it takes two endpoints", n);
    if (n > r->m.topo.endpoints)
        return err_usage(err, "a group of %d of %d endpoints", n, r->m.topo.endpoints);
    for (int i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= r->m.topo.endpoints)
            return err_usage(err, "endpoint %d of %d", ids[i], r->m.topo.endpoints);
    int twice = find_repeated(ids, n, r->m.topo.endpoints);
    if (twice == -2)
        return err_io(err, "no memory for a group of %d", n);
    return twice < 0 ? which : err_usage(err, "endpoint %d is twice in the group", twice);
}

double railgauge_collective(const struct railgauge *r, const char *op, const int *ids, int n,
                            size_t bytes)
{
    struct collective_quote q;
    struct err err;
    int which = check_group(r, op, ids, n, &err);

    if (which < 0)
        return NAN;
    resolve(&q, r, (enum op)which, ids, n);
    return collective_time(&q, (double)bytes);
}

struct railgauge_group {
    const struct matrix *m;
    struct collective_quote quote;
};

struct group_opening {
    const struct railgauge *r;
    const char *op;
    const int *ids;
    int n;
    struct railgauge_group *group;
    struct err *err;
};

static int open_group(void *opening)
{
    struct group_opening *o = opening;
    int which = check_group(o->r, o->op, o->ids, o->n, o->err);

    if (which < 0)
        return -1;
    o->group = mem_calloc(1, sizeof(*o->group));
    o->group->m = &o->r->m;
    resolve(&o->group->quote, o->r, (enum op)which, o->ids, o->n);
    return 0;
}

int railgauge_group_open(struct railgauge_group **out, const struct railgauge *r, const char *op,
                         const int *ids, int n, char text[256])
{
    struct err err = {0, ""};
    struct group_opening o = {r, op, ids, n, NULL, &err};
    int rc = guarded(open_group, &o, &err, text);

    *out = o.group;
    return rc;
}

double railgauge_group_time(const struct railgauge_group *g, size_t bytes)
{
    return collective_time(&g->quote, (double)bytes);
}

void railgauge_group_price(const struct railgauge_group *g, size_t bytes,
                           struct railgauge_price *price)
{
    struct cost c;

    collective_cost(&g->quote, g->m, (double)bytes, &c);
    *price = (struct railgauge_price){c.sec, c.lo, c.hi, basis_name[c.basis], ""};
    memcpy(price->source, c.source, sizeof(price->source));
}

void railgauge_group_close(struct railgauge_group *g)
{
    free(g);
}
