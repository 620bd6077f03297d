/* SPDX-License-Identifier: BSD-3-Clause */
/* The looks of one part, ordered by the residuals that are left. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "noise/noise_impl.h"

/* Stage 2 sees a part only by looks that were measured for it. */
static bool is_for(const struct look *k, enum rung rung, int end)
{
    return rung_is_two(rung) || k->looks_at == end || k->looks_at < 0;
}

int gather_count(const struct hunt *h, enum rung rung)
{
    return rung_is_two(rung) ? h->two.parts : h->places->count[rung];
}

static int items_of(const struct hunt *h, enum rung rung, int part)
{
    const struct lists *member = &h->places->member[rung];
    int n = 0;

    for (int i = member->start[part]; i < member->start[part + 1]; i++)
        n += h->v->nic->start[member->at[i] + 1] - h->v->nic->start[member->at[i]];
    return n;
}

int gather_most(const struct hunt *h, enum rung rung)
{
    int most = rung_is_two(rung) ? h->two.most : h->v->nic->most;

    for (int p = 0; rung_is_group(rung) && p < h->places->count[rung]; p++)
        most = items_of(h, rung, p) > most ? items_of(h, rung, p) : most;
    return most;
}

/* Room for n ranks twice, and for the starts of the members' runs. */
static void group_room(struct hunt *h, int n, int members)
{
    if (n > h->ranks || !h->rank) {
        free(h->rank);
        h->ranks = n;
        h->rank = mem_calloc(2 * (size_t)n + 1, sizeof(*h->rank));
    }
    if (members > h->runs || !h->run) {
        free(h->run);
        h->runs = members;
        h->run = mem_ints(members + 1, 0);
    }
}

/* Items of a group: the items of all endpoints, ordered by r again, as indices into h->v->nic->at */
static const uint64_t *group_items(struct hunt *h, enum rung rung, int part, int *n)
{
    const struct lists *member = &h->places->member[rung];
    const int members = member->start[part + 1] - member->start[part];

    *n = 0;
    group_room(h, items_of(h, rung, part), members);
    for (int i = 0; i < members; i++) {
        const int id = member->at[member->start[part] + i];

        h->run[i] = *n;
        for (int k = h->v->nic->start[id]; k < h->v->nic->start[id + 1]; k++)
            h->rank[(*n)++] = order_rank(h->v->nic->at[k].r, k);
    }
    h->run[members] = *n;
    return order_merge(h->rank, h->rank + *n, h->run, members);
}

static void see(struct seen *to, const struct view *v, const struct item *k)
{
    /* Field by field: a struct that is made on the stack and copied costs more than all else here. */
    to->r = k->r;
    to->w = (float)v->class[k->class].weight;
    to->look = k->look;
    to->self = k->self;
    to->other = k->other;
    to->block = k->block;
    to->class = k->class;
    to->tier = (unsigned char)item_tier(k);
    to->end = item_end(k);
    to->inside = false;
    to->fine = item_is_fine(k);
    to->alone = k->class & 1;
    to->first = !to->end;
}

/* Keep only the looks of stage 2 that were measured for this end. */
static int keep_own(const struct hunt *h, enum rung rung, struct seen *seen, int n)
{
    int kept = 0;

    for (int i = 0; i < n; i++) {
        const struct look *l = &h->v->in->look[seen[i].look];

        if (!is_for(l, rung, seen[i].end))
            continue;
        seen[kept] = seen[i];
        if (l->looks_at >= 0)
            seen[kept].first = l->looks_at == seen[i].end;
        kept++;
    }
    return kept;
}

int gather_part(struct hunt *h, enum rung rung, int part, struct seen *seen)
{
    const struct keyed *k = rung_is_two(rung) ? &h->two : h->v->nic;
    int n;

    if (rung_is_group(rung)) {
        const int *of = h->places->of[rung];
        const uint64_t *rank = group_items(h, rung, part, &n);

        for (int i = 0; i < n; i++) {
            see(&seen[i], h->v, &k->at[(unsigned)rank[i]]);
            seen[i].inside = of[seen[i].other] == part;
        }
    } else {
        const struct item *at = k->at + k->start[part];

        n = k->start[part + 1] - k->start[part];
        for (int i = 0; i < n; i++)
            see(&seen[i], h->v, &at[i]);
    }
    return h->v->fresh ? keep_own(h, rung, seen, n) : n;
}

void gather_free(struct hunt *h)
{
    keyed_free(&h->two);
    free(h->rank);
    free(h->run);
    h->rank = NULL;
    h->run = NULL;
}

void gather_renew(struct hunt *h, enum rung rung, bool same_pair)
{
    const struct pick pick = {h->v, h->c, h->r, h->beside, same_pair, h->quiet};

    keyed_make(rung_is_two(rung) ? &h->two : h->v->nic, &pick, rung);
    if (rung == RUNG_NIC)
        h->stale = same_pair;
}
