/* SPDX-License-Identifier: BSD-3-Clause */
/* plot_tiers.c - bandwidth and latency of a pair by message size: a line per tier. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"
#include "report/plot/heat.h"
#include "report/plot/plot_data.h"

enum { LINES = 6, LOOKED_FROM = 64 };

static const double latency_most = 64 << 10; /* bytes; beyond it bandwidth decides */

/* Levels that a pair can stay within, from the widest. */
static const struct {
    int level;
    const char *within, *between;
} scope[] = {{LEVEL_RACK, "inside a rack", "between racks"},
             {LEVEL_HOST, "inside a host", "between hosts"}};
enum { SCOPES = sizeof(scope) / sizeof(*scope) };

struct line {
    const struct tier *tier;
    const struct curve *rate, *latency;
    double top;                          /* B/s at the largest size */
    int within[SCOPES], between[SCOPES]; /* pairs that were looked at */
    double label[2];                     /* GB/s, us: height of its words */
};

struct tiers_figure {
    const struct plot_source *s;
    struct line line[LINES];
    int lines, level; /* level: index of scope */
    double from, to, lo, hi;
    double us_from, us_to, us_lo, us_hi;
};

/* The direction with the most to say: one way streams where it was measured so, else ping-pong. */
static const struct curve *stream_of(const struct tier *t)
{
    return t->curve[DIR_UNI].points ? &t->curve[DIR_UNI] : &t->curve[DIR_ONEWAY];
}

static const struct curve_point *last_of(const struct curve *c)
{
    return &c->point[c->points - 1];
}

static void choose(struct tiers_figure *f)
{
    const struct matrix *m = f->s->matrix;

    for (int i = 0; i < m->tiers && f->lines < LINES; i++) {
        const struct curve *c = stream_of(&m->tier[i]);
        if (c->points)
            f->line[f->lines++] = (struct line){.tier = &m->tier[i],
                                                .rate = c,
                                                .latency = &m->tier[i].curve[DIR_ONEWAY],
                                                .top = last_of(c)->bytes / last_of(c)->sec};
    }
}

static void count_pair(struct tiers_figure *f, const struct topo *t, int a, int b)
{
    int tier = matrix_tier(f->s->matrix, a, b);

    for (int i = 0; i < f->lines; i++)
        for (int k = 0; k < SCOPES && f->line[i].tier == &f->s->matrix->tier[tier]; k++) {
            int x = t->endpoint[a].place.at[scope[k].level];
            int y = t->endpoint[b].place.at[scope[k].level];
            if (x >= 0 && y >= 0)
                (*(x == y ? &f->line[i].within[k] : &f->line[i].between[k]))++;
        }
}

/* Where the pairs of each tier are, from some endpoints to all others. */
static void look(struct tiers_figure *f)
{
    const struct topo *t = &f->s->matrix->topo;
    int step = t->endpoints / LOOKED_FROM + 1;

    for (int a = 0; a < t->endpoints; a += step)
        for (int b = 0; b < t->endpoints; b++)
            if (a != b)
                count_pair(f, t, a, b);
}

static const char *where(const struct tiers_figure *f, const struct line *l)
{
    bool in = l->within[f->level] > 0, out = l->between[f->level] > 0;

    return in && out ? "inside and between"
           : in      ? scope[f->level].within
           : out     ? scope[f->level].between
                     : "";
}

/* Fastest line whose pairs stay within the level, or all leave it; NULL: none. */
static const struct line *best(const struct tiers_figure *f, bool within)
{
    const struct line *found = NULL;

    for (int i = 0; i < f->lines; i++) {
        const struct line *l = &f->line[i];
        bool fits =
            within ? l->within[f->level] > 0 : l->between[f->level] > 0 && !l->within[f->level];
        if (fits && (!found || l->top > found->top))
            found = l;
    }
    return found;
}

/* The widest level that has pairs within it, and kinds of pairs that all leave it. */
static void choose_level(struct tiers_figure *f)
{
    while (f->level + 1 < SCOPES && !(best(f, true) && best(f, false)))
        f->level++;
}

static void ranges(struct tiers_figure *f)
{
    f->from = f->us_from = f->lo = f->us_lo = INFINITY;
    for (int i = 0; i < f->lines; i++) {
        const struct line *l = &f->line[i];
        for (int k = 0; k < l->rate->points; k++) {
            const struct curve_point *p = &l->rate->point[k];
            f->from = fmin(f->from, p->bytes);
            f->to = fmax(f->to, p->bytes);
            f->lo = fmin(f->lo, p->bytes / p->sec / 1e9);
            f->hi = fmax(f->hi, p->bytes / (p->lo > 0 ? p->lo : p->sec) / 1e9);
        }
        for (int k = 0; k < l->latency->points; k++) {
            const struct curve_point *p = &l->latency->point[k];
            if (p->bytes > latency_most)
                continue;
            f->us_from = fmin(f->us_from, p->bytes);
            f->us_to = fmax(f->us_to, p->bytes);
            f->us_lo = fmin(f->us_lo, 1e6 * p->sec);
            f->us_hi = fmax(f->us_hi, 1e6 * p->sec);
        }
        f->hi = fmax(f->hi, l->tier->peak_Bps / 1e9);
    }
    f->hi = plot_nice(1.1 * f->hi, true);
    f->lo = plot_nice(fmax(f->lo, f->hi / 1e5), false);
    f->us_lo = plot_nice(0.9 * f->us_lo, false);
    f->us_hi = plot_nice(1.1 * f->us_hi, true);
}

static int by_height(const void *x, const void *y)
{
    const double *a = *(const double *const *)x, *b = *(const double *const *)y;

    return (*a > *b) - (*a < *b);
}

/* Words at the right end of each line, moved apart where lines are close. */
static void place(struct tiers_figure *f, int panel, double gap)
{
    double *at[LINES] = {NULL}, y[LINES], lo = panel ? f->us_lo : f->lo,
           hi = panel ? f->us_hi : f->hi;
    int n = 0;

    for (int i = 0; i < f->lines; i++) {
        struct line *l = &f->line[i];
        if (panel && !l->latency->points)
            continue;
        int last = l->latency->points - 1;
        while (panel && last > 0 && l->latency->point[last].bytes > latency_most)
            last--;
        l->label[panel] = log(panel ? 1e6 * l->latency->point[last].sec : l->top / 1e9);
        at[n++] = &l->label[panel];
    }
    qsort(at, (size_t)n, sizeof(*at), by_height);
    for (int i = 0; i < n; i++)
        y[i] = *at[i];
    plot_spread(y, n, gap * log(hi / lo), log(lo), log(hi));
    for (int i = 0; i < n; i++)
        *at[i] = exp(y[i]);
}

/* A value and its interval. */
static void print_point(FILE *out, int series, double bytes, double v, double lo, double hi)
{
    fprintf(out, "%d\t%.10g", series, bytes);
    plot_number(out, v);
    plot_number(out, lo);
    plot_number(out, hi);
    putc('\n', out);
}

static void put_rate(FILE *out, const void *figure)
{
    const struct tiers_figure *f = figure;

    for (int i = 0; i < f->lines; i++)
        for (int k = 0; k < f->line[i].rate->points; k++) {
            const struct curve_point *p = &f->line[i].rate->point[k];
            double gb = p->bytes / 1e9;
            print_point(out, i + 1, p->bytes, gb / p->sec, gb / p->hi, gb / p->lo);
        }
}

static void put_latency(FILE *out, const void *figure)
{
    const struct tiers_figure *f = figure;

    for (int i = 0; i < f->lines; i++)
        for (int k = 0; k < f->line[i].latency->points; k++) {
            const struct curve_point *p = &f->line[i].latency->point[k];
            if (p->bytes <= latency_most)
                print_point(out, i + 1, p->bytes, 1e6 * p->sec, 1e6 * p->lo, 1e6 * p->hi);
        }
}

static void put_lines(FILE *out, const void *figure)
{
    const struct tiers_figure *f = figure;

    for (int i = 0; i < f->lines; i++) {
        const struct line *l = &f->line[i];
        char name[PLOT_TEXT], rate[HEAT_NUMBER], us[HEAT_NUMBER];
        fprintf(out, "%d\t%s\t%s\t%s\t%s", i + 1, plot_text(name, l->tier->rule.name, 20),
                where(f, l), heat_number(rate, l->top / 1e9),
                l->latency->points ? heat_number(us, 1e6 * l->latency->point[0].sec) : "");
        plot_number(out, l->label[0]);
        plot_number(out, l->latency->points ? l->label[1] : NAN);
        plot_number(out, l->tier->peak_Bps > 0 ? l->tier->peak_Bps / 1e9 : NAN);
        putc('\n', out);
    }
}

/* "Inside a rack 770 GB/s, between racks 49.0 GB/s: 16 times", or the first line alone. */
static void print_title(FILE *out, const struct tiers_figure *f)
{
    const struct line *in = best(f, true), *between = best(f, false);
    char a[HEAT_NUMBER], b[HEAT_NUMBER], times[HEAT_NUMBER];

    if (!in || !between || in == between) {
        const struct line *l = &f->line[0];
        const char *at = where(f, l);
        fprintf(out, "title\t%c%s %s GB/s", *at ? *at - 'a' + 'A' : 'A', *at ? at + 1 : " pair",
                heat_number(a, l->top / 1e9));
        if (l->latency->points)
            fprintf(out, ", a message takes %s µs at least",
                    heat_number(b, 1e6 * l->latency->point[0].sec));
        putc('\n', out);
        return;
    }
    fprintf(out, "title\tI%s %s GB/s, %s %s GB/s", scope[f->level].within + 1,
            heat_number(a, in->top / 1e9), scope[f->level].between,
            heat_number(b, between->top / 1e9));
    if (in->top > 1.05 * between->top)
        fprintf(out, ": %s times", heat_number(times, in->top / between->top));
    const struct step_bars *steps = f->s->steps;
    double share = steps && steps->bars ? step_messages(&steps->bar[0]) : NAN;
    if (isfinite(share))
        fprintf(out, "; a step waits %.0f %% for messages", 100 * share);
    putc('\n', out);
}

static void put_meta(FILE *out, const void *figure)
{
    const struct tiers_figure *f = figure;
    const struct line *first = &f->line[0];
    bool measured = first->rate->point[0].n > 0;

    print_title(out, f);
    fprintf(out,
            "subtitle\tone pair alone, in one direction; medians with their 95 %% interval%s%s\n",
            f->line[0].tier->peak_Bps > 0 ? "; dashed: data sheet" : "",
            measured ? "" : "; from a preset, nothing measured");
    fprintf(out, "lines\t%d\nfrom\t%.10g\nto\t%.10g\nlo\t%g\nhi\t%g\n", f->lines, f->from, f->to,
            f->lo, f->hi);
    fprintf(out, "us_from\t%.10g\nus_to\t%.10g\nus_lo\t%g\nus_hi\t%g\n",
            isfinite(f->us_from) ? f->us_from : 0, f->us_to, isfinite(f->us_lo) ? f->us_lo : 0,
            f->us_hi);
}

static const struct plot_table tables[] = {
    {"tiers.tsv", "series\tbytes\tGBps\tlo\thi", put_rate},
    {"tiers_latency.tsv", "series\tbytes\tus\tlo\thi", put_latency},
    /* y_GBps, y_us: height of the words beside the line; peak_GBps: data sheet */
    {"tiers_line.tsv", "series\ttier\twhere\tGBps\tus\ty_GBps\ty_us\tpeak_GBps", put_lines},
    {"tiers_meta.tsv", "key\tvalue", put_meta},
    {NULL, NULL, NULL},
};

int plot_data_tiers(const struct plot_source *s, const char *dir, struct err *err)
{
    struct tiers_figure f = {.s = s};

    choose(&f);
    if (!f.lines)
        return err_data(err, "no bandwidth of pairs to plot: no tier of the matrix has a curve");
    look(&f);
    choose_level(&f);
    ranges(&f);
    place(&f, 0, 0.105);
    place(&f, 1, 0.07);
    return plot_tables_write(tables, &f, dir, err);
}
