/* SPDX-License-Identifier: BSD-3-Clause */
#include "verdict/epochs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/distribution.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/stats.h"

/* --- one figure --- */

struct cell {
    int epoch, unit;
    double y;   /* median over sizes, later minus the median of its epoch */
    bool alone; /* only cell of its epoch: nothing to compare with */
};

/* Points of a cell are adjacent. */
static struct cell *make_cells(const struct figures *all, const struct figure *g, const double *y,
                               int *count)
{
    struct cell *cell = mem_calloc((size_t)g->points + 1, sizeof(*cell));
    double *v = mem_calloc((size_t)g->points + 1, sizeof(*v));
    const struct figure_cell *at = all->cell + g->first;
    int n = 0;

    for (int i = 0, k; i < g->points; i = k) {
        for (k = i; k < g->points && at[k].epoch == at[i].epoch && at[k].unit == at[i].unit; k++)
            v[k - i] = y[k];
        cell[n++] = (struct cell){at[i].epoch, at[i].unit, stats_middle(v, k - i), false};
    }
    free(v);
    *count = n;
    return cell;
}

/* Factor for the residual of one of n values about their median, which is too small for few
 * values. */
static double unbiased(int n)
{
    return sqrt(n / (n - 1.0));
}

/* Set the values of the blocks; the cells keep the rest. */
static void take_blocks(struct epochs *e, struct cell *cell, int cells)
{
    double *v = mem_calloc((size_t)cells + 1, sizeof(*v)),
           *off = mem_calloc((size_t)cells + 1, sizeof(*off));
    int offs = 0, *key = mem_ints(cells, 0);
    struct lists by; /* there are many cells, and they are not in the order of epochs */

    for (int i = 0; i < cells; i++)
        key[i] = cell[i].epoch;
    lists_make(&by, key, NULL, cells, PLAN_EPOCHS);
    for (int epoch = 0; epoch < PLAN_EPOCHS; epoch++) {
        const int *at = by.at + by.start[epoch], n = by.start[epoch + 1] - by.start[epoch];
        for (int i = 0; i < n; i++)
            v[i] = cell[at[i]].y;
        double median = e->value[epoch] = n ? stats_middle(v, n) : NAN;
        for (int i = 0; i < n; i++) {
            struct cell *c = &cell[at[i]];
            c->y = n > 1 ? (c->y - median) * unbiased(n) : 0;
            c->alone = n == 1;
            if (n >= EPOCHS_UNITS)
                off[offs++] = fabs(c->y);
        }
    }
    lists_free(&by);
    free(key);
    e->within = offs ? pow(1.4826 * stats_middle(off, offs), 2) : NAN;
    free(off);
    free(v);
}

static void take_level(struct epochs *e)
{
    double mean = 0, sum = 0;

    e->blocks = 0;
    for (int i = 0; i < PLAN_EPOCHS; i++)
        if (!isnan(e->value[i])) {
            double off = e->value[i] - mean;
            mean += off / ++e->blocks; /* Welford 1962 */
            sum += off * (e->value[i] - mean);
        }
    e->level = mean;
    e->between = e->blocks > 1 ? sum / (e->blocks - 1) : NAN;
}

/* Add the cells of one unit, which are adjacent. */
static void take_unit(struct epochs *e, const struct cell *cell, int n, int cells, double *noise)
{
    double mean = 0, sum = 0;
    int seen = 0;

    e->units++;
    e->share += (double)n / cells * n / cells;
    for (int i = 0; i < n; i++) {
        seen += !cell[i].alone;
        mean += cell[i].alone ? 0 : cell[i].y;
    }
    if (seen < 2)
        return;
    mean /= seen;
    for (int i = 0; i < n; i++)
        sum += cell[i].alone ? 0 : (cell[i].y - mean) * (cell[i].y - mean);
    noise[e->lucks] = sum / (seen - 1) / seen;
    MEM_PUSH(e->luck, e->lucks) = mean;
}

static void take_units(struct epochs *e, const struct cell *cell, int cells)
{
    double *noise = mem_calloc((size_t)cells + 1, sizeof(*noise));

    for (int i = 0, k; i < cells; i = k) {
        for (k = i; k < cells && cell[k].unit == cell[i].unit;)
            k++;
        take_unit(e, cell + i, k - i, cells, noise);
    }
    e->luck_noise = e->lucks ? stats_middle(noise, e->lucks) : NAN;
    free(noise);
}

void epochs_of(struct epochs *e, const struct figures *all, const struct figure *g, const double *y)
{
    int cells;
    struct cell *cell = make_cells(all, g, y, &cells);

    *e = (struct epochs){
        .kind = (g->key.tier >= 0) * 4 + g->rate * 2 + g->nic, .se = NAN, .df = NAN, .p = NAN};
    take_blocks(e, cell, cells);
    take_level(e);
    e->cells = (double)cells / e->blocks;
    take_units(e, cell, cells);
    free(cell);
}

void epochs_join(struct epochs *e, const struct epochs *const *part, int n)
{
    *e = (struct epochs){.kind = part[0]->kind,
                         .joined = true,
                         .cells = 1,
                         .luck_noise = NAN,
                         .se = NAN,
                         .df = NAN,
                         .p = NAN};
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < PLAN_EPOCHS; k++)
            e->value[k] += part[i]->value[k] / n;
        e->units += part[i]->units;
        e->share += part[i]->share / n / n;
        e->within += part[i]->within / part[i]->cells / n / n;
    }
    take_level(e);
}

void epochs_free(struct epochs *e)
{
    free(e->luck);
    *e = (struct epochs){0};
}

/* --- parameters shared by figures --- */

enum { KINDS = 8 };

/* Median of a field over the figures of a kind (-1: all) that have it; NAN: none does. */
static double usual(const struct epochs *e, int n, int kind, size_t offset)
{
    double *v = mem_calloc((size_t)n + 1, sizeof(*v)), x;
    int count = 0;

    for (int i = 0; i < n; i++) {
        memcpy(&x, (const char *)&e[i] + offset, sizeof(x));
        if ((kind < 0 || e[i].kind == kind) && x > 0)
            v[count++] = x;
    }
    double median = count ? stats_middle(v, count) : NAN;
    free(v);
    return median;
}

/* Variance between blocks expected from the spread between units.  If no figure of the kind has
 * enough units, the usual variance between blocks. */
static double expected(const struct epochs *e, const double within[KINDS],
                       const double between[KINDS])
{
    double own = e->within > 0 ? e->within : within[e->kind];

    return own > 0 ? own / e->cells : between[e->kind];
}

struct luck {
    double var;
    int values; /* values behind the estimate */
};

/* Differences between figures of a kind that consist of a single group each. */
static int lone_levels(const struct epochs *e, int n, int kind, double *v)
{
    int count = 0;

    for (int i = 0; i < n; i++)
        if (e[i].kind == kind && e[i].units == 1 && e[i].blocks > 1)
            v[count++] = e[i].level;
    double median = count ? stats_median(v, count) : 0;
    for (int i = 0; i < count; i++)
        v[i] = (v[i] - median) * (count > 1 ? unbiased(count) : 0);
    return count;
}

/* Not a median, because colliding routes hit one communicator in ten and cause the alarms. */
static double mean_square(const double *v, int n)
{
    double sum = 0;

    for (int i = 0; i < n; i++)
        sum += v[i] * v[i];
    return sum / n;
}

static struct luck luck_of(const struct epochs *e, int n, int kind)
{
    struct luck luck = {0};
    double noise = usual(e, n, kind, offsetof(struct epochs, luck_noise));
    int room = n;

    for (int i = 0; i < n; i++)
        room += e[i].lucks;
    double *v = mem_calloc((size_t)room + 1, sizeof(*v));
    for (int i = 0; i < n; i++)
        for (int k = 0; e[i].kind == kind && k < e[i].lucks; k++)
            v[luck.values++] = e[i].luck[k];
    if (luck.values < EPOCHS_LUCK) {
        luck.values = lone_levels(e, n, kind, v);
        noise = usual(e, n, kind, offsetof(struct epochs, between)) / EPOCHS_LEAST;
    }
    if (luck.values >= EPOCHS_LUCK)
        luck.var = fmax(0, mean_square(v, luck.values) - (noise > 0 ? noise : 0));
    free(v);
    return luck;
}

/* Degrees of freedom of a sum of estimated variances (Satterthwaite 1946). */
static double df_of(double a, double df_a, double b, double df_b)
{
    return b > 0 ? (a + b) * (a + b) / (a * a / df_a + b * b / df_b) : df_a;
}

static void judge(struct epochs *e, double expect, double var0, double df0, const struct luck *luck)
{
    double own = e->blocks - 1,
           weight = e->joined || !(df0 > 0) ? 0 : fmax(EPOCHS_PRIOR, fmin(df0, own));

    if (e->blocks < EPOCHS_LEAST)
        return;
    double var = (weight * var0 * expect + own * e->between) / (weight + own);
    double blocks = var / e->blocks + EPOCHS_FLOOR * EPOCHS_FLOOR, lasting = e->share * luck->var;
    e->se = sqrt(blocks + lasting);
    e->df = df_of(blocks, weight + own, lasting, luck->values);
    e->p = 2 * dist_t_cdf(-fabs(e->level) / e->se, e->df);
}

void epochs_judge(struct epochs *e, int n)
{
    double *ratio = mem_calloc((size_t)n + 1, sizeof(*ratio)), within[KINDS], between[KINDS], var0,
           df0;
    struct luck luck[KINDS];
    int most = 2;

    for (int k = 0; k < KINDS; k++) {
        within[k] = usual(e, n, k, offsetof(struct epochs, within));
        between[k] = usual(e, n, k, offsetof(struct epochs, between));
        luck[k] = luck_of(e, n, k);
    }
    for (int i = 0; i < n; i++) {
        ratio[i] = e[i].between / expected(&e[i], within, between);
        most = e[i].blocks > most ? e[i].blocks : most;
    }
    stats_prior(ratio, n, most - 1, &var0, &df0);
    for (int i = 0; i < n; i++) {
        double expect = expected(&e[i], within, between);
        judge(&e[i], expect > 0 ? expect : 0, var0, df0, &luck[e[i].kind]);
    }
    free(ratio);
}
