/* SPDX-License-Identifier: BSD-3-Clause */
/* pricer_fold.c - fold groups at equal positions into one kind. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "step/price/pricer_impl.h"

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
        uint64_t one = mix(2 * (uint64_t)i + 1000), other = one;
        if (x->side != SIDE_BOTH) /* flows of one direction: the order of the ends counts */
            other = mix(2 * (uint64_t)i + 1001);
        for (int e = 0; single && e < 2; e++)
            if (ends[e] >= 0 && ends[e] < m->topo.endpoints)
                mark[ends[e]] += e ? other : one;
        for (int e = 0; !single && e < m->topo.endpoints; e++)
            if (matrix_touches(m, x, e))
                mark[e] += part_at(m, x->part, e) == x->a ? one : other;
    }
    return mark;
}

/* Key for "not visible". */
static int nowhere(const struct places *p)
{
    return p->base[KEYS];
}

static void look_up(struct places *p, int id)
{
    const struct topo *t = &p->matrix->topo;

    for (int k = 0; k < LEVEL_COUNT; k++) {
        int at = t->endpoint[id].place.at[k];
        p->at[id].key[k] = at < 0 ? nowhere(p) : p->base[k] + at;
    }
    p->at[id].key[KEY_NIC] = p->base[KEY_NIC] + shape_nic(t, id);
    p->at[id].mark = p->mark[id];
    p->known[id] = true;
}

void places_move(struct places *p, int rank, int endpoint)
{
    p->order[rank] = endpoint;
    if (!p->known[endpoint])
        look_up(p, endpoint);
}

void places_open(struct places *p, const struct matrix *m, const int *order, int ranks)
{
    const struct topo *t = &m->topo;

    *p = (struct places){.matrix = m, .ranks = ranks, .mark = places_marks(m), .keys = KEYS};
    for (int k = 0; k < LEVEL_COUNT; k++)
        p->base[k + 1] = p->base[k] + (k == LEVEL_HOST ? t->hosts : t->group[k].count);
    p->base[KEYS] = p->base[KEY_NIC] + t->nics + t->hosts + t->endpoints;
    p->at = mem_calloc((size_t)t->endpoints, sizeof(*p->at));
    p->known = mem_calloc((size_t)t->endpoints, sizeof(*p->known));
    p->slot = mem_calloc((size_t)p->base[KEYS] + 1, sizeof(*p->slot));
    p->order = mem_calloc((size_t)ranks, sizeof(*p->order));
    p->ids = mem_calloc((size_t)ranks, sizeof(*p->ids));
    p->near = mem_calloc((size_t)m->exceptions + 1, sizeof(*p->near));
    p->touched = mem_calloc((size_t)m->exceptions + 1, sizeof(*p->touched));
    for (int r = 0; r < ranks; r++)
        places_move(p, r, order ? order[r] : r);
}

void places_close(struct places *p)
{
    free(p->order);
    free(p->base_order);
    free(p->ids);
    free(p->near);
    free(p->touched);
    free(p->at);
    free(p->known);
    free(p->mark);
    free(p->slot);
    memset(p, 0, sizeof(*p));
}

/* The stamp wraps after 2^32 groups.  "Not visible" has label 0 in every group. */
static void next_stamp(struct places *p)
{
    if (++p->stamp == 0) {
        memset(p->slot, 0, (size_t)p->base[KEYS] * sizeof(*p->slot));
        p->stamp = 1;
    }
    p->slot[nowhere(p)] = (struct label_slot){p->stamp, 0};
}

/* Join two keys in this group.  False if one is already joined to another key. */
static bool joins(struct places *p, int one, int other)
{
    struct label_slot *s = &p->slot[one];

    if (s->stamp != p->stamp)
        *s = (struct label_slot){p->stamp, other};
    return s->label == other;
}

/* True if key kinds a and b divide all endpoints equally.  b -1: true if a gives each endpoint a
 * key of its own, or the same key to all. */
static bool part_alike(struct places *p, int a, int b)
{
    bool own = true, same = true, alike = b >= 0;

    next_stamp(p);
    for (int e = 0; e < p->matrix->topo.endpoints; e++) {
        int x = p->at[e].key[a], y = b < 0 ? nowhere(p) : p->at[e].key[b];
        if (x != nowhere(p) && y != nowhere(p))
            alike &= joins(p, x, y) && joins(p, y, x);
        else if (b >= 0)
            alike &= x == y;
        else
            own &= x != nowhere(p) && joins(p, x, e);
        same &= x == p->at[0].key[a];
    }
    return b >= 0 ? alike : own || same;
}

void places_keys(struct places *p)
{
    int endpoints = p->matrix->topo.endpoints, kept[KEYS], n = 0;

    for (int e = 0; e < endpoints; e++)
        if (!p->known[e])
            look_up(p, e);
    for (int k = 0; k < KEYS; k++) {
        bool more = !part_alike(p, k, -1);
        for (int i = 0; i < n && more; i++)
            more = !part_alike(p, k, kept[i]);
        if (more)
            kept[n++] = k;
    }
    for (int e = 0; e < endpoints; e++)
        for (int i = 0; i < n; i++)
            p->at[e].key[i] = p->at[e].key[kept[i]];
    p->keys = n;
}

/* Returns the label of a key in the current group, a new one at first use.  "Not visible" is
 * labelled beforehand and never written. */
static inline int label_of(struct label_slot *s, unsigned stamp, int *next)
{
    if (s->stamp != stamp)
        *s = (struct label_slot){stamp, ++*next};
    return s->label;
}

/* Returns a hash that is equal for groups with members at equal positions: hosts, domains, ... are
 * numbered in order of appearance in the group, from 1. */
static uint64_t signature(struct places *p, const struct span *span, int group)
{
    int next[KEYS] = {0}, rank = span_rank(span, group, 0), keys = p->keys, stride = span->stride;
    int end = rank + span->size * stride;
    struct label_slot *slot = p->slot;
    uint64_t sum = 0;

    next_stamp(p);
    const unsigned stamp = p->stamp;
    for (; rank < end; rank += stride) {
        const struct rank_place *r = &p->at[p->order[rank]];
        uint64_t labels = r->mark;
        for (int k = 0; k < keys; k++)
            labels =
                labels * 0x100000001b3u + (uint64_t)label_of(&slot[r->key[k]], stamp, &next[k]);
        sum = map_mix(sum, labels);
    }
    return sum;
}

static uint64_t mix_double(uint64_t sum, double x)
{
    uint64_t bits;

    memcpy(&bits, &x, sizeof(bits));
    return map_mix(sum, bits);
}

/* Hash that is equal for paths of equal cost. */
static uint64_t ways_mix(uint64_t sum, const struct ways *w)
{
    const struct shape *s = &w->shape;
    const int whole[] = {s->ranks, s->domains, s->per_domain, s->nodes,    s->nics,
                         s->racks, w->inner,   w->outer,      w->crossings};

    for (size_t i = 0; i < sizeof(whole) / sizeof(*whole); i++)
        sum = map_mix(sum, (uint64_t)(unsigned)whole[i]);
    for (int t = 0; t < TIER_MAX; t++)
        sum = mix_double(sum, w->share[t]);
    sum = mix_double(sum, w->inner_factor);
    for (int i = 0; i < SCHEDULES; i++)
        sum = mix_double(mix_double(sum, w->slow[i].outer), w->slow[i].add);
    return sum;
}

/* List the exceptions that touch a member, ascending.  Returns their number.  Consecutive members
 * of one part have the same mark. */
static int near_of(struct places *p, const int *ids, int n)
{
    const struct matrix *m = p->matrix;
    uint64_t last = 0;
    int found = 0;

    for (int i = 0; i < n; i++) {
        uint64_t mark = p->at[ids[i]].mark;
        if (!mark || mark == last)
            continue;
        last = mark;
        for (int x = 0; x < m->exceptions; x++)
            p->touched[x] |= matrix_touches(m, &m->exception[x], ids[i]);
    }
    for (int x = 0; last && x < m->exceptions; x++) {
        if (p->touched[x])
            p->near[found++] = x;
        p->touched[x] = false;
    }
    return found;
}

/* Returns the kind with the same price as this group, a new one if there is none. */
static int kind_of(struct folded *f, struct places *p, int index)
{
    struct groups *g = &f->groups;
    struct group_kind kind = {.index = index};
    struct members of = {p->ids, g->span.size, NULL};

    groups_ids(g, p->order, index, p->ids);
    int near = near_of(p, p->ids, g->span.size);
    ways_of_some(&kind.ring, p->matrix, &of, OP_ALL_GATHER, p->near, near);
    kind.ring.at_once = g->total;
    kind.next = kind.across = kind.ring;
    if (near) {
        ways_parts(&kind.next, p->matrix, &of, OP_SENDRECV, p->near, near);
        ways_parts(&kind.across, p->matrix, &of, OP_ALL_TO_ALL, p->near, near);
    }
    uint64_t sum = ways_mix(ways_mix(ways_mix(1, &kind.ring), &kind.next), &kind.across);
    int *at = map_at(&f->kinds, sum, NULL, NULL);
    if (*at == MAP_NONE) {
        *at = g->kinds;
        MEM_PUSH(g->kind, g->kinds) = kind;
    }
    return *at;
}

void folded_open(struct folded *f, struct span span, const struct places *p)
{
    int total = span_groups(&span, p->ranks);

    *f = (struct folded){.groups = {.span = span, .total = total}, .moved = true};
    f->of = mem_ints(total, -1);
}

/* Divide only once per group. */
static void find_groups(struct folded *f, int ranks)
{
    f->group = mem_calloc((size_t)ranks, sizeof(*f->group));
    for (int r = 0; r < ranks; r++)
        f->group[r] = span_group(&f->groups.span, r);
}

void folded_move(struct folded *f, const struct places *p, const int *order, const int *rank, int n)
{
    if (!f->group)
        find_groups(f, p->ranks);
    for (int i = 0; i < n; i++) {
        int r = rank[i], group = f->group[r], kind = group < f->groups.total ? f->of[group] : -1;
        if (f->base && group < f->groups.total)
            f->away[group] += (p->order[r] == p->base_order[r]) - (order[r] == p->base_order[r]);
        if (kind < 0)
            continue;
        f->groups.kind[kind].like--;
        f->of[group] = -1;
        f->moved = true;
    }
}

/* Returns the kind of a group; the base's kind if all its ranks are back at the base. */
static int find_kind(struct folded *f, struct places *p, int i)
{
    bool at_base = f->base && f->away[i] == 0;

    if (at_base && f->base[i] >= 0)
        return f->base[i];
    int *kind = map_at(&f->seen, signature(p, &f->groups.span, i), NULL, NULL);
    if (*kind == MAP_NONE)
        *kind = kind_of(f, p, i);
    if (at_base)
        f->base[i] = *kind;
    return *kind;
}

void folded_find(struct folded *f, struct places *p)
{
    struct groups *g = &f->groups;

    if (!f->moved)
        return;
    for (int i = 0; i < g->total; i++) {
        if (f->of[i] >= 0)
            continue;
        f->of[i] = find_kind(f, p, i);
        g->kind[f->of[i]].like++;
    }
    for (int i = g->total; i-- > 0;)
        g->kind[f->of[i]].index = i; /* first group of each kind in the current order */
    f->moved = false;
    f->turn++;
}

void folded_forget(struct folded *f)
{
    for (int i = 0; i < f->groups.total; i++)
        f->of[i] = -1;
    for (int i = 0; f->base && i < f->groups.total; i++)
        f->base[i] = -1;
    f->groups.kinds = 0;
    f->moved = true;
    map_free(&f->seen);
    map_free(&f->kinds);
}

void folded_free(struct folded *f)
{
    free(f->groups.kind);
    free(f->of);
    free(f->group);
    free(f->base);
    map_free(&f->seen);
    map_free(&f->kinds);
}
