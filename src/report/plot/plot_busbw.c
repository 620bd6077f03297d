/* SPDX-License-Identifier: BSD-3-Clause */
/* plot_busbw.c - bus bandwidth over size: a panel per op, a line per group shape. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "matrix/reference.h"
#include "report/plot/heat.h"
#include "report/plot/plot_data.h"

enum { LINES = 6 /* LINES: shapes with a colour */, SIZES = 96 };

struct busbw_line {
    const struct collective *c;
    double size[SIZES];
    struct cost *want; /* cost on a healthy fabric at each size; sec NAN: no reference */
    int sizes;
    double peak; /* GB/s; NAN: not known */
};

struct busbw_panel {
    enum op op;
    struct busbw_line line[LINES];
    int lines;
    double lo, hi; /* GB/s */
};

struct busbw_figure {
    const struct matrix *m;
    struct reference reference;
    struct matrix ideal; /* same fabric with every tier at its data-sheet rate */
    struct shape shape[LINES];
    int shapes;
    struct group {
        struct shape shape;
        int *ids;
        bool known;
    } group[LINES]; /* last group used for each shape */
    struct busbw_panel panel[OP_COUNT];
    int panels;
    double from, to; /* bytes */
};

/* --- choice of shapes --- */

static int by_shape(const void *x, const void *y)
{
    const struct shape *a = x, *b = y;

    if (a->ranks != b->ranks)
        return a->ranks < b->ranks ? -1 : 1;
    return a->domains != b->domains ? (a->domains < b->domains ? -1 : 1) : 0;
}

/* Choose distinct shapes from small to large; if there are many, LINES of them evenly, with both
 * ends. */
static void choose_shapes(struct busbw_figure *f)
{
    struct shape *all = NULL;
    int n = 0;

    for (int i = 0; i < f->m->collectives; i++) {
        const struct collective *c = &f->m->collective[i];
        bool seen = op_is_pair(c->op) || c->curve.points == 0;
        for (int k = 0; k < n && !seen; k++)
            seen = shape_equal(&all[k], &c->shape);
        if (!seen)
            MEM_PUSH(all, n) = c->shape;
    }
    if (n)
        qsort(all, (size_t)n, sizeof(*all), by_shape);
    f->shapes = n < LINES ? n : LINES;
    for (int i = 0; i < f->shapes; i++)
        f->shape[i] = all[n <= LINES ? i : (int)lround(i * (n - 1) / (LINES - 1.0))];
    free(all);
}

/* 1..; 0: none */
static int colour_of(const struct busbw_figure *f, const struct shape *s)
{
    for (int i = 0; i < f->shapes; i++)
        if (shape_equal(&f->shape[i], s))
            return i + 1;
    return 0;
}

/* --- lines --- */

/* GB/s */
static double rate(enum op op, int ranks, double bytes, double sec)
{
    return sec > 0 ? bytes / sec / 1e9 * op_bus_factor(op, ranks) : NAN;
}

/* Sizes of a measured curve; powers of two for a published one, which has no samples. */
static void choose_sizes(struct busbw_line *l)
{
    const struct curve *c = &l->c->curve;

    if (c->point[0].n == 0) {
        for (double s = 1 << 10; s <= 8.0 * (1 << 30) && l->sizes < SIZES; s *= 2)
            l->size[l->sizes++] = s;
        return;
    }
    int step = (c->points + SIZES - 1) / SIZES;
    for (int i = 0; i < c->points; i += step)
        l->size[l->sizes++] = c->point[i].bytes;
}

/* Expected cost on a healthy fabric at these sizes (see reference.h). */
static void expect(const struct busbw_figure *f, struct busbw_line *l, const int *ids)
{
    l->want = mem_calloc((size_t)l->sizes + 1, sizeof(*l->want));
    reference_of_curve(&f->reference, l->c, ids, l->size, l->sizes, l->want);
    for (int i = 0; i < l->sizes; i++)
        if (isnan(reference_share(&l->want[i], curve_time(&l->c->curve, l->size[i]))))
            l->want[i].sec = NAN;
}

/* Expected GB/s at l->size[i]. */
static double expected_at(const struct busbw_line *l, int i)
{
    return rate(l->c->op, l->c->shape.ranks, l->size[i], l->want[i].sec);
}

static double peak(const struct busbw_figure *f, const struct busbw_line *l, const int *ids)
{
    static const double huge = 1e15; /* bytes: latency is negligible */
    struct cost cost;

    if (!ids)
        return NAN;
    matrix_collective(&f->ideal, l->c->op, ids, l->c->shape.ranks, huge, &cost);
    return rate(l->c->op, l->c->shape.ranks, huge, cost.sec);
}

/* Measured GB/s at l->size[i]. */
static double value_at(const struct busbw_line *l, int i)
{
    return rate(l->c->op, l->c->shape.ranks, l->size[i], curve_time(&l->c->curve, l->size[i]));
}

/* Any group of this shape; NULL: none.  Kept, because its collectives need it one after another. */
static const int *group_of(struct group *g, const struct topo *t, const struct shape *s)
{
    if (!g->known || memcmp(&g->shape, s, sizeof(*s))) {
        free(g->ids);
        *g = (struct group){*s, shape_group(t, s), true};
    }
    return g->ids;
}

static void add_line(struct busbw_figure *f, struct busbw_panel *p, const struct collective *c,
                     struct group *group)
{
    struct busbw_line *l = &p->line[p->lines++];
    const int *ids = group_of(group, &f->m->topo, &c->shape);

    l->c = c;
    choose_sizes(l);
    l->peak = peak(f, l, ids);
    expect(f, l, ids);
    if (!isnan(l->peak))
        p->hi = fmax(p->hi, l->peak);
    for (int i = 0; i < l->sizes; i++) {
        double v = value_at(l, i);
        p->lo = fmin(p->lo, v);
        p->hi = fmax(fmax(p->hi, v), expected_at(l, i));
        f->from = fmin(f->from, l->size[i]);
        f->to = fmax(f->to, l->size[i]);
    }
}

static void add_panel(struct busbw_figure *f, enum op op)
{
    struct busbw_panel *p = &f->panel[f->panels];

    *p = (struct busbw_panel){.op = op, .lo = INFINITY, .hi = 0};
    for (int k = 0; k < f->shapes; k++)
        for (int i = 0; i < f->m->collectives; i++) {
            const struct collective *c = &f->m->collective[i];
            if (c->op == op && c->curve.points && shape_equal(&c->shape, &f->shape[k])) {
                add_line(f, p, c, &f->group[k]);
                break;
            }
        }
    if (!p->lines)
        return;
    /* Show five decades at most; the slow end of small messages may leave the picture. */
    p->hi = plot_nice(p->hi * 1.15, true);
    p->lo = plot_nice(fmax(p->lo, p->hi / 1e5), false);
    f->panels++;
}

static void make_ideal(struct busbw_figure *f)
{
    f->ideal = *f->m;
    f->ideal.exceptions = f->ideal.collectives = 0;
    for (int i = 0; i < f->ideal.tiers; i++) {
        struct tier *t = &f->ideal.tier[i];
        memset(t->curve, 0, sizeof(t->curve));
        for (int d = DIR_ONEWAY; d < DIR_COUNT && t->peak_Bps > 0; d++)
            curve_line(&t->curve[d], 0, t->peak_Bps);
        for (int d = DIR_ONEWAY; d < DIR_COUNT; d++)
            curve_summarise(&t->curve[d]);
    }
}

static void figure_free(struct busbw_figure *f)
{
    reference_free(&f->reference);
    for (int k = 0; k < LINES; k++)
        free(f->group[k].ids);
    for (int i = 0; i < f->ideal.tiers; i++)
        for (int d = 0; d < DIR_COUNT; d++)
            curve_free(&f->ideal.tier[i].curve[d]);
    for (int i = 0; i < f->panels; i++)
        for (int k = 0; k < f->panel[i].lines; k++)
            free(f->panel[i].line[k].want);
}

/* --- words --- */

/* "72 ranks, 1 rack" */
static char *shape_words(char buf[PLOT_TEXT], const struct shape *s)
{
    char ranks[PLOT_TEXT], where[PLOT_TEXT];

    plot_count(ranks, s->ranks, "rank");
    if (s->racks > 1)
        plot_count(where, s->racks, "rack");
    else if (s->domains == s->nodes || s->nodes == 0)
        plot_count(where, s->domains, "host");
    else
        plot_count(where, s->domains, "domain");
    snprintf(buf, PLOT_TEXT, "%.40s, %.40s", ranks, where);
    return buf;
}

static char *value_words(char buf[PLOT_TEXT], const struct busbw_line *l)
{
    double v = value_at(l, l->sizes - 1), want = expected_at(l, l->sizes - 1);
    char number[HEAT_NUMBER];

    heat_number(number, v);
    if (isnan(want))
        snprintf(buf, PLOT_TEXT, "%.20s GB/s%s", number,
                 l->c->basis == BASIS_PRESET ? ", published" : "");
    else
        snprintf(buf, PLOT_TEXT, "%.20s GB/s, %.0f%% of expected", number, 100 * v / want);
    return buf;
}

/* --- files --- */

static void print_line(FILE *out, const struct busbw_figure *f, int panel,
                       const struct busbw_line *l)
{
    char name[48], from[80];
    double lo, hi;

    for (int i = 0; i < l->sizes; i++) {
        curve_interval(&l->c->curve, l->size[i], &lo, &hi);
        fprintf(out, "%d\t%d\t%s\t%s\t%.0f", panel + 1, colour_of(f, &l->c->shape),
                op_name(l->c->op), shape_text(name, &l->c->shape), l->size[i]);
        plot_number(out, value_at(l, i));
        plot_number(out, rate(l->c->op, l->c->shape.ranks, l->size[i], hi));
        plot_number(out, rate(l->c->op, l->c->shape.ranks, l->size[i], lo));
        plot_number(out, expected_at(l, i));
        plot_number(out, l->peak);
        bool known = !isnan(l->want[i].sec);
        fprintf(out, "\t%s\n", known ? reference_words(&f->reference, &l->want[i], from) : "-");
    }
}

static void put_lines(FILE *out, const void *figure)
{
    const struct busbw_figure *f = figure;

    for (int p = 0; p < f->panels; p++)
        for (int k = 0; k < f->panel[p].lines; k++)
            print_line(out, f, p, &f->panel[p].line[k]);
}

static int by_value(const void *x, const void *y)
{
    double a = (*(const struct busbw_line *const *)x)->peak,
           b = (*(const struct busbw_line *const *)y)->peak;

    return a < b ? -1 : a > b;
}

struct busbw_top {
    double GBps;
    const struct busbw_line *line;
    int lines; /* lines with this peak */
};

/* Peaks of a panel, ascending; those closer than a line of text are merged. */
static int tops_of(const struct busbw_panel *p, struct busbw_top *top)
{
    const struct busbw_line *l[LINES] = {0};
    int n = 0, kept = 0;

    for (int i = 0; i < p->lines; i++)
        if (!isnan(p->line[i].peak))
            l[n++] = &p->line[i];
    qsort(l, (size_t)n, sizeof(*l), by_value);
    for (int i = 0; i < n; i++) {
        bool apart = !kept || log(l[i]->peak / top[kept - 1].GBps) > 0.05 * log(p->hi / p->lo);
        if (apart)
            top[kept++] = (struct busbw_top){l[i]->peak, l[i], 0};
        top[kept - 1].lines++;
    }
    return kept;
}

static void put_panels(FILE *out, const void *figure)
{
    const struct busbw_figure *f = figure;
    struct busbw_top top[LINES];

    for (int p = 0; p < f->panels; p++)
        fprintf(out, "%d\t%s\t%.0f\t%.0f\t%g\t%g\t%d\n", p + 1, op_name(f->panel[p].op), f->from,
                f->to, f->panel[p].lo, f->panel[p].hi, tops_of(&f->panel[p], top));
}

static int by_end(const void *x, const void *y)
{
    const struct busbw_line *a = *(const struct busbw_line *const *)x,
                            *b = *(const struct busbw_line *const *)y;
    double u = value_at(a, a->sizes - 1), v = value_at(b, b->sizes - 1);

    return u < v ? -1 : u > v;
}

/* Put labels at the ends of the lines, moved apart on the logarithmic axis. */
static void print_labels(FILE *out, const struct busbw_figure *f, int panel)
{
    const struct busbw_panel *p = &f->panel[panel];
    const struct busbw_line *l[LINES] = {0};
    double at[LINES], height = log(p->hi / p->lo);
    char words[PLOT_TEXT], value[PLOT_TEXT];

    for (int i = 0; i < p->lines; i++)
        l[i] = &p->line[i];
    qsort(l, (size_t)p->lines, sizeof(*l), by_end);
    for (int i = 0; i < p->lines; i++)
        at[i] = log(fmax(value_at(l[i], l[i]->sizes - 1), p->lo) / p->lo) / height;
    plot_spread(at, p->lines, 0.125, 0.03, 0.97);
    for (int i = 0; i < p->lines; i++)
        fprintf(out, "%d\t%d\t%s\t%s\t%g\n", panel + 1, colour_of(f, &l[i]->c->shape),
                shape_words(words, &l[i]->c->shape), value_words(value, l[i]),
                p->lo * exp(at[i] * height));
}

static void put_labels(FILE *out, const void *figure)
{
    const struct busbw_figure *f = figure;

    for (int p = 0; p < f->panels; p++)
        print_labels(out, f, p);
}

static void put_peaks(FILE *out, const void *figure)
{
    const struct busbw_figure *f = figure;
    struct busbw_top top[LINES];
    char words[PLOT_TEXT] = "";

    for (int p = 0; p < f->panels; p++)
        for (int i = 0, n = tops_of(&f->panel[p], top); i < n; i++) {
            bool one = n > 1 && top[i].lines == 1;
            if (one)
                shape_words(words, &top[i].line->c->shape);
            fprintf(out, "%d\t%g\tpeak%s%s: %.3g GB/s\n", p + 1, top[i].GBps, one ? " of " : "",
                    one ? words : "", top[i].GBps);
        }
}

static const struct plot_table tables[] = {
    {"busbw.tsv",
     "panel\tcolour\top\tshape\tbytes\tbusbw_GBps\tlo_GBps\thi_GBps\texpected_GBps\tpeak_GBps\t"
     "expected_from",
     put_lines},
    {"busbw_panel.tsv", "panel\top\tfrom_bytes\tto_bytes\tlo_GBps\thi_GBps\tpeaks", put_panels},
    /* at the end of a line */
    {"busbw_label.tsv", "panel\tcolour\tlabel\tvalue\tat_GBps", put_labels},
    {"busbw_peak.tsv", "panel\tGBps\ttext", put_peaks},
    {NULL, NULL, NULL},
};

int plot_data_busbw(const struct plot_source *s, const char *dir, struct err *err)
{
    struct busbw_figure *f = mem_calloc(1, sizeof(*f));

    f->m = s->matrix;
    f->from = INFINITY;
    reference_open(&f->reference, f->m);
    choose_shapes(f);
    make_ideal(f);
    for (int op = 0; op < OP_COUNT; op++)
        add_panel(f, (enum op)op);
    int rc = f->panels ? plot_tables_write(tables, f, dir, err)
                       : err_data(err, "no bus bandwidth to plot: the matrix has no collective");
    figure_free(f);
    free(f);
    return rc;
}
