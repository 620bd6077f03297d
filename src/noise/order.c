/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks by part, ordered by residual within a part.  Looks of a part are contiguous, because a large machine
 * has more looks than a cache holds, and each pass over all parts would fetch single looks from memory. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "noise/noise_impl.h"

static void merge(uint64_t *to, const uint64_t *a, int n, const uint64_t *b, int m)
{
    while (n && m) {
        bool first = *a < *b;

        *to++ = first ? *a : *b;
        a += first;
        n -= first;
        b += !first;
        m -= !first;
    }
    if (n + m)
        memcpy(to, n ? a : b, (size_t)(n + m) * sizeof(*to));
}

const uint64_t *order_merge(uint64_t *at, uint64_t *spare, int *start, int runs)
{
    while (runs > 1) {
        uint64_t *from = at;
        int kept = 0;

        for (int r = 0; r < runs; r += 2) {
            int a = start[r], b = start[r + 1], c = r + 1 < runs ? start[r + 2] : b;

            merge(spare + a, from + a, b - a, from + b, c - b);
            start[kept++] = a;
        }
        start[kept] = start[runs];
        runs = kept;
        at = spare;
        spare = from;
    }
    return at;
}

/* --- sorting the items of a part --- */

struct sorting { /* buffers for the current part */
    uint64_t *rank;
    int *start;
    struct item *copy;
};

enum { RUN = 12 }; /* insertion is the fastest for so few */

static void insert(uint64_t *v, int n)
{
    for (int i = 1, k; i < n; i++) {
        uint64_t x = v[i];

        for (k = i; k > 0 && v[k - 1] > x; k--)
            v[k] = v[k - 1];
        v[k] = x;
    }
}

static void sort_items(struct sorting *s, struct item *at, int n)
{
    const uint64_t *rank;
    int runs = 0;

    for (int i = 0; i < n; i++)
        s->rank[i] = order_rank(at[i].r, i);
    for (int i = 0; i < n; i += RUN) {
        s->start[runs++] = i;
        insert(s->rank + i, n - i < RUN ? n - i : RUN);
    }
    s->start[runs] = n;
    rank = order_merge(s->rank, s->rank + n, s->start, runs);
    memcpy(s->copy, at, (size_t)n * sizeof(*at));
    for (int i = 0; i < n; i++)
        at[i] = s->copy[(unsigned)rank[i]];
}

static void sort_all(struct keyed *k)
{
    const size_t most = (size_t)k->most;
    struct sorting s = {mem_calloc(2 * most + 1, sizeof(*s.rank)), mem_ints(k->most / RUN + 2, 0),
                        mem_calloc(most + 1, sizeof(*s.copy))};

    for (int p = 0; p < k->parts; p++)
        if (k->start[p + 1] > k->start[p])
            sort_items(&s, k->at + k->start[p], k->start[p + 1] - k->start[p]);
    free(s.rank);
    free(s.start);
    free(s.copy);
}

/* --- items by part --- */

/* Looks that may be picked. */
struct keying {
    struct keyed *k;
    const struct pick *pick;
    const int *look;
    int looks;
    int *
        pair; /* rungs of two, by look: part << 1 | end; -1: none.  Else NULL: a look is of both its endpoints */
};

/* True for a look of stage 2 under load where flows are hashed: looks alone tell as much without collisions. */
static bool collides(const struct pick *p, const struct look *k)
{
    return k->fresh && !k->alone && p->beside == BESIDE_ANY && k->kind != LOOK_LATENCY &&
           p->v->hashed[LOOK_RATE * TIER_MAX + k->tier];
}

static bool is_in(const struct pick *p, int look)
{
    const struct look *k = &p->v->in->look[look];

    return !isnan(p->r[look]) && channel_has(p->c, k) && !collides(p, k) &&
           !(p->beside == BESIDE_PARALLEL && k->alone) && k->same_pair <= p->same_pair;
}

/* Number of the pair of two groups. */
static int number_pair(struct keyed *k, struct map *map, int a, int b, int n)
{
    int lo = a < b ? a : b, hi = a < b ? b : a,
        *number = map_at(map, (uint64_t)lo * (uint64_t)n + (uint64_t)hi, NULL, NULL);

    if (*number == MAP_NONE) {
        *number = k->parts;
        MEM_PUSH(k->two, k->parts)[0] = lo;
        k->two[k->parts - 1][1] = hi;
    }
    return *number;
}

/* Rungs of two: file each look under its pair, seen from the end in the lower-numbered group. */
static void key_two(struct keying *x, enum rung rung)
{
    const struct places *p = x->pick->v->places;
    const int *of = p->of[rung], n = p->count[rung];
    struct map map = {0};

    x->pair = mem_ints(x->looks, -1);
    for (int i = 0; i < x->looks; i++) {
        const struct look *k = &x->pick->v->in->look[x->look[i]];
        int a = of[k->src], b = of[k->dst];

        if (a >= 0 && b >= 0 && a != b && is_in(x->pick, x->look[i]))
            x->pair[i] = number_pair(x->k, &map, a, b, n) << 1 | (a > b);
    }
    map_free(&map);
}

static void add_item(struct item *to, const struct pick *p, int look, int end)
{
    const struct look *k = &p->v->in->look[look];

    to->r = p->r[look];
    to->look = look;
    to->self = end_of(k, end);
    to->other = end_of(k, !end);
    to->block = (unsigned short)p->v->block[k->block];
    to->class = (unsigned char)class_of(k);
    to->bits = (unsigned char)(end | end_is_fine(p->v, k, !end) << 1);
}

/* Pages that were used already cost less than new ones. */
static void make_room(struct keyed *k, size_t n)
{
    if (n <= k->room)
        return;
    free(k->at);
    k->at = mem_calloc(n, sizeof(*k->at));
    k->room = n;
}

/* The parts that list a look, by the end that they see it from; -1: none. */
static bool parts_of(const struct keying *x, int i, int part[2])
{
    const struct look *k = &x->pick->v->in->look[x->look[i]];

    if (x->pair) {
        part[0] = part[1] = -1;
        if (x->pair[i] >= 0)
            part[x->pair[i] & 1] = x->pair[i] >> 1;
        return x->pair[i] >= 0;
    }
    part[0] = k->src;
    part[1] = k->dst;
    return is_in(x->pick, x->look[i]);
}

static void count_items(const struct keying *x)
{
    struct keyed *k = x->k;
    int *start = k->start;

    for (int i = 0; i < x->looks; i++) {
        int part[2];

        if (!parts_of(x, i, part))
            continue;
        k->tiers |= 1u << x->pick->v->in->look[x->look[i]].tier;
        for (int end = 0; end < 2; end++)
            if (part[end] >= 0)
                start[part[end] + 2]++;
    }
    for (int p = 0; p < k->parts; p++) {
        k->most = start[p + 2] > k->most ? start[p + 2] : k->most;
        start[p + 2] += start[p + 1];
    }
}

/* start[p + 1] counts up from where the items of p begin to where they end. */
static void fill(const struct keying *x)
{
    struct keyed *k = x->k;

    count_items(x);
    make_room(k, (size_t)k->start[k->parts + 1] + 1);
    for (int i = 0; i < x->looks; i++) {
        int part[2];

        if (!parts_of(x, i, part))
            continue;
        for (int end = 0; end < 2; end++)
            if (part[end] >= 0)
                add_item(&k->at[k->start[part[end] + 1]++], x->pick, x->look[i], end);
    }
}

void keyed_make(struct keyed *k, const struct pick *pick, enum rung rung)
{
    struct keying x = {.k = k, .pick = pick};

    free(k->start);
    free(k->two);
    *k = (struct keyed){
        .parts = rung_is_two(rung) ? 0 : pick->v->places->n, .room = k->room, .at = k->at};
    x.look = view_looks(pick->v, pick->c->kind, pick->c->tiers, &x.looks);
    if (rung_is_two(rung))
        key_two(&x, rung);
    k->start = mem_ints(k->parts + 2, 0);
    fill(&x);
    free(x.pair);
    if (!pick->unsorted)
        sort_all(k);
}

void keyed_free(struct keyed *k)
{
    free(k->start);
    free(k->at);
    free(k->two);
    *k = (struct keyed){.parts = 0};
}
