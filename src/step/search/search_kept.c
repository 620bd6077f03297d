/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/search/search_kept.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static const enum axis family_axis[FAMILY_AXES] = {AXIS_TP, AXIS_CP, AXIS_PP, AXIS_EP};

int family_of(const struct candidate *c)
{
    int family = c->recipe.strategy;

    for (int i = 0; i < FAMILY_AXES; i++)
        family = family << 1 | (c->layout.size[family_axis[i]] > 1);
    return family;
}

void family_text(char *buf, size_t size, const struct candidate *c)
{
    size_t used = 0;

    for (int i = 0; i < FAMILY_AXES; i++)
        if (c->layout.size[family_axis[i]] > 1)
            used += (size_t)snprintf(buf + used, size - used, "%s ", axis_name[family_axis[i]]);
    snprintf(buf + used, size - used, "%s", strategy_name[c->recipe.strategy]);
}

bool candidate_sooner(const struct candidate *a, const struct candidate *b)
{
    return a->sec < b->sec || (a->sec == b->sec && a->serial < b->serial);
}

static void keep_best(struct kept *k, const struct candidate *c)
{
    if (k->bests == k->top) {
        if (!candidate_sooner(c, &k->best[k->bests - 1]))
            return;
        k->bests--;
    }
    int at = k->bests++;
    for (; at > 0 && candidate_sooner(c, &k->best[at - 1]); at--)
        k->best[at] = k->best[at - 1];
    k->best[at] = *c;
}

/* The front ascends in time and descends in bytes, so the last one that is not
 * slower is the smallest of those. */
static int not_slower(const struct kept *k, double sec)
{
    int at = 0, to = k->fronts;

    while (at < to) {
        int mid = (at + to) / 2;
        if (k->front[mid].sec <= sec)
            at = mid + 1;
        else
            to = mid;
    }
    return at;
}

static void keep_front(struct kept *k, const struct candidate *c)
{
    int at = not_slower(k, c->sec), to, old = k->fronts;
    struct candidate *last = at ? &k->front[at - 1] : NULL;

    if (last && last->sec == c->sec && last->bytes == c->bytes && c->serial < last->serial)
        *last = *c; /* the same, and earlier in the walk */
    if (last && last->bytes <= c->bytes)
        return;
    if (last && last->sec == c->sec)
        at--;
    for (to = at; to < k->fronts && k->front[to].bytes >= c->bytes;)
        to++; /* these are neither faster nor smaller */
    if (to == at)
        (void)MEM_PUSH(k->front, k->fronts);
    else
        k->fronts = old - (to - at) + 1;
    memmove(&k->front[at + 1], &k->front[to], (size_t)(old - to) * sizeof(*k->front));
    k->front[at] = *c;
}

static void keep_family(struct kept *k, const struct candidate *c)
{
    struct candidate *best = &k->family[family_of(c)];

    if (best->sec == 0 || candidate_sooner(c, best))
        *best = *c;
}

void kept_init(struct kept *k, int top)
{
    memset(k, 0, sizeof(*k));
    k->top = top;
    k->best = mem_calloc((size_t)top, sizeof(*k->best));
}

void kept_add(struct kept *k, const struct candidate *c)
{
    keep_family(k, c);
    keep_best(k, c);
    keep_front(k, c);
}

void kept_join(struct kept *to, const struct kept *from)
{
    for (int i = 0; i < FAMILIES; i++)
        if (from->family[i].sec > 0)
            keep_family(to, &from->family[i]);
    for (int i = 0; i < from->bests; i++)
        keep_best(to, &from->best[i]);
    for (int i = 0; i < from->fronts; i++)
        keep_front(to, &from->front[i]);
}

void kept_free(struct kept *k)
{
    free(k->best);
    free(k->front);
    memset(k, 0, sizeof(*k));
}
