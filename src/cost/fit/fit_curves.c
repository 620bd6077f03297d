/* SPDX-License-Identifier: BSD-3-Clause */
/* Tier curves: at each size the median over healthy pairs, alone where any ran alone at that size.
 * At the size of the pair matrix that is the class median over all its pairs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"
#include "cost/fit/fit_state.h"
#include "probe/mpi/mpi_opts.h"

static const double as_good_as_alone = 0.02; /* parallel within this of alone: counted together */

static const enum op op_of[DIR_COUNT] = {
    [DIR_ONEWAY] = OP_PAIR_LATENCY, [DIR_UNI] = OP_PAIR_BW, [DIR_BI] = OP_PAIR_BIBW};

static int by_size(const void *a, const void *b)
{
    const struct obs *x = *(const struct obs *const *)a, *y = *(const struct obs *const *)b;

    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    return (x->alone < y->alone) - (x->alone > y->alone); /* alone first */
}

static struct curve_point median_point(const struct obs *const *o, int n)
{
    double *v = mem_calloc(3 * (size_t)n, sizeof(*v));
    struct curve_point p = {.bytes = o[0]->bytes};

    for (int i = 0; i < n; i++) {
        v[i] = o[i]->sec;
        v[n + i] = o[i]->lo;
        v[2 * n + i] = o[i]->hi;
        p.n += o[i]->n;
    }
    p.sec = stats_median(v, n);
    p.lo = fmin(p.sec, stats_median(v + n, n));
    p.hi = fmax(p.sec, stats_median(v + 2 * n, n));
    free(v);
    return p;
}

static double median_sec(const struct obs *const *o, int n)
{
    double *v = mem_calloc((size_t)n, sizeof(*v));

    for (int i = 0; i < n; i++)
        v[i] = o[i]->sec;
    double median = stats_median(v, n);
    free(v);
    return median;
}

/* Observations of one size, those alone first: how many of them count.  Each operation is asked for
 * itself: bandwidth may be the same in a crowd while latency is not. */
static int counted(const struct obs *const *o, int n)
{
    int alone = 0;

    while (alone < n && o[alone]->alone)
        alone++;
    if (alone == 0 || alone == n)
        return n;
    double ratio = median_sec(o + alone, n - alone) / median_sec(o, alone);
    return fabs(ratio - 1) < as_good_as_alone ? n : alone;
}

static void fit_curve(struct fit *f, int tier, enum direction dir, const struct obs **o)
{
    struct curve *c = &f->m->tier[tier].curve[dir];
    int n = 0;

    for (int i = 0; i < f->count; i++)
        if (f->obs[i].tier == tier && f->obs[i].op == op_of[dir] && f->obs[i].sec > 0 &&
            fit_healthy(f, f->obs[i].src, f->obs[i].dst))
            o[n++] = &f->obs[i];
    if (n)
        qsort(o, (size_t)n, sizeof(struct obs *), by_size);
    for (int i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && o[j]->bytes == o[i]->bytes; j++)
            ;
        curve_add(c, median_point(o + i, counted(o + i, j - i)));
    }
    curve_settle(c);
    curve_summarise(c);
}

/* One size gives no slope; what a message of a window carries of the latency is known, though. */
static void slope_of_one(struct tier *t, bool over_mpi)
{
    const struct mpi_opts usual = {0};
    double alpha = t->curve[DIR_ONEWAY].points ? t->curve[DIR_ONEWAY].alpha : 0;

    for (int d = DIR_UNI; d < DIR_COUNT; d++) {
        struct curve *c = &t->curve[d];
        if (c->points != 1)
            continue;
        int window = over_mpi ? mpi_opts_window(&usual, (size_t)c->point[0].bytes) : OP_PAIR_WINDOW;
        double rest = c->point[0].sec - alpha / window;
        if (rest > 0.5 * c->point[0].sec)
            c->beta = rest / c->point[0].bytes;
    }
}

void fit_curves(struct fit *f)
{
    const struct obs **o = mem_calloc((size_t)f->count, sizeof(*o));

    for (int tier = 0; tier < f->m->tiers; tier++) {
        for (int d = 0; d < DIR_COUNT; d++)
            fit_curve(f, tier, d, o);
        slope_of_one(&f->m->tier[tier], !strcmp(f->m->transport, "mpi"));
    }
    free(o);
}
