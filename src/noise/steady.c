/* SPDX-License-Identifier: BSD-3-Clause */
/* Effects of parts, and their chances.
 *
 *   z_pb = weighted median of the looks of part p in block b     all that a block does is in it
 *   e_p  = median of z_pb over blocks;  s_p^2 = their winsorised variance
 *   s~^2 = (d0 s0^2 + (B - 1) s_p^2) / (d0 + B - 1)              moderated: Smyth 2004 (limma), robust
 *   t    = (e - centre + delta) / sqrt(pi/2 s~^2 / B + pop)      pop: how parts differ by nature
 *   p    = P(t) + P(as many blocks are stray, and as deep)       the second where B is small */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/distribution.h"
#include "base/mem.h"
#include "base/stats.h"
#include "noise/noise_impl.h"

enum { FEW = 16 }; /* up to this many values, sorting is the fastest way to the median */
static const double mad_normal = 1.4826, halfpi = 1.5707963267948966, iqr_normal = 1.349;

bool lens_takes(const struct lens *l, const struct seen *s)
{
    if (l->side != SIDE_BOTH && (l->side == SIDE_RX) != s->end)
        return false;
    if (l->tier >= 0 && l->tier != s->tier)
        return false;
    if (l->alone && !s->alone)
        return false;
    return l->way == LENS_ALL ||
           (l->way == LENS_IN ? s->inside && s->first : !s->inside && s->fine);
}

/* --- one part --- */

struct cell {
    double run, need; /* weight so far; half of all of it, INFINITY: found, or not seen */
    float z;
};

static double median_of(double *v, int n)
{
    if (n <= FEW) {
        stats_sort(v, n);
        return n ? (v[(n - 1) / 2] + v[n / 2]) / 2 : NAN;
    }
    return n ? (stats_select(v, n, (n - 1) / 2) + stats_select(v, n, n / 2)) / 2 : NAN;
}

/* Bit mask of the lenses that take a look, by all conditions of a lens. */
struct masks {
    uint64_t by[TIER_MAX][2][2][2][2][2];
};

static uint64_t *mask_at(struct masks *m, const struct seen *s)
{
    return &m->by[s->tier][s->end][s->inside][s->fine][s->first][s->alone];
}

static void masks_make(struct masks *m, const struct lens *lens, int lenses)
{
    for (int i = 0; i < TIER_MAX << 5; i++) {
        struct seen s = {.tier = (unsigned char)(i >> 5),
                         .end = i & 1,
                         .inside = i >> 1 & 1,
                         .fine = i >> 2 & 1,
                         .first = i >> 3 & 1,
                         .alone = i >> 4 & 1};

        *mask_at(m, &s) = 0;
        for (int l = 0; l < lenses; l++)
            *mask_at(m, &s) |= lens_takes(&lens[l], &s) ? UINT64_C(1) << l : 0;
    }
}

struct sight { /* buffers for the current part */
    struct masks masks;
    struct seen *seen;
    uint64_t *mask;
    struct cell *cell;
    double *v;
};

/* This share of each block's weight; INFINITY where a block is not seen, or only where looks are noise. */
static void share_weights(struct cell *cell, int blocks, double share)
{
    double best = 0;

    for (int b = 0; b < blocks; b++)
        best = cell[b].need > best ? cell[b].need : best;
    for (int b = 0; b < blocks; b++)
        cell[b].need = cell[b].need < noise_constants.block_seen * best
                           ? INFINITY
                           : cell[b].need * share * (1 - 1e-6);
}

/* Weighted quantiles of the blocks of a part through all lenses at once, else NAN.  cell: by lens, then block. */
static void cell_quantiles(struct sight *t, int blocks, int lenses, int n, double share)
{
    for (int i = 0; i < blocks * lenses; i++)
        t->cell[i] = (struct cell){.z = NAN};
    for (int i = 0; i < n; i++)
        for (uint64_t m = t->mask[i]; m; m &= m - 1)
            t->cell[__builtin_ctzll(m) * blocks + t->seen[i].block].need += t->seen[i].w;
    for (int l = 0; l < lenses; l++)
        share_weights(t->cell + (ptrdiff_t)l * blocks, blocks, share);
    for (int i = 0; i < n; i++)
        for (uint64_t m = t->mask[i]; m; m &= m - 1) {
            struct cell *c = &t->cell[__builtin_ctzll(m) * blocks + t->seen[i].block];

            if ((c->run += t->seen[i].w) < c->need)
                continue;
            c->z = t->seen[i].r;
            c->need = INFINITY;
        }
}

static double winsorised(double *v, int n, double centre)
{
    double sum = 0, sd;

    for (int i = 0; i < n; i++)
        v[i] = fabs(v[i] - centre);
    sd = mad_normal * median_of(v, n);
    for (int i = 0; i < n; i++)
        sum += pow(fmin(v[i], noise_constants.winsor * sd), 2);
    return sum / (n > 1 ? n - 1 : 1);
}

/* --- all parts of a lens --- */

struct low {
    int part;
    float z;
};
/* Blocks that may be stray: z below -delta. */
struct lows {
    struct low *at;
    int count;
};

static void add_part(struct steady *s, struct lows *lows, int part, const struct cell *cell,
                     int blocks, double *v)
{
    int n = 0;

    for (int b = 0; b < blocks; b++)
        if (!isnan(cell[b].z)) {
            v[n++] = cell[b].z;
            if (cell[b].z < -noise_constants.delta / 2)
                MEM_PUSH(lows->at, lows->count) = (struct low){part, cell[b].z};
        }
    s->got[part] = (unsigned short)n;
    s->est[part] = (float)median_of(v, n);
    for (int b = 0; b < blocks; b++)
        s->deep[part] = (unsigned short)(s->deep[part] +
                                         (cell[b].z <= noise_constants.stray_depth * s->est[part]));
    s->var[part] = (float)(n ? winsorised(v, n, s->est[part]) : NAN);
}

static double quantile_of(double *v, int n, double share)
{
    double at = share * (n - 1);
    int k = (int)at;

    return stats_select(v, n, k) +
           (at - k) * (k + 1 < n ? stats_select(v, n, k + 1) - stats_select(v, n, k) : 0);
}

/* Degrees of freedom whose log variance spreads as much as seen beyond that of d. */
static double d0_of(double excess)
{
    double lo = 1, hi = noise_constants.prior_most;

    if (excess <= dist_trigamma(hi / 2))
        return hi;
    for (int i = 0; i < 40; i++) {
        double mid = (lo + hi) / 2;

        if (dist_trigamma(mid / 2) > excess)
            lo = mid;
        else
            hi = mid;
    }
    return fmax(noise_constants.prior_least, lo);
}

/* Median of a chi-square (Wilson & Hilferty 1931). */
static double chi2_median(double d)
{
    return d * pow(1 - 2 / (9 * d), 3);
}

/* Values of parts with more than two blocks. */
static void prior_of(struct likeness *like, const struct steady *s, double *buffer)
{
    int n = 0, got = 0;
    double d, q[3];

    for (int p = 0; p < s->parts; p++)
        if (s->got[p] > 2 && s->var[p] > 0)
            buffer[n++] = s->got[p];
    got = n ? (int)usual_quantile(buffer, n, 0.5) : 0;
    n = 0;
    for (int p = 0; p < s->parts; p++)
        if (s->got[p] > 2 && s->var[p] > 0)
            buffer[n++] = log(fmax(s->var[p], 1e-12));
    like->d0 = noise_constants.prior_few;
    like->s0 = n ? exp(median_of(buffer, n)) : noise_constants.var_few;
    if (n < noise_constants.prior_parts)
        return;
    d = got - 1;
    for (int i = 0; i < 3; i++)
        q[i] = quantile_of(buffer, n, 0.25 * (i + 1));
    like->d0 = d0_of(pow((q[2] - q[0]) / iqr_normal, 2) - dist_trigamma(d / 2));
    like->s0 = exp(q[1]) * d / chi2_median(d);
}

static double se2_of(const struct steady *s, int p)
{
    double d = s->got[p] > 1 ? s->got[p] - 1 : 0, d0 = s->like.d0;

    return halfpi * (d0 * s->like.s0 + d * (d > 0 ? s->var[p] : 0)) / (d0 + d) /
           (s->got[p] ? s->got[p] : 1);
}

/* Centre of the parts, and how much parts differ beyond their noise. */
static void population_of(struct likeness *like, const struct steady *s, double *buffer)
{
    double sigma, noise;
    int n = 0;

    for (int p = 0; p < s->parts; p++)
        if (s->got[p])
            buffer[n++] = s->got[p];
    like->blocks = n ? usual_quantile(buffer, n, 0.5) : 0;
    n = 0;
    for (int p = 0; p < s->parts; p++)
        if (s->got[p])
            buffer[n++] = s->est[p];
    if (n < noise_constants.prior_parts) {
        /* the fast heap of looks may be where no part is: none is slower for that, but a part without its like */
        like->centre = n > 1 ? fmin(0, usual_quantile(buffer, n, 1)) : 0;
        return;
    }
    usual_find(buffer, n, &like->centre, &sigma);
    for (int i = 0; i < n; i++)
        buffer[i] = fabs(buffer[i] - like->centre);
    sigma = mad_normal * median_of(buffer, n);
    n = 0;
    for (int p = 0; p < s->parts; p++)
        if (s->got[p])
            buffer[n++] = se2_of(s, p);
    noise = median_of(buffer, n);
    like->pop = fmax(0, sigma * sigma - noise);
}

/* True for a part that is mostly fine, or whose only block may be stray: without those, pairs that are seen once would hide
 * how often blocks are. */
static bool tells_strays(const struct steady *s, int part, double limit, const bool *without)
{
    if (without)
        return s->got[part] && !without[part];
    return s->got[part] == 1 || (s->got[part] && s->est[part] > limit);
}

/* Blocks of parts that are mostly fine, or of all controls: how often one of them is stray, and how deep. */
static void strays_of(struct likeness *like, const struct steady *s, const struct lows *lows,
                      bool group, const bool *without)
{
    double limit = like->centre - noise_constants.delta -
                   noise_constants.stray_sigma * sqrt(like->s0 + like->pop);

    like->limit = limit - like->centre;
    like->least = group ? noise_constants.least_group : noise_constants.least_nic;
    for (int p = 0; p < s->parts; p++)
        like->seen += tells_strays(s, p, limit, without) ? s->got[p] : 0;
    for (int i = 0; i < lows->count; i++)
        if (lows->at[i].z <= limit && tells_strays(s, lows->at[i].part, limit, without))
            MEM_PUSH(like->back, like->backs) = lows->at[i].z - like->centre;
    if (like->backs)
        stats_sort(like->back, like->backs);
}

/* Chance that so many blocks of a healthy part, half of them at least, are stray, and as deep as this effect needs. */
static double stray_chance(const struct likeness *like, double e, int got, int deep)
{
    double least = fmin(noise_constants.stray_depth * e, like->limit), q;
    int lo = 0, hi = like->backs;

    while (lo < hi) {
        int mid = (lo + hi) / 2;

        if (like->back[mid] < least)
            lo = mid + 1;
        else
            hi = mid;
    }
    q = fmin(0.5, (lo + like->least) / ((double)like->seen + 1));
    if (like->limit < noise_constants.stray_depth * e || deep < (got + 1) / 2)
        deep = (got + 1) / 2;
    return dist_binomial_upper(deep, got, q);
}

/* One side, one tier, or few looks within a group. */
static bool is_narrow(const struct lens *l)
{
    return l->side != SIDE_BOTH || l->tier >= 0 || l->way == LENS_IN;
}

static double least_blocks(enum rung rung, const struct lens *lens)
{
    return rung == RUNG_PAIR                           ? noise_constants.pair_blocks
           : rung == RUNG_RACK_PAIR || is_narrow(lens) ? noise_constants.narrow_blocks
                                                       : 2;
}

/* control: NULL, or controls of the same stage, if they are enough */
static void chance_of(struct steady *s, int p, double least, const struct likeness *control)
{
    double e = s->est[p] - s->like.centre, d = s->got[p] > 1 ? s->got[p] - 1 : 0, t, stray;

    s->sd[p] = (float)sqrt(se2_of(s, p) + s->like.pop);
    s->p[p] = 1;
    if (s->got[p] < least || !(e < -noise_constants.delta))
        return;
    t = (e + noise_constants.delta) / s->sd[p];
    stray = stray_chance(&s->like, e, s->got[p], s->deep[p]);
    if (control)
        stray = fmax(stray, stray_chance(control, e, s->got[p], s->deep[p]));
    s->p[p] = fmin(1, dist_t_cdf(t, s->like.d0 + d) + stray);
}

/* Likeness inherited by stage 2.  A group has few NICs in stage 2, so it gets the variance of its NICs. */
static const struct likeness *inherited(const struct hunt *h, enum rung rung,
                                        const struct lens *lens, int l, struct likeness *buffer)
{
    const struct likeness *own = &h->c->like[rung][l];
    const struct likeness *nic = &h->c->like[RUNG_NIC][lens[l].way == LENS_IN ? 0 : l];
    const struct likeness *control = &h->c->control[lens[l].way == LENS_IN ? 0 : l];

    if (!h->asked && h->beside == BESIDE_ANY)
        return NULL;
    if (own->blocks < noise_constants.narrow_blocks && is_narrow(&lens[l]) &&
        lens[l].way != LENS_IN)
        own = &h->c->like[rung][0];
    if (nic->blocks < noise_constants.narrow_blocks && is_narrow(&lens[l]))
        nic = &h->c->like[RUNG_NIC][0];
    *buffer = *own;
    if (lens[l].alone)
        return buffer->s0 > 0 ? buffer : NULL; /* looks per block as in stage 1 */
    if (rung_is_group(rung) && nic->s0 > 0) {
        buffer->s0 = nic->s0;
        buffer->d0 = nic->d0;
        buffer->pop = nic->pop;
        buffer->centre = nic->centre;
    }
    if (rung_is_group(rung) && control->seen >= noise_constants.control_blocks) {
        buffer->back = control->back;
        buffer->backs = control->backs;
        buffer->seen = control->seen;
        buffer->least = control->least;
    }
    return buffer->s0 > 0 ? buffer : NULL;
}

/* A block of stage 2 holds many turns, so the controls and not stage 1 give the rate of stray blocks. */
static void tell_controls(struct likeness *to, const struct steady *s, const struct lows *lows,
                          const bool *selected)
{
    *to = (struct likeness){.centre = s->like.centre, .s0 = s->like.s0, .pop = s->like.pop};
    strays_of(to, s, lows, false, selected);
}

static void finish(struct steady *s, const struct hunt *h, enum rung rung, const struct lens *lens,
                   int l, const struct lows *lows)
{
    double *buffer = mem_calloc((size_t)s->parts + 1, sizeof(*buffer));
    struct likeness taken, control = {0};
    const struct likeness *like = inherited(h, rung, lens, l, &taken);

    if (like) {
        s->like = *like;
    } else {
        prior_of(&s->like, s, buffer);
        population_of(&s->like, s, buffer);
        strays_of(&s->like, s, lows, rung_is_group(rung) || rung == RUNG_RACK_PAIR, NULL);
        free(h->c->like[rung][l].back);
        h->c->like[rung][l] = s->like;
    }
    if (h->asked && rung == RUNG_NIC)
        tell_controls(&control, s, lows, h->v->selected);
    for (int p = 0; p < s->parts; p++)
        chance_of(s, p, least_blocks(rung, &lens[l]),
                  control.seen >= noise_constants.control_blocks ? &control : NULL);
    if (h->asked && rung == RUNG_NIC && h->beside == BESIDE_ANY) {
        free(h->c->control[l].back);
        h->c->control[l] = control;
    } else {
        free(control.back);
    }
    free(buffer);
}

static void steady_room(struct steady *s, int parts)
{
    *s = (struct steady){.parts = parts};
    s->est = mem_calloc((size_t)parts + 1, sizeof(*s->est));
    s->sd = mem_calloc((size_t)parts + 1, sizeof(*s->sd));
    s->var = mem_calloc((size_t)parts + 1, sizeof(*s->var));
    s->p = mem_calloc((size_t)parts + 1, sizeof(*s->p));
    s->got = mem_calloc((size_t)parts + 1, sizeof(*s->got));
    s->deep = mem_calloc((size_t)parts + 1, sizeof(*s->deep));
}

static void sight_make(struct sight *t, const struct hunt *h, enum rung rung,
                       const struct lens *lens, int lenses)
{
    const size_t most = (size_t)gather_most(h, rung) + 1, blocks = (size_t)h->v->blocks + 1;

    masks_make(&t->masks, lens, lenses);
    t->seen = mem_calloc(most, sizeof(*t->seen));
    t->mask = mem_calloc(most, sizeof(*t->mask));
    t->cell = mem_calloc(blocks * (size_t)lenses, sizeof(*t->cell));
    t->v = mem_calloc(blocks, sizeof(*t->v));
}

static void sight_free(struct sight *t)
{
    free(t->seen);
    free(t->mask);
    free(t->cell);
    free(t->v);
}

static void look_at_part(struct steady *s, struct lows *lows, struct sight *t, struct hunt *h,
                         enum rung rung, int part, int lenses)
{
    const int n = gather_part(h, rung, part, t->seen), blocks = h->v->blocks;

    for (int i = 0; i < n; i++)
        t->mask[i] = *mask_at(&t->masks, &t->seen[i]);
    cell_quantiles(t, blocks, lenses, n, hunt_quantile(h));
    for (int l = 0; l < lenses; l++)
        add_part(&s[l], &lows[l], part, t->cell + (ptrdiff_t)l * blocks, blocks, t->v);
}

/* Cells by lens and block, and what adds to them. */
struct weighed {
    struct cell *cell;
    const struct masks *masks;
    const struct view *v;
};

/* Add the weights of looks of a part to its cells; group: groups of its rung, NULL for no group. */
static void weigh(const struct weighed *to, const struct item *at, int n, const int *group,
                  int part)
{
    const struct view *v = to->v;

    for (int i = 0; i < n; i++) {
        const struct item *k = &at[i];
        const int end = item_end(k);
        const bool inside = group && group[k->other] == part;
        const float w = (float)v->class[k->class].weight;
        uint64_t m = to->masks->by[item_tier(k)][end][inside][item_is_fine(k)][!end][k->class & 1];

        for (; m; m &= m - 1)
            to->cell[__builtin_ctzll(m) * v->blocks + k->block].need += w;
    }
}

/* Blocks that count through a lens. */
static int count_blocks(struct cell *cell, int blocks)
{
    int n = 0;

    share_weights(cell, blocks, 0.5);
    for (int b = 0; b < blocks; b++)
        n += cell[b].need > 0 && isfinite(cell[b].need);
    return n;
}

/* A part of a quiet channel: its blocks count as tests, and it does not stand out. */
static void count_part(struct steady *s, struct sight *t, const struct hunt *h, enum rung rung,
                       int part, int lenses)
{
    const int blocks = h->v->blocks, *group = rung_is_group(rung) ? h->places->of[rung] : NULL;
    const struct item *at;
    int n;

    memset(t->cell, 0, (size_t)(blocks * lenses) * sizeof(*t->cell));
    for (int i = 0; (at = hunt_run(h, rung, part, i, &n)) != NULL; i++)
        weigh(&(struct weighed){t->cell, &t->masks, h->v}, at, n, group, part);
    for (int l = 0; l < lenses; l++)
        s[l].got[part] = (unsigned short)count_blocks(t->cell + (ptrdiff_t)l * blocks, blocks);
}

static void count_parts(struct steady *s, struct sight *t, const struct hunt *h, enum rung rung,
                        const bool *only, int lenses)
{
    for (int p = 0; p < s->parts; p++) {
        if (!only || only[p])
            count_part(s, t, h, rung, p, lenses);
        for (int l = 0; l < lenses; l++)
            s[l].p[p] = 1;
    }
}

static void judge_parts(struct steady *s, struct sight *t, struct hunt *h, enum rung rung,
                        const bool *only, const struct lens *lens, int lenses)
{
    struct lows *lows = mem_calloc((size_t)lenses + 1, sizeof(*lows));

    for (int p = 0; p < s->parts; p++) {
        if (!only || only[p])
            look_at_part(s, lows, t, h, rung, p, lenses);
        for (int l = 0; only && !only[p] && l < lenses; l++)
            s[l].est[p] = s[l].var[p] = NAN;
    }
    for (int l = 0; l < lenses; l++) {
        finish(&s[l], h, rung, lens, l, &lows[l]);
        free(lows[l].at);
    }
    free(lows);
}

void steady_make(struct steady *s, struct hunt *h, enum rung rung, const bool *only,
                 const struct lens *lens, int lenses)
{
    const int parts = gather_count(h, rung);
    struct sight sight;

    sight_make(&sight, h, rung, lens, lenses);
    for (int l = 0; l < lenses; l++)
        steady_room(&s[l], parts);
    if (h->quiet)
        count_parts(s, &sight, h, rung, only, lenses);
    else
        judge_parts(s, &sight, h, rung, only, lens, lenses);
    sight_free(&sight);
}

/* Racks behind this one that it has looks with. */
struct meeting {
    struct cell *cell;         /* by rack in the order of `rack`, lens and block */
    int *number, *rack, racks; /* number: index in `rack` by rack; -1: none */
};

static void meet(struct meeting *m, const struct masks *masks, const struct hunt *h, int rack,
                 int cells)
{
    const int *of = h->places->of[RUNG_RACK];
    const struct item *at;
    int n;

    for (int i = 0; (at = hunt_run(h, RUNG_RACK, rack, i, &n)) != NULL; i++)
        for (int k = 0; k < n; k++) {
            const int other = of[at[k].other];

            if (other <= rack)
                continue;
            if (m->number[other] < 0) {
                m->number[other] = m->racks;
                m->rack[m->racks++] = other;
            }
            weigh(&(struct weighed){m->cell + (ptrdiff_t)m->number[other] * cells, masks, h->v},
                  &at[k], 1, NULL, 0);
        }
}

long steady_racks(const struct hunt *h, const struct lens *lens, int lenses)
{
    const int blocks = h->v->blocks, cells = blocks * lenses, racks = h->places->count[RUNG_RACK];
    struct meeting m = {mem_calloc((size_t)racks * (size_t)cells + 1, sizeof(*m.cell)),
                        mem_ints(racks, -1), mem_ints(racks, 0), 0};
    struct masks masks;
    long tests = 0;

    masks_make(&masks, lens, lenses);
    for (int r = 0; r < racks; r++) {
        meet(&m, &masks, h, r, cells);
        for (int i = 0; i < m.racks * lenses; i++)
            tests += count_blocks(m.cell + (ptrdiff_t)i * blocks, blocks) >= 2;
        memset(m.cell, 0, (size_t)m.racks * (size_t)cells * sizeof(*m.cell));
        while (m.racks)
            m.number[m.rack[--m.racks]] = -1;
    }
    free(m.cell);
    free(m.number);
    free(m.rack);
    return tests;
}

void steady_cells(struct steady *s, const float *z, int parts, int blocks, double least)
{
    struct cell *cell = mem_calloc((size_t)blocks + 1, sizeof(*cell));
    double *v = mem_calloc((size_t)(parts > blocks ? parts : blocks) + 1, sizeof(*v));
    struct lows lows = {NULL, 0};

    steady_room(s, parts);
    for (int p = 0; p < parts; p++) {
        for (int b = 0; b < blocks; b++)
            cell[b].z = z[p * blocks + b];
        add_part(s, &lows, p, cell, blocks, v);
    }
    prior_of(&s->like, s, v);
    population_of(&s->like, s, v);
    strays_of(&s->like, s, &lows, true, NULL);
    for (int p = 0; p < parts; p++)
        chance_of(s, p, least, NULL);
    free(lows.at);
    free(cell);
    free(v);
}

/* Keeps like, which the channel owns. */
void steady_free(struct steady *s, int lenses)
{
    for (int l = 0; l < lenses; l++) {
        free(s[l].est);
        free(s[l].sd);
        free(s[l].var);
        free(s[l].p);
        free(s[l].got);
        free(s[l].deep);
    }
}
