/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks in the order of their residuals, and by part in that order. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"
#include "noise/noise_impl.h"

struct ranked {
    float r;
    int look;
};

/* Order of floats as that of unsigned integers. */
static uint64_t by_r(const void *item)
{
    unsigned bits;

    memcpy(&bits, item, sizeof(bits));
    return bits ^ (bits >> 31 ? ~0u : 1u << 31);
}

void order_make(struct order *o, const struct view *v, const struct channel *c, const float *r,
                enum beside beside, bool same_pair)
{
    const struct noise_input *in = v->in;
    struct ranked *ranked = mem_calloc((size_t)in->looks + 1, sizeof(*ranked));
    int n = 0;

    for (int i = 0; i < in->looks; i++) {
        const struct look *k = &in->look[i];

        if (!isnan(r[i]) && channel_has(c, k) && !(beside == BESIDE_PARALLEL && k->alone) && k->same_pair <= same_pair)
            ranked[n++] = (struct ranked){r[i], i};
    }
    stats_sort_keys(ranked, n, sizeof(*ranked), by_r);
    *o = (struct order){mem_calloc((size_t)n + 1, sizeof(int)), n};
    for (int i = 0; i < n; i++)
        o->look[i] = ranked[i].look;
    free(ranked);
}

void order_free(struct order *o)
{
    free(o->look);
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

static void key_two(struct keyed *k, const struct view *v, const struct order *o, const int *of, int n)
{
    int *key = mem_ints(o->count, -1), *item = mem_ints(o->count, 0);
    struct map map = {0};

    for (int i = 0; i < o->count; i++) {
        const struct look *l = &v->in->look[o->look[i]];
        int end = 0;

        key[i] = pair_number(k, &map, of[l->src], of[l->dst], n, &end);
        item[i] = 2 * o->look[i] + end;
    }
    lists_make(&k->l, key, item, o->count, k->parts);
    map_free(&map);
    free(key);
    free(item);
}

void keyed_make(struct keyed *k, const struct view *v, const struct order *o, enum rung rung)
{
    const int *of = v->places->of[rung];
    int *key, *item;

    *k = (struct keyed){.parts = rung_is_two(rung) ? 0 : v->places->count[rung]};
    if (rung_is_two(rung)) {
        key_two(k, v, o, of, v->places->count[rung]);
        return;
    }
    key = mem_ints(2 * o->count, -1);
    item = mem_ints(2 * o->count, 0);
    for (int i = 0; i < 2 * o->count; i++) {
        key[i] = of[end_of(&v->in->look[o->look[i / 2]], i & 1)];
        item[i] = 2 * o->look[i / 2] + (i & 1);
    }
    lists_make(&k->l, key, item, 2 * o->count, k->parts);
    free(key);
    free(item);
}

void keyed_free(struct keyed *k)
{
    lists_free(&k->l);
    free(k->two);
}
