/* SPDX-License-Identifier: BSD-3-Clause */
/* Which ends are no hindrance to a partner.  Two ends are in series: a slow look may be the fault of
 * either, a fast one proves both fine.  So an end starts by its fast looks and is then judged by looks with
 * fine partners.  It is judged by tier and by direction, because uplinks may be slow where the leaf is not. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "noise/noise_impl.h"

enum { ROUNDS = 4, SLOTS = 2 * TIER_MAX + 1 };

struct judging {
    struct view *v;
    const struct channel *c;
    const struct order *o;
    const struct keyed *k;
    float *est[SLOTS]; /* by endpoint; slot 2 * tier + end, the last: all */
    bool has[SLOTS];
    struct mark {
        float r, w;
        unsigned char slot;
        bool fine;
    } * mark;
    struct total {
        double weight[2]; /* of all; of those with fine partners */
        int count[2];
    } total[SLOTS]; /* of the endpoint at hand */
};

static bool mark_is_in(const struct mark *m, int slot, bool sided)
{
    return slot == SLOTS - 1 || (sided ? m->slot == slot : m->slot / 2 == slot / 2);
}

static void add_to_slots(struct judging *j, const struct mark *m)
{
    const bool sided = channel_has_sides(j->c);
    const int slots[] = {m->slot, m->slot ^ 1, SLOTS - 1};

    for (int s = 0; s < 3; s++)
        for (int fine = 0; fine <= m->fine && !(s == 1 && sided); fine++) {
            j->total[slots[s]].weight[fine] += m->w;
            j->total[slots[s]].count[fine]++;
        }
}

/* Weighted quantile of those that are in the slot. */
static double slot_quantile(const struct judging *j, const struct mark *m, int n, int slot,
                            bool fine, double share)
{
    const bool sided = channel_has_sides(j->c);
    const double enough = j->total[slot].weight[fine] * share * (1 - 1e-6);
    double run = 0;

    for (int i = 0; i < n; i++)
        if (mark_is_in(&m[i], slot, sided) && (!fine || m[i].fine) && (run += m[i].w) >= enough)
            return m[i].r;
    return NAN;
}

static double slot_estimate(const struct judging *j, const struct mark *m, int n, int slot,
                            double share)
{
    const int *count = j->total[slot].count;

    if (count[1] >= noise_constants.fine_looks)
        return slot_quantile(j, m, n, slot, true, share);
    return count[0] >= noise_constants.fine_looks || slot == SLOTS - 1
               ? slot_quantile(j, m, n, slot, false, share)
               : NAN;
}

static void estimate(struct judging *j, int endpoint, double share)
{
    const struct view *v = j->v;
    const unsigned *fine = v->fine[j->c->kind];
    int from = j->k->l.start[endpoint], n = j->k->l.start[endpoint + 1] - from;

    memset(j->total, 0, sizeof(j->total));
    for (int i = 0; i < n; i++) {
        int code = j->k->l.at[from + i], end = code & 1;
        const struct item *k = &j->o->at[code / 2];

        j->mark[i] = (struct mark){k->r, (float)v->class[k->class].weight,
                                   (unsigned char)(2 * item_tier(k) + end),
                                   fine[k->end[!end]] >> (2 * item_tier(k) + !end) & 1};
        add_to_slots(j, &j->mark[i]);
    }
    for (int s = 0; s < SLOTS; s++)
        if (j->has[s])
            j->est[s][endpoint] = (float)slot_estimate(j, j->mark, n, s, share);
}

/* Below this an end of the slot is slow. */
static double slot_limit(const struct judging *j, int slot, double *buffer)
{
    const int n = j->v->places->n;
    double m, sigma;
    int count = 0;

    for (int i = 0; i < n; i++)
        if (!isnan(j->est[slot][i]))
            buffer[count++] = j->est[slot][i];
    if (!count)
        return -INFINITY;
    usual_find(buffer, count, &m, &sigma);
    return m - fmax(noise_constants.fine_floor, noise_constants.fine_sigma * sigma);
}

static void set_fine(struct judging *j, int slot, double limit)
{
    unsigned *fine = j->v->fine[j->c->kind], mask = 0;

    for (int s = 0; s < SLOTS - 1; s++)
        if (j->c->tiers >> (s / 2) & 1 && (slot == SLOTS - 1 || slot == s))
            mask |= 1u << s;
    for (int i = 0; i < j->v->places->n; i++)
        if (j->est[slot][i] < limit)
            fine[i] &= ~mask;
}

/* Latency has reasons of its own; what is slow at one size or one way is so at others. */
static bool is_own(enum look_kind kind)
{
    return kind == LOOK_RATE || kind == LOOK_LATENCY;
}

static void one_round(struct judging *j, double share, double *buffer)
{
    unsigned *fine = j->v->fine[j->c->kind], all = 0;

    for (int i = 0; i < j->v->places->n; i++)
        estimate(j, i, share);
    for (int t = 0; t < TIER_MAX; t++)
        all |= j->c->tiers >> t & 1 ? 3u << 2 * t : 0;
    for (int i = 0; i < j->v->places->n; i++)
        fine[i] |= is_own(j->c->kind) ? all : j->v->fine[LOOK_RATE][i] & all;
    for (int s = 0; s < SLOTS; s++)
        if (j->has[s])
            set_fine(j, s, slot_limit(j, s, buffer));
}

static void open_slots(struct judging *j)
{
    for (int i = 0; i < j->o->count; i++) {
        int tier = item_tier(&j->o->at[i]);

        j->has[2 * tier] = j->has[2 * tier + 1] = j->has[SLOTS - 1] = true;
    }
    for (int s = 0; s < SLOTS; s++)
        j->est[s] = j->has[s] ? mem_calloc((size_t)j->v->places->n + 1, sizeof(float)) : NULL;
    j->mark = mem_calloc((size_t)j->k->most + 1, sizeof(*j->mark));
}

/* Rounds until nobody's partners change. */
static void judge_rounds(struct judging *j)
{
    const size_t n = (size_t)j->v->places->n;
    unsigned *before = mem_calloc(n + 1, sizeof(*before));
    double *buffer = mem_calloc(n + 1, sizeof(*buffer));
    bool same = false;

    for (int round = 0; round <= ROUNDS && !same; round++) {
        memcpy(before, j->v->fine[j->c->kind], n * sizeof(*before));
        one_round(j, round ? noise_constants.fine_later : noise_constants.fast, buffer);
        same = round && !memcmp(before, j->v->fine[j->c->kind], n * sizeof(*before));
    }
    free(before);
    free(buffer);
}

static void judge_kind(struct view *v, const struct channel *c)
{
    struct order o;
    struct keyed k;
    struct judging j = {.v = v, .c = c, .o = &o, .k = &k};

    order_make(&o, v, c, v->r, BESIDE_ANY, false);
    keyed_make(&k, v, &o, RUNG_NIC);
    open_slots(&j);
    if (o.count)
        judge_rounds(&j);
    for (int s = 0; s < SLOTS; s++)
        free(j.est[s]);
    free(j.mark);
    keyed_free(&k);
    order_free(&o);
}

/* Other kinds start from what rates say. */
void fine_find(struct view *v, unsigned tiers)
{
    unsigned bits = 0;

    for (int t = 0; t < TIER_MAX; t++)
        bits |= tiers >> t & 1 ? 3u << 2 * t : 0;
    for (int kind = 0; kind < LOOK_COUNT && tiers; kind++) {
        struct channel c = {.kind = (enum look_kind)kind, .tail = v->tail, .tiers = tiers};

        for (int i = 0; i < v->places->n; i++)
            v->fine[kind][i] |= is_own((enum look_kind)kind) ? bits : v->fine[LOOK_RATE][i] & bits;
        judge_kind(v, &c);
    }
}
