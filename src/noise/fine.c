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
    const struct keyed *k;
    float *est[SLOTS]; /* estimate by endpoint; slot 2 * tier + end, last: all; NULL: not seen */
    int slot[SLOTS], slots; /* slots with looks */
    struct mark {
        float r, w;
        unsigned char slot;
        bool fine;
    } * mark;
    struct total {        /* sums of the current endpoint */
        double weight[2]; /* all marks; marks with fine partners */
        int count[2];
        double run,
            need;  /* weight so far, and where the quantile is; INFINITY: found, or too few */
        bool fine; /* only marks with fine partners */
        float est;
    } total[SLOTS];
};

static void add_mark(struct total *t, const struct mark *m)
{
    for (int fine = 0; fine <= m->fine; fine++) {
        t->weight[fine] += m->w;
        t->count[fine]++;
    }
}

static void begin_quantile(struct total *t, bool all, double share)
{
    t->fine = t->count[1] >= noise_constants.fine_looks;
    t->need = t->fine || all || t->count[0] >= noise_constants.fine_looks
                  ? t->weight[t->fine] * share * (1 - 1e-6)
                  : INFINITY;
}

static void take_mark(struct total *t, const struct mark *m)
{
    if ((t->fine && !m->fine) || (t->run += m->w) < t->need)
        return;
    t->est = m->r;
    t->need = INFINITY;
}

/* Weighted quantiles of an endpoint in all slots, of marks in the order of r. */
static void find_quantiles(struct judging *j, int n, double share)
{
    const bool sided = channel_has_sides(j->c);
    struct total *t = j->total, *all = &t[SLOTS - 1];

    for (int s = 0; s < j->slots; s++)
        t[j->slot[s]] = (struct total){.est = NAN};
    for (int i = 0; i < n; i++) {
        add_mark(&t[j->mark[i].slot], &j->mark[i]);
        if (!sided)
            add_mark(&t[j->mark[i].slot ^ 1], &j->mark[i]);
        add_mark(all, &j->mark[i]);
    }
    for (int s = 0; s < j->slots; s++)
        begin_quantile(&t[j->slot[s]], &t[j->slot[s]] == all, share);
    for (int i = 0; i < n; i++) {
        take_mark(&t[j->mark[i].slot], &j->mark[i]);
        if (!sided)
            take_mark(&t[j->mark[i].slot ^ 1], &j->mark[i]);
        take_mark(all, &j->mark[i]);
    }
}

static void estimate(struct judging *j, int endpoint, double share)
{
    const struct view *v = j->v;
    const unsigned *fine = v->fine[j->c->kind];
    const int from = j->k->start[endpoint], n = j->k->start[endpoint + 1] - from;

    for (int i = 0; i < n; i++) {
        const struct item *k = &j->k->at[from + i];
        struct mark *m = &j->mark[i];

        m->r = k->r;
        m->w = (float)v->class[k->class].weight;
        m->slot = (unsigned char)(2 * item_tier(k) + item_end(k));
        m->fine = fine[k->other] >> (m->slot ^ 1) & 1;
    }
    find_quantiles(j, n, share);
    for (int s = 0; s < j->slots; s++)
        j->est[j->slot[s]][endpoint] = j->total[j->slot[s]].est;
}

/* Limit below which an end of the slot is slow. */
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

/* Latency has separate causes; an end that is slow at one size or one way is slow at other sizes, too. */
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
    for (int s = 0; s < j->slots; s++)
        set_fine(j, j->slot[s], slot_limit(j, j->slot[s], buffer));
}

static void open_slots(struct judging *j)
{
    for (int s = 0; s < SLOTS; s++)
        if (s < SLOTS - 1 ? j->k->tiers >> s / 2 & 1 : j->k->tiers != 0) {
            j->slot[j->slots++] = s;
            j->est[s] = mem_calloc((size_t)j->v->places->n + 1, sizeof(float));
        }
    j->mark = mem_calloc((size_t)j->k->most + 1, sizeof(*j->mark));
}

/* Repeat until no endpoint's set of fine partners changes. */
static void judge_rounds(struct judging *j)
{
    const size_t n = (size_t)j->v->places->n;
    unsigned *before = mem_calloc(n + 1, sizeof(*before));
    double *buffer = mem_calloc(n + 1, sizeof(*buffer));
    bool same = false;

    for (int round = 0; round <= ROUNDS && !same; round++) {
        double share = round ? noise_constants.fine_later : noise_constants.fast;

        memcpy(before, j->v->fine[j->c->kind], n * sizeof(*before));
        one_round(j, channel_collides(j->v, j->c) ? noise_constants.clear : share, buffer);
        same = round && !memcmp(before, j->v->fine[j->c->kind], n * sizeof(*before));
    }
    free(before);
    free(buffer);
}

static void judge_kind(struct view *v, const struct channel *c)
{
    const struct pick pick = {v, c, v->r, BESIDE_ANY, false, false};
    struct judging j = {.v = v, .c = c, .k = v->nic};
    float lo, hi;

    /* no end can be further below the others than its looks are */
    if (!channel_range(v, c, v->r, &lo, &hi) || hi - lo < noise_constants.fine_floor * (1 - 1e-6))
        return;
    keyed_make(v->nic, &pick, RUNG_NIC);
    open_slots(&j);
    if (j.k->tiers)
        judge_rounds(&j);
    for (int s = 0; s < SLOTS; s++)
        free(j.est[s]);
    free(j.mark);
}

/* Start other kinds from the result for rates. */
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
