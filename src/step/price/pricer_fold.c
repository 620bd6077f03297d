/* SPDX-License-Identifier: BSD-3-Clause */
/* pricer_fold.c - groups that lie alike are one kind. */
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
        for (int e = 0; single && e < 2; e++)
            if (ends[e] >= 0 && ends[e] < m->topo.endpoints)
                mark[ends[e]] += mix((uint64_t)i + 1000);
        for (int e = 0; !single && e < m->topo.endpoints; e++)
            if (matrix_touches(m, x, e))
                mark[e] += mix((uint64_t)i + 1000);
    }
    return mark;
}

static void look_up(struct places *p, int id)
{
    const struct topo *t = &p->matrix->topo;

    for (int k = 0; k < LEVEL_COUNT; k++) {
        int at = t->endpoint[id].place.at[k];
        p->at[id].key[k] = at < 0 ? -1 : p->base[k] + at;
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
    for (int i = 0; i < m->exceptions; i++)
        p->pairs |= m->exception[i].part == PART_PAIR;
    for (int k = 0; k < LEVEL_COUNT; k++)
        p->base[k + 1] = p->base[k] + (k == LEVEL_HOST ? t->hosts : t->group[k].count);
    p->base[KEYS] = p->base[KEY_NIC] + t->nics + t->hosts + t->endpoints;
    p->at = mem_calloc((size_t)t->endpoints, sizeof(*p->at));
    p->known = mem_calloc((size_t)t->endpoints, sizeof(*p->known));
    p->slot = mem_calloc((size_t)p->base[KEYS], sizeof(*p->slot));
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
    free(p->ids);
    free(p->near);
    free(p->touched);
    free(p->at);
    free(p->known);
    free(p->mark);
    free(p->slot);
    memset(p, 0, sizeof(*p));
}

/* Stamps begin anew after four thousand million groups. */
static void next_stamp(struct places *p)
{
    if (++p->stamp)
        return;
    memset(p->slot, 0, (size_t)p->base[KEYS] * sizeof(*p->slot));
    p->stamp = 1;
}

/* The two keys are joined in this group, unless one of them was to another. */
static bool joins(struct places *p, int one, int other)
{
    struct label_slot *s = &p->slot[one];

    if (s->stamp != p->stamp)
        *s = (struct label_slot){p->stamp, other};
    return s->label == other;
}

/* Do kinds a and b of keys part all endpoints alike?  b -1: does a give each its own, or all the
 * same one? */
static bool part_alike(struct places *p, int a, int b)
{
    bool own = true, same = true, alike = b >= 0;

    next_stamp(p);
    for (int e = 0; e < p->matrix->topo.endpoints; e++) {
        int x = p->at[e].key[a], y = b < 0 ? -1 : p->at[e].key[b];
        if (b >= 0 && x >= 0 && y >= 0)
            alike &= joins(p, x, y) && joins(p, y, x);
        else if (b >= 0)
            alike &= x == y;
        else
            own &= x >= 0 && joins(p, x, e);
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

/* Equal for groups whose members lie alike, position by position: hosts, domains, ... are numbered
 * as they appear in the group. */
static uint64_t signature(struct places *p, const struct span *span, int group)
{
    int next[KEYS] = {0}, first = span_rank(span, group, 0), keys = p->keys;
    uint64_t sum = 0;

    next_stamp(p);
    for (int i = 0; i < span->size; i++) {
        int rank = first + i * span->stride;
        const struct rank_place *r = &p->at[p->order[rank]];
        uint64_t labels = r->mark;
        for (int k = 0; k < keys; k++) {
            int key = r->key[k];
            struct label_slot *s = key < 0 ? NULL : &p->slot[key];
            if (s && s->stamp != p->stamp)
                *s = (struct label_slot){p->stamp, next[k]++};
            labels = labels * 0x100000001b3u + (uint64_t)(s ? s->label + 1 : 0);
        }
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

/* Equal for ways that cost the same. */
static uint64_t ways_mix(uint64_t sum, const struct ways *w)
{
    const struct shape *s = &w->shape;
    const int whole[] = {s->ranks, s->domains, s->per_domain, s->nodes,    s->nics,
                         s->racks, w->inner,   w->outer,      w->crossings};

    for (size_t i = 0; i < sizeof(whole) / sizeof(*whole); i++)
        sum = map_mix(sum, (uint64_t)(unsigned)whole[i]);
    for (int t = 0; t < TIER_MAX; t++)
        sum = mix_double(sum, w->share[t]);
    sum = mix_double(mix_double(sum, w->inner_factor), w->outer_factor);
    return mix_double(sum, w->alpha_add);
}

/* The exceptions that touch a member, ascending; returns how many.  Members of one part in a row have
 * one mark. */
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

/* The kind that prices as this group does; a new one if there is none. */
static int kind_of(struct folded *f, struct places *p, int index)
{
    struct groups *g = &f->groups;
    struct group_kind kind = {.index = index};
    struct members of = {p->ids, g->span.size, NULL};

    groups_ids(g, p->order, index, p->ids);
    int near = near_of(p, p->ids, g->span.size);
    ways_of_some(&kind.ring, p->matrix, &of, OP_ALL_GATHER, p->near, near);
    kind.across = kind.ring;
    if (p->pairs && near)
        ways_of_some(&kind.across, p->matrix, &of, OP_ALL_TO_ALL, p->near, near);
    kind.ring.at_once = kind.across.at_once = g->total;
    int *at = map_at(&f->kinds, ways_mix(ways_mix(1, &kind.ring), &kind.across), NULL, NULL);
    if (*at == MAP_NONE) {
        *at = g->kinds;
        MEM_PUSH(g->kind, g->kinds) = kind;
    }
    return *at;
}

void folded_open(struct folded *f, struct span span, int ranks)
{
    int total = span_groups(&span, ranks);

    *f = (struct folded){.groups = {.span = span, .total = total}, .moved = true};
    f->of = mem_ints(total, -1);
}

void folded_move(struct folded *f, int rank)
{
    int group = span_group(&f->groups.span, rank);

    if (group >= f->groups.total || f->of[group] < 0)
        return;
    f->groups.kind[f->of[group]].like--;
    f->of[group] = -1;
    f->moved = true;
}

void folded_find(struct folded *f, struct places *p)
{
    struct groups *g = &f->groups;

    if (!f->moved)
        return;
    for (int i = 0; i < g->total; i++) {
        if (f->of[i] >= 0)
            continue;
        int *kind = map_at(&f->seen, signature(p, &g->span, i), NULL, NULL);
        if (*kind == MAP_NONE)
            *kind = kind_of(f, p, i);
        f->of[i] = *kind;
        g->kind[*kind].like++;
    }
    for (int i = g->total; i-- > 0;)
        g->kind[f->of[i]].index = i; /* the first of each kind, as the ranks lie now */
    f->moved = false;
    f->turn++;
}

void folded_forget(struct folded *f)
{
    for (int i = 0; i < f->groups.total; i++)
        f->of[i] = -1;
    f->groups.kinds = 0;
    f->moved = true;
    map_free(&f->seen);
    map_free(&f->kinds);
}

void folded_free(struct folded *f)
{
    free(f->groups.kind);
    free(f->of);
    map_free(&f->seen);
    map_free(&f->kinds);
}
