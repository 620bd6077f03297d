/* SPDX-License-Identifier: BSD-3-Clause */
/* plot_dist.c - share of expected bandwidth over all pairs, by tier: quantiles, density, tail. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"
#include "base/units.h"
#include "report/plot/pair_map.h"
#include "report/plot/plot_data.h"

enum {
    TIERS_MAX = 6,
    TAIL_ROWS = 1000,
    BODY_ROWS = 3000,
    ALL_PAIRS_MAX = 512,
    PARTNERS = 64,
    /* up to this many pairs are drawn as dots; a density would show more than is known */
    DOTS_MAX = 40
};

static const double accept_share = 90; /* percent; pairs below it are marked */

struct group {
    int tier;
    double expected, *rate;    /* B/s; rate is sorted */
    int count, missing;        /* number of directions */
    int pairs;                 /* number of pairs, as counted in the tables */
    int same_rack, other_rack; /* number of pairs */
    /* Row of the tables: it represents n sorted rates by the share of the middle one, rate[i + n /
     * 2]. */
    struct row {
        double share;
        int n;
    } * row;
    int rows;
};

struct dist {
    const struct pair_map *ps;
    struct group group[TIER_MAX];
    int groups;
};

/* Share in percent of expected. */
static double share(const struct group *g, int i)
{
    return 100 * (g->rate[i] / g->expected);
}

static void add_pair(struct dist *d, int src, int dst, double rate)
{
    const struct topo *t = &d->ps->m->topo;
    int tier = pair_map_tier(d->ps, src, dst);
    struct group *g = &d->group[tier];
    int a = t->endpoint[src].place.at[LEVEL_RACK], b = t->endpoint[dst].place.at[LEVEL_RACK];

    g->tier = tier;
    g->expected = d->ps->expected[tier];
    if (isnan(rate / g->expected)) {
        g->missing++;
        return;
    }
    MEM_PUSH(g->rate, g->count) = rate;
    g->pairs += src < dst || (d->ps->samples && !pair_map_sample(d->ps, dst, src));
    if (a >= 0 && b >= 0)
        (*(a == b ? &g->same_rack : &g->other_rack))++;
}

/* Without measured pairs, use the matrix: all pairs, or PARTNERS partners near and far for each
 * endpoint. */
static void add_modelled(struct dist *d)
{
    const struct pair_map *ps = d->ps;

    for (int i = 0; i < ps->n; i++)
        for (int k = 1; k < ps->n && k <= (ps->n <= ALL_PAIRS_MAX ? ps->n : PARTNERS); k++) {
            int step = ps->n <= ALL_PAIRS_MAX || k <= PARTNERS / 2
                           ? k
                           : (int)((long)ps->n * (k - PARTNERS / 2) / (PARTNERS / 2 + 1));
            int src = ps->order[i], dst = ps->order[(i + step) % ps->n];
            if (src != dst)
                add_pair(d, src, dst, pair_map_rate(ps, src, dst));
        }
}

static int by_count(const void *x, const void *y)
{
    const struct group *a = x, *b = y;

    return (b->count > a->count) - (b->count < a->count);
}

static int by_tier(const void *x, const void *y)
{
    const struct group *a = x, *b = y;

    return a->tier - b->tier;
}

/* The slow tail in full, the rest in runs of equal length represented by their middle; with more
 * pairs than dots, equal values are one row. */
static void make_rows(struct group *g)
{
    int body = g->count > TAIL_ROWS ? g->count - TAIL_ROWS : 0;
    int run = body > BODY_ROWS ? (body + BODY_ROWS - 1) / BODY_ROWS : 1;

    for (int i = 0, n; i < g->count; i += n) {
        n = i < TAIL_ROWS ? 1 : run;
        n = i + n > g->count ? g->count - i : n;
        if (g->count > DOTS_MAX && g->rate[i + n - 1] == g->rate[i])
            while (i + n < g->count && g->rate[i + n] == g->rate[i])
                n++;
        MEM_PUSH(g->row, g->rows) = (struct row){share(g, i + n / 2), n};
    }
}

/* Sort, drop empty tiers, keep the TIERS_MAX with most pairs in the order of the tier table. */
static void settle(struct dist *d)
{
    qsort(d->group, TIER_MAX, sizeof(*d->group), by_count);
    while (d->groups < TIERS_MAX && d->group[d->groups].count)
        d->groups++;
    for (int i = d->groups; i < TIER_MAX; i++)
        free(d->group[i].rate);
    qsort(d->group, (size_t)d->groups, sizeof(*d->group), by_tier);
    for (int i = 0; i < d->groups; i++) {
        stats_sort(d->group[i].rate, d->group[i].count);
        make_rows(&d->group[i]);
    }
}

static double quantile(const struct group *g, double q)
{
    double at = q * (g->count - 1);
    int k = (int)at;

    if (k + 1 >= g->count)
        return share(g, g->count - 1);
    return share(g, k) + (at - k) * (share(g, k + 1) - share(g, k));
}

/* Place overlapping dots side by side: the k-th of those closer than the height of a dot goes
 * right, left, further right ... */
static double dot_aside(const struct group *g, int i)
{
    static const double height = 0.35, width = 0.07; /* percent; share of half a column */
    int k = 0;

    if (g->count > DOTS_MAX)
        return NAN;
    while (k < i && g->row[i].share - g->row[i - k - 1].share < height)
        k++;
    return width * ((k + 1) / 2) * (k % 2 ? 1 : -1);
}

static void put_values(FILE *out, const void *figure)
{
    const struct dist *d = figure;

    for (int k = 0; k < d->groups; k++) {
        const struct group *g = &d->group[k];
        for (int i = 0, at = 0; i < g->rows; at += g->row[i++].n) {
            const struct row *r = &g->row[i];
            fprintf(out, "%d\t%s\t%.5g\t%.5g\t%d", k + 1, d->ps->m->tier[g->tier].rule.name,
                    r->share, g->rate[at + r->n / 2] / 1e9, r->n);
            plot_number(out, dot_aside(g, i));
            putc('\n', out);
        }
    }
}

/* Silverman's rule, 0.9 sd n^-1/5 (Density Estimation, 1986, eq. 3.31), with the spread from the
 * median absolute deviation, so that a slow tail does not blur the rest.  The lower limit keeps
 * equal values visible. */
static double bandwidth(const struct group *g)
{
    double median = quantile(g, 0.5), *off = mem_calloc((size_t)g->count, sizeof(*off));

    for (int i = 0; i < g->count; i++)
        off[i] = fabs(share(g, i) - median);
    double mad = stats_middle(off, g->count);
    free(off);
    return fmin(3, fmax(0.35, 0.9 * 1.4826 * mad * pow(g->count, -0.2)));
}

/* Outline of the density, its highest point 1: a normal kernel on every row, from the smallest
 * share to the largest, because nothing was measured beyond. */
static void print_density(FILE *out, const struct group *g, int series)
{
    enum { STEPS = 400 };
    double density[STEPS + 1], most = 0, from = quantile(g, 0), to = quantile(g, 1);

    if (g->count <= DOTS_MAX)
        return;
    double h = bandwidth(g);
    for (int k = 0; k <= STEPS; k++) {
        double at = from + (to - from) * k / STEPS, sum = 0;
        for (int i = 0; i < g->rows; i++) {
            double z = (at - g->row[i].share) / h;
            if (fabs(z) < 5)
                sum += g->row[i].n * exp(-z * z / 2);
        }
        density[k] = sum;
        most = fmax(most, sum);
    }
    for (int k = 0; k <= STEPS; k++)
        fprintf(out, "%d\t%.5g\t%.4f\n", series, from + (to - from) * k / STEPS, density[k] / most);
}

static void put_densities(FILE *out, const void *figure)
{
    const struct dist *d = figure;

    for (int i = 0; i < d->groups; i++)
        print_density(out, &d->group[i], i + 1);
}

static const char *where(const struct group *g)
{
    if (g->same_rack && !g->other_rack)
        return "inside a rack";
    if (g->other_rack && !g->same_rack)
        return "between racks";
    return g->same_rack ? "in and between racks" : "";
}

static int below(const struct group *g)
{
    int n = 0;

    while (n < g->count && share(g, n) < accept_share)
        n++;
    return n;
}

/* first: first row of the tier in dist.tsv. */
static void print_tier(FILE *out, const struct dist *d, int index, int first)
{
    static const double q[] = {0, 0.05, 0.25, 0.5, 0.75, 0.95, 1};
    const struct group *g = &d->group[index];
    char name[PLOT_TEXT], count[PLOT_TEXT], rate[HEAT_NUMBER];

    fprintf(out, "%d\t%s\t%s\t%s\t%d", index + 1,
            plot_text(name, d->ps->m->tier[g->tier].rule.name, 20), where(g),
            plot_count(count, g->pairs, "pair"), below(g));
    fprintf(out, "\t%s", heat_number(rate, g->rate[g->count / 2] / 1e9));
    fprintf(out, "\t%s", heat_number(rate, g->rate[0] / 1e9));
    for (size_t i = 0; i < sizeof(q) / sizeof(*q); i++)
        fprintf(out, "\t%.5g", quantile(g, q[i]));
    fprintf(out, "\t%d\t%d\t%d\n", g->count, first, first + g->rows - 1);
}

static void put_tiers(FILE *out, const void *figure)
{
    const struct dist *d = figure;

    for (int i = 0, first = 0; i < d->groups; first += d->group[i++].rows)
        print_tier(out, d, i, first);
}

static void print_words(FILE *out, const struct dist *d)
{
    char size[UNITS_TEXT];
    bool racks = d->ps->m->topo.group[LEVEL_RACK].count > 1;

    fprintf(out, "title\t%s\n",
            racks           ? "Inside a rack and between racks"
            : d->groups > 1 ? "Kinds of pairs"
                            : "All pairs");
    fprintf(out,
            "subtitle\t%s messages; each pair as a share of what its kind of link gives; bar: "
            "quartiles, line: 5th to 95th percentile; few pairs: a dot each%s\n",
            units_bytes_text(size, d->ps->bytes),
            d->ps->samples ? "" : "; from the cost matrix, nothing measured");
}

static void put_meta(FILE *out, const void *figure)
{
    const struct dist *d = figure;
    double lo = 100, hi = 100;
    int most = 1;

    for (int i = 0; i < d->groups; i++) {
        const struct group *g = &d->group[i];
        lo = fmin(lo, quantile(g, 0));
        hi = fmax(hi, quantile(g, 0.995));
        most = g->count > most ? g->count : most;
    }
    lo = fmax(0, fmin(80, 10 * floor((lo - 3) / 10)));
    hi = fmin(200, fmax(105, 5 * ceil(hi / 5)));
    double rare = pow(10, floor(log10(1.0 / most)));
    print_words(out, d);
    fprintf(out, "tiers\t%d\nlo\t%g\nhi\t%g\nrare\t%.6f\naccept\t%g\ndots\t%d\n", d->groups, lo, hi,
            fmax(1e-6, fmin(0.1, rare)), accept_share, DOTS_MAX);
}

static const struct plot_table tables[] = {
    /* pairs: number that a row represents; aside: horizontal place of its dot, NaN with an
     * outline. */
    {"dist.tsv", "series\ttier\tshare_percent\tGBps\tpairs\taside", put_values},
    {"dist_density.tsv", "series\tshare_percent\tdensity", put_densities},
    {"dist_tier.tsv",
     "series\ttier\twhere\tcount\tbelow\tmedian_GBps\tworst_GBps\tmin\tp5\tq1\tmedian\tq3\t"
     "p95\tmax\tpairs\tfirst\tlast", /* rows of dist.tsv, from 0 */
     put_tiers},
    {"dist_meta.tsv", "key\tvalue", put_meta},
    {NULL, NULL, NULL},
};

int plot_data_dist(const struct plot_source *s, const char *dir, struct err *err)
{
    const struct pair_map *ps = plot_pairs(s, err);

    if (!ps)
        return -1;
    struct dist d = {.ps = ps};
    for (int i = 0; i < ps->samples; i++)
        add_pair(&d, ps->sample[i].src, ps->sample[i].dst, ps->sample[i].Bps);
    if (!ps->samples)
        add_modelled(&d);
    settle(&d);
    int rc = d.groups ? plot_tables_write(tables, &d, dir, err)
                      : err_data(err, "no pairs to plot: none of %d measured pairs has data",
                                 ps->samples);
    for (int i = 0; i < d.groups; i++) {
        free(d.group[i].rate);
        free(d.group[i].row);
    }
    return rc;
}
