/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/groups.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"

/* What two ranks may share: the levels, and the NIC. */
enum { KEY_NIC = LEVEL_COUNT, KEYS };

struct rank_place {
    int key[KEYS]; /* index into places.slot, -1: not visible */
    uint64_t mark; /* made of the exceptions that touch the endpoint, 0: none */
};

/* The label of a key in the group that was stamped so. */
struct label_slot {
    unsigned stamp;
    int label;
};

/* splitmix64's finaliser (Vigna 2015). */
static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

uint64_t *places_marks(const struct matrix *m)
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
            if (matrix_touches(m, x, e))
                mark[e] += mix((uint64_t)i + 1000);
    }
    return mark;
}

/* The NIC of an endpoint as shape.c counts them: where none was seen, a GPU has its own and the
 * CPUs of a host share one. */
static int nic_of(const struct topo *t, int id)
{
    const struct endpoint *e = &t->endpoint[id];

    if (e->nic >= 0)
        return e->nic;
    return t->nics + (e->kind == ENDPOINT_GPU ? t->hosts + id : e->place.at[LEVEL_HOST]);
}

void places_open(struct places *p, const struct matrix *m, const int *order, int ranks)
{
    const struct topo *t = &m->topo;
    int base[KEYS + 1] = {0};
    uint64_t *mark = places_marks(m);

    *p = (struct places){.matrix = m, .order = order, .ranks = ranks};
    for (int i = 0; i < m->exceptions; i++)
        p->pairs |= m->exception[i].part == PART_PAIR;
    p->rank = mem_calloc((size_t)ranks, sizeof(*p->rank));
    for (int k = 0; k < LEVEL_COUNT; k++)
        base[k + 1] = base[k] + (k == LEVEL_HOST ? t->hosts : t->group[k].count);
    base[KEYS] = base[KEY_NIC] + t->nics + t->hosts + t->endpoints;
    for (int r = 0; r < ranks; r++) {
        int id = order ? order[r] : r;
        for (int k = 0; k < LEVEL_COUNT; k++) {
            int at = t->endpoint[id].place.at[k];
            p->rank[r].key[k] = at < 0 ? -1 : base[k] + at;
        }
        p->rank[r].key[KEY_NIC] = base[KEY_NIC] + nic_of(t, id);
        p->rank[r].mark = mark[id];
    }
    p->slot = mem_calloc((size_t)base[KEYS], sizeof(*p->slot));
    free(mark);
}

void places_close(struct places *p)
{
    free(p->rank);
    free(p->slot);
    memset(p, 0, sizeof(*p));
}

/* Equal for groups whose members lie alike, position by position: hosts, domains, ... are numbered
 * as they appear in the group. */
static uint64_t signature(struct places *p, const struct span *span, int group)
{
    int next[KEYS] = {0}, first = span_rank(span, group, 0);
    uint64_t sum = 0;

    p->stamp++;
    for (int i = 0; i < span->size; i++) {
        const struct rank_place *r = &p->rank[first + i * span->stride];
        uint64_t labels = r->mark;
        for (int k = 0; k < KEYS; k++) {
            struct label_slot *s = r->key[k] < 0 ? NULL : &p->slot[r->key[k]];
            if (s && s->stamp != p->stamp)
                *s = (struct label_slot){p->stamp, next[k]++};
            labels = labels * 0x100000001b3u + (uint64_t)(s ? s->label + 1 : 0);
        }
        sum = map_mix(sum, labels);
    }
    return sum;
}

void groups_ids(const struct groups *g, const int *order, int index, int *ids)
{
    for (int i = 0; i < g->span.size; i++) {
        int rank = span_rank(&g->span, index, i);
        ids[i] = order ? order[rank] : rank;
    }
}

static bool ways_equal(const struct ways *a, const struct ways *b)
{
    const struct shape *s = &a->shape, *t = &b->shape;

    return s->ranks == t->ranks && s->domains == t->domains && s->per_domain == t->per_domain &&
           s->nodes == t->nodes && s->nics == t->nics && s->racks == t->racks &&
           a->inner == b->inner && a->outer == b->outer && a->crossings == b->crossings &&
           a->inner_factor == b->inner_factor && a->outer_factor == b->outer_factor &&
           a->alpha_add == b->alpha_add && !memcmp(a->share, b->share, sizeof(a->share));
}

/* The kind that prices as this group does; a new one if there is none. */
static int kind_of(struct groups *g, const struct places *p, int index, int *ids)
{
    struct group_kind kind = {.index = index};

    groups_ids(g, p->order, index, ids);
    ways_of(&kind.ring, p->matrix, ids, g->span.size, OP_ALL_GATHER, false);
    kind.across = kind.ring;
    if (p->pairs)
        ways_of(&kind.across, p->matrix, ids, g->span.size, OP_ALL_TO_ALL, false);
    kind.ring.at_once = kind.across.at_once = g->total;
    for (int k = 0; k < g->kinds; k++)
        if (ways_equal(&g->kind[k].ring, &kind.ring) &&
            ways_equal(&g->kind[k].across, &kind.across))
            return k;
    MEM_PUSH(g->kind, g->kinds) = kind;
    return g->kinds - 1;
}

void groups_find(struct groups *g, struct places *p, struct span span)
{
    struct map known = {0}; /* signature -> kind */
    int *ids = mem_calloc((size_t)span.size, sizeof(*ids));

    *g = (struct groups){.span = span, .total = span_groups(&span, p->ranks)};
    for (int i = 0; i < g->total; i++) {
        int *kind = map_at(&known, signature(p, &span, i), NULL, NULL);
        if (*kind == MAP_NONE)
            *kind = kind_of(g, p, i, ids);
        g->kind[*kind].like++;
    }
    map_free(&known);
    free(ids);
}

void groups_free(struct groups *g)
{
    free(g->kind);
    memset(g, 0, sizeof(*g));
}
