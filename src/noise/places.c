/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "base/mem.h"
#include "noise/noise_impl.h"

static const int rung_level[RUNG_COUNT] = {
    [RUNG_RACK] = LEVEL_RACK, [RUNG_LEAF] = LEVEL_LEAF, [RUNG_RACK_PAIR] = LEVEL_RACK,
    [RUNG_HOST] = LEVEL_HOST, [RUNG_NIC] = -1,          [RUNG_PAIR] = -1};

/* True for groups of a rung whose endpoints are just those of one group of a narrower rung. */
static void mark_same(struct places *p, enum rung wide, enum rung narrow)
{
    int *inside = mem_ints(p->count[wide], -1), *wides = mem_ints(p->count[narrow], -1);

    /* -1: none yet; -2: several */
    for (int i = 0; i < p->n; i++) {
        int w = p->of[wide][i], k = p->of[narrow][i];

        if (w >= 0)
            inside[w] = k < 0 || (inside[w] != -1 && inside[w] != k) ? -2 : k;
        if (k >= 0)
            wides[k] = w < 0 || (wides[k] != -1 && wides[k] != w) ? -2 : w;
    }
    for (int w = 0; w < p->count[wide]; w++)
        if (inside[w] >= 0 && wides[inside[w]] == w)
            p->same[wide][w] = true;
    free(inside);
    free(wides);
}

void places_make(struct places *p, const struct topo *t)
{
    *p = (struct places){.n = t->endpoints};
    for (int r = 0; r < RUNG_COUNT; r++) {
        p->of[r] = mem_ints(p->n, -1);
        for (int i = 0; i < p->n; i++) {
            p->of[r][i] = rung_level[r] < 0 ? i : topo_at(t, i, rung_level[r]);
            if (p->of[r][i] >= p->count[r])
                p->count[r] = p->of[r][i] + 1;
        }
        if (rung_is_group((enum rung)r))
            lists_make(&p->member[r], p->of[r], NULL, p->n, p->count[r]);
        p->same[r] = mem_calloc((size_t)p->count[r] + 1, sizeof(bool));
    }
    for (int wide = RUNG_RACK; wide < RUNG_NIC; wide++)
        for (int narrow = wide + 1; narrow <= RUNG_NIC; narrow++)
            if (wide != RUNG_RACK_PAIR && narrow != RUNG_RACK_PAIR)
                mark_same(p, (enum rung)wide, (enum rung)narrow);
}

void places_free(struct places *p)
{
    for (int r = 0; r < RUNG_COUNT; r++) {
        free(p->of[r]);
        free(p->same[r]);
        lists_free(&p->member[r]);
    }
}
