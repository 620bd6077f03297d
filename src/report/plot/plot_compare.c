/* SPDX-License-Identifier: BSD-3-Clause */
/* plot_compare.c - two campaigns, of one machine or of two, in one picture: tiers by size, shares
 * of all pairs, collectives. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"
#include "base/table.h"
#include "base/units.h"
#include "report/plot/heat.h"
#include "report/plot/pair_map.h"
#include "report/plot/plot.h"

enum { BARS = 14, TIERS = 6, STEPS = 600, OCTAVE_PARTS = 4 };

/* A tier of both; -1: missing in one. */
struct compare_tier {
    const char *name;
    int at[2];
};

/* A collective at the largest common size, of groups with the same shape, else of the largest
 * groups. */
struct compare_bar {
    enum op op;
    struct shape shape[2];
    double bytes, rate[2]; /* B/s */
    double lo[2], hi[2];
};

struct compare_plot {
    const struct plot_source *s;
    struct compare_tier tier[TIERS];
    int tiers;
    double from, to, lo, hi; /* bytes, GB/s */
    double *share[2];        /* percent, sorted */
    int shares[2];
    struct compare_bar *bar;
    int bars;
};

static const struct matrix *matrix_of(const struct compare_plot *p, int side)
{
    return p->s->pair[side].matrix;
}

/* --- tiers --- */

/* True if the size is within the measured range of the curve.  A published line holds for all
 * sizes. */
static bool measured_at(const struct curve *c, double bytes)
{
    return !c->point[0].n ||
           (bytes >= c->point[0].bytes * 0.999 && bytes <= c->point[c->points - 1].bytes * 1.001);
}

static int tier_named(const struct matrix *m, const char *name)
{
    for (int i = 0; i < m->tiers; i++)
        if (!strcmp(m->tier[i].rule.name, name) && m->tier[i].curve[DIR_UNI].points)
            return i;
    return -1;
}

static double tier_rate(const struct compare_plot *p, int side, int tier, double bytes)
{
    return bytes / curve_time(&matrix_of(p, side)->tier[tier].curve[DIR_UNI], bytes) / 1e9;
}

/* GB/s over all measured pairs of the tier, not only those of its curve; NAN: no such tier. */
static double whole_rate(const struct compare_plot *p, int side, const struct compare_tier *t)
{
    return t->at[side] < 0 ? NAN : matrix_rate(matrix_of(p, side), t->at[side], DIR_UNI) / 1e9;
}

static void add_tiers(struct compare_plot *p)
{
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < matrix_of(p, side)->tiers && p->tiers < TIERS; i++) {
            const char *name = matrix_of(p, side)->tier[i].rule.name;
            struct compare_tier t = {
                name, {tier_named(matrix_of(p, 0), name), tier_named(matrix_of(p, 1), name)}};
            if (t.at[side] == i && (side == 0 || t.at[0] < 0) &&
                pair_only_tier(&p->s->only, matrix_of(p, side), i))
                p->tier[p->tiers++] = t;
        }
    p->from = 4 << 10;
    p->to = 256 << 20;
    p->lo = INFINITY;
    for (int i = 0; i < p->tiers; i++)
        for (int side = 0; side < 2; side++) {
            if (p->tier[i].at[side] < 0)
                continue;
            p->lo = fmin(p->lo, tier_rate(p, side, p->tier[i].at[side], p->from));
            p->hi = fmax(p->hi, tier_rate(p, side, p->tier[i].at[side], p->to));
        }
    p->hi = plot_nice(p->hi * 1.2, true);
    p->lo = plot_nice(fmax(p->lo, p->hi / 1e5), false);
}

/* --- pairs --- */

static int add_shares(struct compare_plot *p, int side, struct err *err)
{
    struct pair_map ps;

    if (pair_map_init(&ps, matrix_of(p, side), p->s->pair[side].points, &p->s->only, err) < 0)
        return -1;
    for (int i = 0; i < ps.samples; i++) {
        const struct pair_sample *x = &ps.sample[i];
        double share = 100 * pair_map_share(&ps, x->src, x->dst, x->Bps);
        if (!isnan(share))
            MEM_PUSH(p->share[side], p->shares[side]) = share;
    }
    stats_sort(p->share[side], p->shares[side]);
    pair_map_free(&ps);
    return 0;
}

/* --- collectives --- */

static const struct collective *same_collective(const struct matrix *m, const struct collective *c)
{
    for (int i = 0; i < m->collectives; i++) {
        const struct collective *x = &m->collective[i];
        if (x->op == c->op && x->curve.points && shape_equal(&x->shape, &c->shape))
            return x;
    }
    return NULL;
}

static double largest(const struct collective *c)
{
    return c->curve.point[c->curve.points - 1].bytes;
}

static void add_bar(struct compare_plot *p, const struct collective *const c[2])
{
    struct compare_bar b = {.op = c[0]->op,
                            .shape = {c[0]->shape, c[1]->shape},
                            .bytes = fmin(largest(c[0]), largest(c[1]))};

    for (int side = 0; side < 2; side++) {
        double factor = b.bytes * op_bus_factor(b.op, b.shape[side].ranks), lo, hi;
        curve_interval(&c[side]->curve, b.bytes, &lo, &hi);
        b.rate[side] = factor / curve_time(&c[side]->curve, b.bytes);
        b.lo[side] = factor / hi;
        b.hi[side] = factor / lo;
    }
    MEM_PUSH(p->bar, p->bars) = b;
}

static double change_of(const struct compare_bar *b)
{
    return b->rate[1] / b->rate[0];
}

/* Order by operation, large groups first. */
static int by_op(const void *x, const void *y)
{
    const struct compare_bar *a = x, *b = y;

    return stats_order((double[]){a->op, -a->shape->ranks, -a->shape->domains},
                       (double[]){b->op, -b->shape->ranks, -b->shape->domains}, 3);
}

static int by_change(const void *x, const void *y)
{
    const struct compare_bar *a = x, *b = y;
    double u = fabs(log(change_of(a))), v = fabs(log(change_of(b)));

    return (u < v) - (u > v);
}

static const struct collective *largest_group(const struct matrix *m, enum op op)
{
    const struct collective *best = NULL;

    for (int i = 0; i < m->collectives; i++) {
        const struct collective *c = &m->collective[i];
        if (c->op == op && c->curve.points && (!best || c->shape.ranks > best->shape.ranks))
            best = c;
    }
    return best;
}

/* Used if the two machines have no shape in common. */
static void add_unlike_bars(struct compare_plot *p)
{
    for (int op = 0; op < OP_COUNT; op++) {
        const struct collective *both[2] = {largest_group(matrix_of(p, 0), (enum op)op),
                                            largest_group(matrix_of(p, 1), (enum op)op)};
        if (!op_is_pair((enum op)op) && both[0] && both[1])
            add_bar(p, both);
    }
}

/* If there are too many, keep those that differ most. */
static void add_bars(struct compare_plot *p)
{
    const struct matrix *m = matrix_of(p, 0);

    for (int i = 0; i < m->collectives; i++) {
        const struct collective *both[2] = {&m->collective[i], NULL};
        both[1] = same_collective(matrix_of(p, 1), both[0]);
        if (!op_is_pair(both[0]->op) && both[0]->curve.points && both[1] &&
            fmin(largest(both[0]), largest(both[1])) >= 1 << 20)
            add_bar(p, both);
    }
    if (!p->bars)
        add_unlike_bars(p);
    if (p->bars > BARS) {
        qsort(p->bar, (size_t)p->bars, sizeof(*p->bar), by_change);
        p->bars = BARS;
    }
    if (p->bars)
        qsort(p->bar, (size_t)p->bars, sizeof(*p->bar), by_op);
}

/* --- words --- */

static char *bar_words(char buf[PLOT_TEXT], const struct compare_bar *b)
{
    char shape[48], other[48], size[UNITS_TEXT];
    bool same = shape_equal(&b->shape[0], &b->shape[1]);

    snprintf(buf, PLOT_TEXT, "%s, %s%s%s, %s", op_name(b->op), shape_text(shape, &b->shape[0]),
             same ? "" : " / ", same ? "" : shape_text(other, &b->shape[1]),
             units_bytes_text(size, b->bytes));
    return buf;
}

static char *ratio_words(char buf[PLOT_TEXT], double ratio)
{
    if (ratio > 0.5 && ratio < 2)
        snprintf(buf, PLOT_TEXT, "%+.1f %%", 100 * (ratio - 1));
    else
        snprintf(buf, PLOT_TEXT, "x %.2g", ratio);
    return buf;
}

/* "749 → 730 GB/s, -2.5 %", or the value of one side. */
static char *tier_words(char buf[PLOT_TEXT], const struct compare_plot *p,
                        const struct compare_tier *t)
{
    char a[HEAT_NUMBER], b[HEAT_NUMBER], ratio[PLOT_TEXT], name[PLOT_TEXT];

    if (t->at[0] < 0 || t->at[1] < 0) {
        int side = t->at[0] < 0;
        snprintf(buf, PLOT_TEXT, "%.20s GB/s, %.60s only", heat_number(a, whole_rate(p, side, t)),
                 plot_text(name, p->s->pair_name[side], 24));
        return buf;
    }
    double u = whole_rate(p, 0, t), v = whole_rate(p, 1, t);
    snprintf(buf, PLOT_TEXT, "%.20s → %.20s GB/s, %.40s", heat_number(a, u), heat_number(b, v),
             ratio_words(ratio, v / u));
    return buf;
}

/* --- files --- */

static const struct curve *curve_of(const struct compare_plot *p, int side,
                                    const struct compare_tier *t)
{
    return &matrix_of(p, side)->tier[t->at[side]].curve[DIR_UNI];
}

static bool goes_beyond(const struct compare_plot *p)
{
    for (int i = 0; i < p->tiers; i++)
        for (int side = 0; side < 2; side++)
            if (p->tier[i].at[side] >= 0 &&
                !(measured_at(curve_of(p, side, &p->tier[i]), p->from) &&
                  measured_at(curve_of(p, side, &p->tier[i]), p->to)))
                return true;
    return false;
}

static void put_tiers(FILE *out, const void *figure)
{
    const struct compare_plot *p = figure;
    char name[PLOT_TEXT];

    for (int i = 0; i < p->tiers; i++)
        for (int side = 0; side < 2; side++)
            for (int k = 0; p->tier[i].at[side] >= 0; k++) {
                double bytes = p->from * pow(2, (double)k / OCTAVE_PARTS);
                if (bytes > p->to * 1.001)
                    break;
                fprintf(out, "%d\t%d\t%s\t%.0f", i + 1, side + 1,
                        plot_text(name, p->tier[i].name, 20), bytes);
                plot_number(out, tier_rate(p, side, p->tier[i].at[side], bytes));
                fprintf(out, "\t%d\n", measured_at(curve_of(p, side, &p->tier[i]), bytes));
            }
}

struct end {
    double at;
    int tier;
};

static int by_at(const void *x, const void *y)
{
    const struct end *a = x, *b = y;

    return (a->at > b->at) - (a->at < b->at);
}

static void put_labels(FILE *out, const void *figure)
{
    const struct compare_plot *p = figure;
    double at[TIERS], height = log(p->hi / p->lo);
    char name[PLOT_TEXT], words[PLOT_TEXT];
    struct end end[TIERS] = {{0}};

    for (int i = 0; i < p->tiers; i++) {
        int side = p->tier[i].at[0] < 0;
        end[i] = (struct end){tier_rate(p, side, p->tier[i].at[side], p->to), i};
    }
    qsort(end, (size_t)p->tiers, sizeof(*end), by_at);
    for (int i = 0; i < p->tiers; i++)
        at[i] = log(fmax(end[i].at, p->lo) / p->lo) / height;
    plot_spread(at, p->tiers, 0.125, 0.04, 0.96);
    for (int i = 0; i < p->tiers; i++) {
        const struct compare_tier *t = &p->tier[end[i].tier];
        fprintf(out, "%d\t%s\t%s\t%g\n", end[i].tier + 1, plot_text(name, t->name, 20),
                tier_words(words, p, t), p->lo * exp(at[i] * height));
    }
}

/* Write each share with the number at or below it; if there are many, evenly except for the slow
 * end. */
static void put_shares(FILE *out, const void *figure)
{
    const struct compare_plot *p = figure;

    for (int side = 0; side < 2; side++)
        for (int i = 0, n = p->shares[side], step = n / STEPS + 1; i < n;
             i += i < STEPS || i + step >= n ? 1 : step)
            fprintf(out, "%d\t%.5g\t%.6g\n", side + 1, p->share[side][i], (i + 1.0) / n);
}

static void put_bars(FILE *out, const void *figure)
{
    const struct compare_plot *p = figure;
    char name[PLOT_TEXT], ratio[PLOT_TEXT], a[HEAT_NUMBER];

    for (int i = 0; i < p->bars; i++)
        for (int side = 0; side < 2; side++) {
            const struct compare_bar *b = &p->bar[i];
            fprintf(out, "%d\t%d\t%s\t%g\t%g\t%g\t%s%s%s\n", i + 1, side + 1, bar_words(name, b),
                    b->rate[side] / 1e9, b->lo[side] / 1e9, b->hi[side] / 1e9,
                    heat_number(a, b->rate[side] / 1e9), side ? "  " : "",
                    side ? ratio_words(ratio, change_of(b)) : "");
        }
}

static double most_of(const struct compare_plot *p)
{
    double most = 0;

    for (int i = 0; i < p->bars; i++)
        most = fmax(most, fmax(p->bar[i].hi[0], p->bar[i].hi[1]) / 1e9);
    return most;
}

static void put_meta(FILE *out, const void *figure)
{
    const struct compare_plot *p = figure;
    double low = 80, high = 105, least = 1;
    char name[2][PLOT_TEXT];

    for (int side = 0; side < 2; side++) {
        plot_text(name[side], p->s->pair_name[side], 40);
        if (!p->shares[side])
            continue;
        low = fmin(low, p->share[side][0] - 3);
        high = fmax(high, stats_quantile(p->share[side], p->shares[side], 0.995));
        least = fmin(least, 1.0 / p->shares[side]);
    }
    fprintf(out, "title\t%s and %s\n", name[0], name[1]);
    fprintf(out,
            "subtitle\tpairs one way, by size%s; pairs as a share of what their tier gives; "
            "bus bandwidth of collectives; GB = 10^9 bytes\n",
            goes_beyond(p) ? " (dotted: not measured)" : "");
    fprintf(out, "name1\t%s\nname2\t%s\n", name[0], name[1]);
    fprintf(out, "tiers\t%d\nfrom\t%.0f\nto\t%.0f\nlo\t%g\nhi\t%g\n", p->tiers, p->from, p->to,
            p->lo, p->hi);
    fprintf(out, "shares\t%d\nlow\t%g\nhigh\t%g\nrare\t%g\n", p->shares[0] + p->shares[1],
            fmax(0, 10 * floor(low / 10)), fmin(200, 5 * ceil(high / 5)),
            fmax(1e-6, pow(10, floor(log10(least)))));
    fprintf(out, "bars\t%d\nmost\t%g\n", p->bars, most_of(p));
}

static const struct plot_table tables[] = {
    {"compare.tsv", "tier\tcampaign\tname\tbytes\tGBps\tmeasured", put_tiers},
    {"compare_label.tsv", "tier\tname\twords\tat_GBps", put_labels}, /* at the end of a line */
    {"compare_share.tsv", "campaign\tshare_percent\tat_or_below", put_shares},
    {"compare_bar.tsv", "row\tcampaign\tname\tbusbw_GBps\tlo_GBps\thi_GBps\twords", put_bars},
    {"compare_meta.tsv", "key\tvalue", put_meta},
    {NULL, NULL, NULL},
};

static int make(struct compare_plot *p, const struct plot_source *s, struct err *err)
{
    *p = (struct compare_plot){.s = s};
    add_tiers(p);
    add_bars(p);
    if (add_shares(p, 0, err) < 0 || add_shares(p, 1, err) < 0)
        return -1;
    return p->tiers ? 0 : err_data(err, "no tier to plot: neither has one with a curve");
}

static void release(struct compare_plot *p)
{
    free(p->share[0]);
    free(p->share[1]);
    free(p->bar);
}

int plot_data_compare(const struct plot_source *s, const char *dir, struct err *err)
{
    struct compare_plot p;
    int rc = make(&p, s, err);

    if (rc == 0)
        rc = plot_tables_write(tables, &p, dir, err);
    release(&p);
    return rc;
}

int plot_text_compare(FILE *out, const struct plot_source *s, struct err *err)
{
    const struct table_column columns[] = {{NULL, "figure", "text"},
                                           {NULL, s->pair_name[0], "rate"},
                                           {NULL, s->pair_name[1], "rate"},
                                           {NULL, "speed", "figure"},
                                           {0}};
    char name[PLOT_TEXT], ratio[PLOT_TEXT];
    struct compare_plot p;
    struct table t;
    int rc = make(&p, s, err);

    table_open(&t, columns);
    for (int i = 0; rc == 0 && i < p.tiers; i++) {
        const struct compare_tier *x = &p.tier[i];
        double u = 1e9 * whole_rate(&p, 0, x), v = 1e9 * whole_rate(&p, 1, x);
        snprintf(name, PLOT_TEXT, "tier %.40s", x->name);
        table_add(&t, name, u, v, isnan(u - v) ? NULL : ratio_words(ratio, v / u));
    }
    for (int i = 0; rc == 0 && i < p.bars; i++)
        table_add(&t, bar_words(name, &p.bar[i]), p.bar[i].rate[0], p.bar[i].rate[1],
                  ratio_words(ratio, change_of(&p.bar[i])));
    if (rc == 0)
        table_print(out, &t, 0);
    table_free(&t);
    release(&p);
    return rc;
}
