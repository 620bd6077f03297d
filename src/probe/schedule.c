/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/schedule.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static void push(struct pairs *out, int a, int b)
{
    out->pair = mem_grow(out->pair, (size_t)out->count, sizeof(*out->pair));
    out->pair[out->count][0] = a;
    out->pair[out->count++][1] = b;
}

int schedule_circle_rounds(int n)
{
    return n - 1 + n % 2;
}

void schedule_circle(struct pairs *out, const int *v, int n, int r)
{
    int m = n + n % 2; /* an odd one gets a partner that does not exist */

    for (int i = 0; i < m / 2; i++) {
        int a = (r + i) % (m - 1), b = i ? (r - i + m - 1) % (m - 1) : m - 1;
        int lo = a < b ? a : b, hi = a < b ? b : a;
        if (hi < n)
            push(out, v[lo], v[hi]);
    }
}

void schedule_shift(struct pairs *out, const int *v, int n, int d)
{
    for (int i = 0; i + d < n; i++)
        if (i / d % 2 == 0)
            push(out, v[i], v[i + d]);
}

int schedule_find_rounds(int n)
{
    int all = schedule_circle_rounds(n);

    return all < FIND_ROUNDS ? all : FIND_ROUNDS;
}

/* The k-th of 0 .. n - 1 in an order of chance, always the same. */
static int by_chance(int k, int n)
{
    int *v = mem_calloc((size_t)n, sizeof(*v));
    struct rng rng;

    rng_seed(&rng, (unsigned)n);
    for (int i = 0; i < n; i++)
        v[i] = i;
    rng_shuffle(&rng, v, n);
    int chosen = v[k];
    free(v);
    return chosen;
}

void schedule_find(struct pairs *out, const int *v, int n, int r)
{
    int all = schedule_circle_rounds(n), d = 1 + r / 2, from = r % 2 ? d : 0;

    if (all <= FIND_ROUNDS)
        schedule_circle(out, v, n, r);
    else if (d <= FIND_NEAR)
        schedule_shift(out, v + from, n - from, d);
    else
        schedule_circle(out, v, n, by_chance(r - 2 * FIND_NEAR, all));
}

struct leaf {
    int *member, members;
};

static void pair_leaves(struct pairs *out, const struct topo *t, const struct leaf *a,
                        const struct leaf *b)
{
    for (int i = 0; i < a->members && i < b->members; i++) {
        const int *x = t->endpoint[a->member[i]].place.at, *y = t->endpoint[b->member[i]].place.at;
        bool beside = x[LEVEL_DOMAIN] >= 0 && x[LEVEL_DOMAIN] == y[LEVEL_DOMAIN];
        if (!beside && x[LEVEL_HOST] != y[LEVEL_HOST])
            push(out, a->member[i], b->member[i]);
    }
}

/* The place of a leaf's rail; 0: none known. */
static int rail_of(const struct topo *t, const struct leaf *l)
{
    return l->members ? t->endpoint[l->member[0]].place.at[LEVEL_RAIL] + 1 : 0;
}

void schedule_uplinks(struct pairs *out, const struct topo *t, const int *order, bool last)
{
    int leaves = t->group[LEVEL_LEAF].count, rails = t->group[LEVEL_RAIL].count + 1;
    struct leaf *leaf = mem_calloc((size_t)leaves + 1, sizeof(*leaf));
    struct {
        int leaves, seen, before;
    } *rail = mem_calloc((size_t)rails, sizeof(*rail));

    for (int i = 0; i < t->endpoints; i++) {
        int at = t->endpoint[order[i]].place.at[LEVEL_LEAF];
        if (at >= 0)
            MEM_PUSH(leaf[at].member, leaf[at].members) = order[i];
    }
    for (int i = 0; i < leaves; i++)
        rail[rail_of(t, &leaf[i])].leaves += leaf[i].members > 0;
    for (int i = 0; i < leaves; i++) {
        int r = rail_of(t, &leaf[i]);
        if (!leaf[i].members)
            continue;
        if (rail[r].seen++ % 2 != last && rail[r].seen > 1 && (!last || rail[r].leaves % 2))
            pair_leaves(out, t, &leaf[rail[r].before], &leaf[i]);
        rail[r].before = i;
    }
    for (int i = 0; i < leaves; i++)
        free(leaf[i].member);
    free(leaf);
    free(rail);
}

struct place_key {
    int key[LEVEL_COUNT], id;
};

static int by_place(const void *a, const void *b)
{
    const struct place_key *x = a, *y = b;

    for (int i = 0; i < LEVEL_COUNT; i++)
        if (x->key[i] != y->key[i])
            return x->key[i] < y->key[i] ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

int *schedule_leaf_order(const struct topo *t)
{
    struct place_key *k = mem_calloc((size_t)t->endpoints, sizeof(*k));
    int *order = mem_calloc((size_t)t->endpoints, sizeof(*order));

    for (int i = 0; i < t->endpoints; i++) {
        const struct endpoint *e = &t->endpoint[i];
        struct place_key one = {{e->place.at[LEVEL_RACK], e->place.at[LEVEL_DOMAIN],
                                 e->place.at[LEVEL_HOST], e->local, 0},
                                i};
        k[i] = one;
    }
    qsort(k, (size_t)t->endpoints, sizeof(*k), by_place);
    for (int i = 0; i < t->endpoints; i++)
        order[i] = k[i].id;
    free(k);
    return order;
}

/* --- class matchings --- */

struct slot {
    int key[LEVEL_COUNT]; /* coordinates that the tier wants equal; others 0 */
    int position;         /* in leaf order */
};

static int by_slot(const void *a, const void *b)
{
    const struct slot *x = a, *y = b;
    int c = memcmp(x->key, y->key, sizeof(x->key)); /* any total order groups equal keys */

    return c ? c : (x->position > y->position) - (x->position < y->position);
}

enum { SCAN_MAX = 4096 }; /* candidates looked at for one endpoint before it sits out */

/* Pair up one bucket: endpoints that share the tier's coordinates. */
static void match_bucket(struct pairs *out, const struct topo *t, const int *order, int tier,
                         const struct slot *slot, int n, int distance, char *taken)
{
    for (int i = 0; i < n; i++) {
        int a = order[slot[i].position], limit = n < SCAN_MAX ? n : SCAN_MAX;
        for (int k = 0; k < limit && !taken[a]; k++) {
            int j = (i + distance + k) % n, b = order[slot[j].position];
            if (j == i || taken[b] || topo_tier(t, a, b) != tier)
                continue;
            taken[a] = taken[b] = 1;
            push(out, a, b);
        }
    }
}

void schedule_matching(struct pairs *out, const struct topo *t, const int *order, int tier,
                       struct rng *rng)
{
    int n = t->endpoints, used = 0;
    struct slot *slot = mem_calloc((size_t)n, sizeof(*slot));
    char *taken = mem_calloc((size_t)n, 1);
    unsigned same = t->tier[tier].same;

    for (int i = 0; i < n; i++) {
        const struct place *p = &t->endpoint[order[i]].place;
        int visible = 1;
        for (int l = 0; l < LEVEL_COUNT; l++)
            if (same >> l & 1) {
                slot[used].key[l] = p->at[l];
                visible &= p->at[l] >= 0;
            }
        slot[used].position = i;
        used += visible;
        if (!visible)
            memset(slot[used].key, 0, sizeof(slot[used].key));
    }
    qsort(slot, (size_t)used, sizeof(*slot), by_slot);
    for (int i = 0, j; i < used; i = j) {
        for (j = i + 1; j < used && !memcmp(slot[i].key, slot[j].key, sizeof(slot[i].key)); j++)
            ;
        if (j - i > 1)
            match_bucket(out, t, order, tier, slot + i, j - i,
                         1 + (int)rng_below(rng, (unsigned)(j - i - 1)), taken);
    }
    free(slot);
    free(taken);
}
