/* SPDX-License-Identifier: BSD-3-Clause */
/* nodes_greedy.c - sets that are worth a price where there are too many to price all: groups filled
 * one after the other, equal shares of groups, and moves from one kind of host to another. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "place/nodes_search.h"

enum { STARTS_MAX = 64, SEEDS_MAX = 4 };
#define NEAR_BYTES 16e6

/* The free hosts of a group; healthy ones first. */
struct crowd {
    int *at, count;
    double sec; /* to move NEAR_BYTES from the first group's first host */
    int index;
};

struct crowds {
    struct crowd *crowd;
    int count;
};

/* No exception is of the host, of an endpoint of it or of their leaf or rack. */
static void find_healthy(const struct search *s, bool *good)
{
    const struct matrix *m = &s->job->matrix;
    bool *bad = mem_calloc((size_t)m->topo.hosts, sizeof(*bad));

    for (int i = 0; i < m->exceptions; i++) {
        const struct exception *e = &m->exception[i];
        if (e->part == PART_HOST)
            bad[e->a] = true;
        for (int id = 0; id < m->topo.endpoints; id++)
            if ((e->part == PART_LEAF || e->part == PART_RACK) && matrix_touches(m, e, id))
                bad[m->topo.endpoint[id].place.at[LEVEL_HOST]] = true;
        if (e->part == PART_ENDPOINT)
            bad[m->topo.endpoint[e->a].place.at[LEVEL_HOST]] = true;
    }
    for (int i = 0; i < s->hosts; i++)
        good[i] = !bad[s->host[i]];
    free(bad);
}

static void add(struct crowd *c, int position)
{
    MEM_PUSH(c->at, c->count) = position;
}

/* Hosts without a group at this level are a group together. */
static void crowds_make(struct crowds *c, const struct search *s, int level, const bool *good)
{
    int groups = s->job->matrix.topo.group[level].count;
    struct crowd *all = mem_calloc((size_t)groups + 1, sizeof(*all));

    *c = (struct crowds){0};
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < s->hosts; i++) {
            int group = kinds_group(&s->kinds, s->kinds.of[i], level);
            if (good[i] == (pass == 0))
                add(&all[group < 0 ? groups : group], i);
        }
    for (int g = 0; g <= groups; g++)
        if (all[g].count)
            MEM_PUSH(c->crowd, c->count) = all[g];
    for (int i = 0; i < c->count; i++)
        c->crowd[i].index = i;
    free(all);
}

static void crowds_free(struct crowds *c)
{
    for (int i = 0; i < c->count; i++)
        free(c->crowd[i].at);
    free(c->crowd);
}

static int endpoint_of(const struct search *s, const struct crowd *c)
{
    return s->job->endpoint[s->job->first[s->host[c->at[0]]]];
}

static int nearest(const void *a, const void *b)
{
    const struct crowd *x = a, *y = b;

    if (x->sec != y->sec)
        return x->sec < y->sec ? -1 : 1;
    if (x->count != y->count)
        return y->count - x->count;
    return x->index - y->index;
}

static int largest(const void *a, const void *b)
{
    const struct crowd *x = a, *y = b;

    return x->count != y->count ? y->count - x->count : x->index - y->index;
}

/* The others in the order of their distance from crowd `start`, which comes first. */
static void sort_from(struct crowds *c, const struct search *s, int start)
{
    struct crowd first = c->crowd[start];
    int from = endpoint_of(s, &first);
    struct cost cost;

    memmove(c->crowd + 1, c->crowd, (size_t)start * sizeof(first));
    c->crowd[0] = first;
    for (int i = 1; i < c->count; i++) {
        matrix_pair(&s->job->matrix, from, endpoint_of(s, &c->crowd[i]), NEAR_BYTES, &cost);
        c->crowd[i].sec = isnan(cost.sec) ? INFINITY : cost.sec;
    }
    qsort(c->crowd + 1, (size_t)c->count - 1, sizeof(first), nearest);
}

/* At most `share` hosts of each crowd in turn. */
static void take(struct search *s, const struct crowds *c, int share, int *at)
{
    int n = 0;

    for (int i = 0; i < c->count && n < s->need; i++)
        for (int h = 0; h < share && h < c->crowd[i].count && n < s->need; h++)
            at[n++] = c->crowd[i].at[h];
    if (n == s->need)
        search_consider(s, at);
}

/* Shares of need / 2, need / 3 ... hosts of the crowds that have as many. */
static void take_shares(struct search *s, const struct crowds *c, int *at)
{
    for (int parts = 2; parts <= c->count && parts <= s->need; parts++) {
        struct crowds some = {mem_calloc((size_t)c->count, sizeof(*some.crowd)), 0};
        int share = s->need / parts;
        for (int i = 0; i < c->count; i++)
            if (c->crowd[i].count >= share)
                some.crowd[some.count++] = c->crowd[i];
        if (s->need % parts == 0 && some.count >= parts)
            take(s, &some, share, at);
        free(some.crowd);
    }
}

static void fill_level(struct search *s, int level, const bool *good, int *at)
{
    struct crowds c;

    crowds_make(&c, s, level, good);
    qsort(c.crowd, (size_t)c.count, sizeof(*c.crowd), largest);
    take(s, &c, s->hosts, at);
    for (int i = 0; i < c.count; i++)
        c.crowd[i].index = i;
    int starts = c.count < STARTS_MAX ? c.count : STARTS_MAX;
    for (int start = 0; start < starts && s->priced < s->budget; start++) {
        int i = 0; /* where that crowd is by now */
        while (c.crowd[i].index != start)
            i++;
        sort_from(&c, s, i);
        take(s, &c, s->hosts, at);
        if (start < SEEDS_MAX)
            take_shares(s, &c, at);
    }
    crowds_free(&c);
}

void search_fill(struct search *s)
{
    static const enum level levels[] = {LEVEL_DOMAIN, LEVEL_RACK, LEVEL_LEAF, LEVEL_SPINE};
    int *at = mem_calloc((size_t)s->need, sizeof(*at)), n = 0;
    bool *good = mem_calloc((size_t)s->hosts, sizeof(*good));

    for (int i = 0; i < s->need; i++)
        at[i] = i;
    search_consider(s, at); /* as they come */
    find_healthy(s, good);
    for (int i = 0; i < s->hosts && n < s->need; i++)
        if (good[i])
            at[n++] = i;
    if (n == s->need)
        search_consider(s, at);
    for (size_t l = 0; l < sizeof(levels) / sizeof(*levels); l++)
        if (s->job->matrix.topo.group[levels[l]].count > 1)
            fill_level(s, (int)levels[l], good, at);
    free(good);
    free(at);
}

/* One host of kind `to` in place of one of kind `from`; false: there is none. */
static bool swap(const struct search *s, const int *at, int from, int to, int *out)
{
    const struct host_kind *t = &s->kinds.kind[to];
    int last = -1, have = 0;

    for (int i = 0; i < s->need; i++) {
        if (s->kinds.of[at[i]] == from)
            last = i;
        have += s->kinds.of[at[i]] == to;
    }
    if (last < 0 || have == t->count)
        return false;
    memcpy(out, at, (size_t)s->need * sizeof(*out));
    for (int i = 0; i < t->count; i++) {
        bool taken = false;
        for (int n = 0; n < s->need && !taken; n++)
            taken = at[n] == t->at[i];
        if (!taken) {
            out[last] = t->at[i];
            break;
        }
    }
    return true;
}

/* Take the first move that helps, until none does. */
static void improve(struct search *s, int *at, double sec)
{
    int *out = mem_calloc((size_t)s->need, sizeof(*out)), kinds = s->kinds.count;

    for (bool better = true; better;) {
        better = false;
        for (int from = 0; from < kinds && !better; from++)
            for (int to = 0; to < kinds && !better && s->priced < s->budget; to++) {
                if (to == from || !swap(s, at, from, to, out))
                    continue;
                double now = search_consider(s, out);
                if (!(now < sec))
                    continue;
                sec = now;
                better = true;
                memcpy(at, out, (size_t)s->need * sizeof(*at));
            }
    }
    free(out);
}

void search_moves(struct search *s)
{
    int *at = mem_calloc((size_t)s->need, sizeof(*at));
    bool *used = mem_calloc((size_t)s->pools + 1, sizeof(*used));
    int pools = s->pools;

    for (int seed = 0; seed < SEEDS_MAX; seed++) {
        int best = -1;
        for (int i = 0; i < pools; i++)
            if (!used[i] && (best < 0 || s->pool[i].sec < s->pool[best].sec))
                best = i;
        if (best < 0)
            break;
        used[best] = true;
        memcpy(at, s->pool[best].at, (size_t)s->need * sizeof(*at));
        improve(s, at, s->pool[best].sec);
    }
    free(used);
    free(at);
}
