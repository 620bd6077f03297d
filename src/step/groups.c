/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/groups.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* splitmix64's finaliser (Vigna 2015). */
static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static bool touches(const struct matrix *m, const struct exception *x, int endpoint)
{
    const struct place *p = &m->topo.endpoint[endpoint].place;

    switch (x->part) {
    case PART_HOST:
        return p->at[LEVEL_HOST] == x->a;
    case PART_RACK_PAIR:
        return p->at[LEVEL_RACK] == x->a || p->at[LEVEL_RACK] == x->b;
    default:
        return endpoint == x->a || endpoint == x->b;
    }
}

uint64_t *groups_mark(const struct matrix *m)
{
    uint64_t *mark = mem_calloc((size_t)m->topo.endpoints, sizeof(*mark));

    for (int i = 0; i < m->exceptions; i++) {
        const struct exception *x = &m->exception[i];
        bool single = x->part == PART_ENDPOINT || x->part == PART_PAIR;
        int ends[2] = {x->a, x->b};
        for (int e = 0; single && e < 2; e++)
            if (ends[e] >= 0 && ends[e] < m->topo.endpoints)
                mark[ends[e]] += mix((uint64_t)i + 1000);
        for (int e = 0; !single && e < m->topo.endpoints; e++)
            if (touches(m, x, e))
                mark[e] += mix((uint64_t)i + 1000);
    }
    return mark;
}

static int tier_of(const struct matrix *m, int a, int b)
{
    const struct endpoint *e = m->topo.endpoint;

    return topo_tier(m->topo.tier, m->topo.tiers, &e[a].place, &e[b].place);
}

/* Equal for groups that are alike. */
static uint64_t signature(const struct matrix *m, const int *ids, int n, const uint64_t *mark)
{
    struct shape s;
    uint64_t sum = 0;

    shape_of(&s, &m->topo, ids, n);
    for (int i = 0; i < n; i++) {
        sum += mark[ids[i]];
        if (n > 1)
            sum += mix((uint64_t)tier_of(m, ids[i], ids[(i + 1) % n]));
    }
    const int part[] = {s.ranks, s.domains, s.per_domain, s.nodes, s.nics, s.racks};
    for (size_t i = 0; i < sizeof(part) / sizeof(*part); i++)
        sum = mix(sum ^ (uint64_t)part[i]);
    return sum;
}

void groups_ids(const struct groups *g, const int *order, int index, int *ids)
{
    for (int i = 0; i < g->span.size; i++) {
        int rank = span_rank(&g->span, index, i);
        ids[i] = order ? order[rank] : rank;
    }
}

void groups_find(struct groups *g, const struct matrix *m, struct span span, int ranks,
                 const int *order, const uint64_t *mark)
{
    uint64_t *known = NULL;
    int knowns = 0, *ids;

    memset(g, 0, sizeof(*g));
    g->span = span;
    g->total = span_groups(&span, ranks);
    ids = mem_calloc((size_t)g->span.size, sizeof(*ids));
    for (int i = 0; i < g->total; i++) {
        int k = 0;
        groups_ids(g, order, i, ids);
        uint64_t sig = signature(m, ids, g->span.size, mark);
        while (k < knowns && known[k] != sig)
            k++;
        if (k == knowns) {
            int first = g->kinds;
            MEM_PUSH(known, knowns) = sig;
            MEM_PUSH(g->index, g->kinds) = i;
            MEM_PUSH(g->like, first) = 0;
        }
        g->like[k]++;
    }
    free(known);
    free(ids);
}

void groups_free(struct groups *g)
{
    free(g->index);
    free(g->like);
    memset(g, 0, sizeof(*g));
}

void groups_slowest(const struct groups *g, const struct matrix *m, const int *order, enum op op,
                    double bytes, struct cost *out, int *index)
{
    int *ids = mem_calloc((size_t)g->span.size, sizeof(*ids));

    for (int k = 0; k < g->kinds; k++) {
        struct cost c;
        groups_ids(g, order, g->index[k], ids);
        matrix_collective_beside(m, op, ids, g->span.size, g->total, bytes, &c);
        if (k == 0 || isnan(c.sec) || c.sec > out->sec) {
            *out = c;
            *index = g->index[k];
        }
        if (isnan(c.sec))
            break;
    }
    free(ids);
}
