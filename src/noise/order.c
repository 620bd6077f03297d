/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks in the order of their residuals, and by part in that order. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "noise/noise_impl.h"

/* A look with the order of its float as that of unsigned integers. */
struct rank {
    unsigned key;
    int look;
};

static unsigned key_of(float r)
{
    unsigned bits;

    memcpy(&bits, &r, sizeof(bits));
    return bits ^ (bits >> 31 ? ~0u : 1u << 31);
}

enum { DIGIT = 11, DIGITS = 3, VALUES = 1 << DIGIT };

static int digit_of(const struct rank *r, int d)
{
    return (int)(r->key >> d * DIGIT) & (VALUES - 1);
}

/* Digit after digit, the lowest first; equal keys stay in their order.  Returns the sorted half of r[2 * n]. */
static struct rank *sort_ranks(struct rank *r, int n)
{
    struct rank *from = r, *to = r + n;

    for (int d = 0; d < DIGITS; d++) {
        int start[VALUES + 1] = {0};
        struct rank *other = from;

        for (int i = 0; i < n; i++)
            start[digit_of(&from[i], d) + 1]++;
        for (int k = 0; k < VALUES; k++)
            start[k + 1] += start[k];
        for (int i = 0; i < n; i++)
            to[start[digit_of(&from[i], d)]++] = from[i];
        from = to;
        to = other;
    }
    return from;
}

static bool is_in(const struct look *k, const struct channel *c, enum beside beside, bool same_pair)
{
    return channel_has(c, k) && !(beside == BESIDE_PARALLEL && k->alone) &&
           k->same_pair <= same_pair;
}

static struct item item_of(const struct view *v, int look, float r)
{
    const struct look *k = &v->in->look[look];

    return (struct item){.look = look,
                         .end = {k->src, k->dst},
                         .r = r,
                         .block = (unsigned short)v->block[k->block],
                         .class = (unsigned char)class_of(k),
                         .fine = (unsigned char)(end_is_fine(v, k, 0) | end_is_fine(v, k, 1) << 1)};
}

void order_make(struct order *o, const struct view *v, const struct channel *c, const float *r,
                enum beside beside, bool same_pair)
{
    int n, count = 0;
    const int *at = view_looks(v, c->kind, c->tiers, &n);
    struct rank *rank = mem_calloc(2 * (size_t)n + 1, sizeof(*rank)), *sorted;

    for (int i = 0; i < n; i++)
        if (!isnan(r[at[i]]) && is_in(&v->in->look[at[i]], c, beside, same_pair))
            rank[count++] = (struct rank){key_of(r[at[i]]), at[i]};
    *o = (struct order){mem_calloc((size_t)count + 1, sizeof(*o->at)), count};
    sorted = sort_ranks(rank, count);
    for (int i = 0; i < count; i++)
        o->at[i] = item_of(v, sorted[i].look, r[sorted[i].look]);
    free(rank);
}

void order_free(struct order *o)
{
    free(o->at);
    *o = (struct order){NULL, 0};
}

/* --- rungs of two --- */

/* Number of the pair of a look; end: 0 where the sender is the first of the two. */
static int pair_number(struct keyed *k, struct map *map, int a, int b, int n, int *end)
{
    int lo = a < b ? a : b, hi = a < b ? b : a, *number;

    if (a < 0 || b < 0 || a == b)
        return -1;
    *end = a > b;
    number = map_at(map, (uint64_t)lo * (uint64_t)n + (uint64_t)hi, NULL, NULL);
    if (*number == MAP_NONE) {
        *number = k->parts;
        MEM_PUSH(k->two, k->parts)[0] = lo;
        k->two[k->parts - 1][1] = hi;
    }
    return *number;
}

static void key_two(struct keyed *k, const struct order *o, const int *of, int n)
{
    int *key = mem_ints(o->count, -1), *code = mem_ints(o->count, 0);
    struct map map = {0};

    for (int i = 0; i < o->count; i++) {
        int end = 0;

        key[i] = pair_number(k, &map, of[o->at[i].end[0]], of[o->at[i].end[1]], n, &end);
        code[i] = 2 * i + end;
    }
    lists_make(&k->l, key, code, o->count, k->parts);
    map_free(&map);
    free(key);
    free(code);
}

static void key_ends(struct keyed *k, const struct order *o)
{
    int *key = mem_ints(2 * o->count, -1);

    for (int i = 0; i < 2 * o->count; i++)
        key[i] = o->at[i / 2].end[i & 1];
    lists_make(&k->l, key, NULL, 2 * o->count, k->parts);
    free(key);
}

void keyed_make(struct keyed *k, const struct view *v, const struct order *o, enum rung rung)
{
    *k = (struct keyed){.parts = rung_is_two(rung) ? 0 : v->places->n};
    if (rung_is_two(rung))
        key_two(k, o, v->places->of[rung], v->places->count[rung]);
    else
        key_ends(k, o);
    for (int p = 0; p < k->parts; p++)
        if (k->l.start[p + 1] - k->l.start[p] > k->most)
            k->most = k->l.start[p + 1] - k->l.start[p];
}

void keyed_free(struct keyed *k)
{
    lists_free(&k->l);
    free(k->two);
    *k = (struct keyed){.parts = 0};
}
