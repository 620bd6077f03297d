/* SPDX-License-Identifier: BSD-3-Clause */
/* The looks of one part, in the order of what is left of them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "noise/noise_impl.h"

/* Stage 2 sees a part only by looks that were measured for it. */
static bool is_for(const struct hunt *h, const struct look *k, enum rung rung, int end)
{
    return !h->v->fresh || rung_is_two(rung) || k->looks_at == end || k->looks_at < 0;
}

int gather_count(const struct hunt *h, enum rung rung)
{
    return rung_is_two(rung) ? h->two.parts : h->places->count[rung];
}

static int codes_of(const struct hunt *h, enum rung rung, int part)
{
    const struct lists *member = &h->places->member[rung];
    int n = 0;

    for (int i = member->start[part]; i < member->start[part + 1]; i++)
        n += h->nic.l.start[member->at[i] + 1] - h->nic.l.start[member->at[i]];
    return n;
}

int gather_most(const struct hunt *h, enum rung rung)
{
    int most = rung_is_two(rung) ? h->two.most : h->nic.most;

    for (int p = 0; rung_is_group(rung) && p < h->places->count[rung]; p++)
        most = codes_of(h, rung, p) > most ? codes_of(h, rung, p) : most;
    return most;
}

static void merge(int *to, const int *a, int n, const int *b, int m)
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

/* One ascending list of runs that are: *at becomes where it is, of the two rooms. */
static void merge_runs(int **at, int *spare, int *start, int runs)
{
    while (runs > 1) {
        int *from = *at, kept = 0;

        for (int r = 0; r < runs; r += 2) {
            int a = start[r], b = start[r + 1], c = r + 1 < runs ? start[r + 2] : b;

            merge(spare + a, from + a, b - a, from + b, c - b);
            start[kept++] = a;
        }
        start[kept] = start[runs];
        runs = kept;
        *at = spare;
        spare = from;
    }
}

/* Room for n codes twice, and for where the runs of so many members begin. */
static void group_room(struct hunt *h, int n, int members)
{
    if (2 * n + members + 1 <= h->codes && h->code)
        return;
    free(h->code);
    h->codes = 2 * n + members + 1;
    h->code = mem_ints(h->codes, 0);
}

/* Codes of a group: those of its endpoints, in the order of r again. */
static const int *group_codes(struct hunt *h, enum rung rung, int part, int *n)
{
    const struct lists *member = &h->places->member[rung];
    const int members = member->start[part + 1] - member->start[part];
    int *at, *start, all = codes_of(h, rung, part);

    group_room(h, all, members);
    at = h->code;
    start = h->code + 2 * all;
    start[0] = 0;
    for (int i = 0; i < members; i++) {
        int id = member->at[member->start[part] + i], from = h->nic.l.start[id],
            many = h->nic.l.start[id + 1] - from;

        if (many)
            memcpy(at + start[i], h->nic.l.at + from, (size_t)many * sizeof(int));
        start[i + 1] = start[i] + many;
    }
    *n = all;
    merge_runs(&at, h->code + all, start, members);
    return at;
}

static const int *codes(struct hunt *h, enum rung rung, int part, int *n)
{
    const struct keyed *k = rung_is_two(rung) ? &h->two : &h->nic;

    if (rung_is_group(rung))
        return group_codes(h, rung, part, n);
    *n = k->l.start[part + 1] - k->l.start[part];
    return k->l.at + k->l.start[part];
}

int gather_part(struct hunt *h, enum rung rung, int part, struct seen *seen)
{
    const struct view *v = h->v;
    const int *of = h->places->of[rung];
    int many, n = 0;
    const int *code = codes(h, rung, part, &many);

    for (int i = 0; i < many; i++) {
        int end = code[i] & 1;
        const struct item *k = &h->order.at[code[i] / 2];
        const struct look *l = v->fresh ? &v->in->look[k->look] : NULL;

        if (l && !is_for(h, l, rung, end))
            continue;
        seen[n++] = (struct seen){
            .r = k->r,
            .w = (float)v->class[k->class].weight,
            .look = k->look,
            .self = k->end[end],
            .other = k->end[!end],
            .block = k->block,
            .tier = (unsigned char)item_tier(k),
            .end = (unsigned char)end,
            .inside = rung_is_group(rung) && of[k->end[0]] == of[k->end[1]],
            .fine = k->fine >> !end & 1,
            .alone = k->class & 1,
            .first = l && l->looks_at >= 0 ? l->looks_at == end : !end,
        };
    }
    return n;
}

void gather_free(struct hunt *h)
{
    keyed_free(&h->nic);
    keyed_free(&h->two);
    order_free(&h->order);
    free(h->code);
    h->code = NULL;
    h->codes = 0;
}

void gather_renew(struct hunt *h, bool same_pair)
{
    keyed_free(&h->nic);
    order_free(&h->order);
    order_make(&h->order, h->v, h->c, h->r, h->beside, same_pair);
    keyed_make(&h->nic, h->v, &h->order, RUNG_NIC);
    h->stale = same_pair;
}
