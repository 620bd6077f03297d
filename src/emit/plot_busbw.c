/* SPDX-License-Identifier: BSD-3-Clause */
/* Bus bandwidth against size: one panel an op, one line a group shape. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"
#include "emit/heat.h"
#include "emit/plot_data.h"
#include "emit/shape_group.h"

enum { LINES_MAX = 6 /* shapes that get a colour */, SIZES_MAX = 96 };

struct line {
    const struct collective *c;
    int *ids; /* a group of this shape, or NULL */
    double size[SIZES_MAX];
    int sizes;
    double peak; /* GB/s, NAN: not known */
};

struct panel {
    enum op op;
    struct line line[LINES_MAX];
    int lines;
    double lo, hi; /* GB/s */
};

struct figure {
    const struct matrix *m;
    struct matrix ideal; /* the same fabric with every tier at its data-sheet rate */
    struct shape shape[LINES_MAX];
    int shapes;
    struct panel panel[OP_COUNT];
    int panels;
    double from, to; /* bytes */
};

/* --- which shapes --- */

static int by_shape(const void *x, const void *y)
{
    const struct shape *a = x, *b = y;

    if (a->ranks != b->ranks)
        return a->ranks < b->ranks ? -1 : 1;
    return a->domains != b->domains ? (a->domains < b->domains ? -1 : 1) : 0;
}

/* Distinct shapes from small to large; of many, LINES_MAX evenly with both ends. */
static void choose_shapes(struct figure *f)
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
    f->shapes = n < LINES_MAX ? n : LINES_MAX;
    for (int i = 0; i < f->shapes; i++)
        f->shape[i] = all[n <= LINES_MAX ? i : (int)lround(i * (n - 1) / (LINES_MAX - 1.0))];
    free(all);
}

static int colour_of(const struct figure *f, const struct shape *s)
{
    for (int i = 0; i < f->shapes; i++)
        if (shape_equal(&f->shape[i], s))
            return i + 1;
    return 0;
}

/* --- lines --- */

static double busbw(enum op op, int ranks, double bytes, double sec)
{
    return sec > 0 ? bytes / sec / 1e9 * op_bus_factor(op, ranks) : NAN;
}

/* A measured curve at its sizes; a published one, which has no samples, at powers of two. */
static void choose_sizes(struct line *l)
{
    const struct curve *c = &l->c->curve;

    if (c->point[0].n == 0) {
        for (double s = 1 << 10; s <= 8.0 * (1 << 30) && l->sizes < SIZES_MAX; s *= 2)
            l->size[l->sizes++] = s;
        return;
    }
    int step = (c->points + SIZES_MAX - 1) / SIZES_MAX;
    for (int i = 0; i < c->points; i += step)
        l->size[l->sizes++] = c->point[i].bytes;
}

static double expected(const struct figure *f, const struct line *l, double bytes)
{
    struct cost cost;

    if (!l->ids || l->c->basis == BASIS_PRESET)
        return NAN;
    matrix_expected(f->m, l->c->op, l->ids, l->c->shape.ranks, bytes, &cost);
    return busbw(l->c->op, l->c->shape.ranks, bytes, cost.sec);
}

static double peak(const struct figure *f, const struct line *l)
{
    static const double huge = 1e15; /* bytes: no latency is left */
    struct cost cost;

    if (!l->ids)
        return NAN;
    matrix_expected(&f->ideal, l->c->op, l->ids, l->c->shape.ranks, huge, &cost);
    return busbw(l->c->op, l->c->shape.ranks, huge, cost.sec);
}

static double line_value(const struct line *l, int i)
{
    return busbw(l->c->op, l->c->shape.ranks, l->size[i], curve_time(&l->c->curve, l->size[i]));
}

static void add_line(struct figure *f, struct panel *p, const struct collective *c)
{
    struct line *l = &p->line[p->lines++];

    l->c = c;
    l->ids = shape_group(&f->m->topo, &c->shape);
    choose_sizes(l);
    l->peak = peak(f, l);
    if (!isnan(l->peak))
        p->hi = fmax(p->hi, l->peak);
    for (int i = 0; i < l->sizes; i++) {
        double v = line_value(l, i);
        p->lo = fmin(p->lo, v);
        p->hi = fmax(fmax(p->hi, v), expected(f, l, l->size[i]));
        f->from = fmin(f->from, l->size[i]);
        f->to = fmax(f->to, l->size[i]);
    }
}

static void add_panel(struct figure *f, enum op op)
{
    struct panel *p = &f->panel[f->panels];

    *p = (struct panel){.op = op, .lo = INFINITY, .hi = 0};
    for (int k = 0; k < f->shapes; k++)
        for (int i = 0; i < f->m->collectives; i++) {
            const struct collective *c = &f->m->collective[i];
            if (c->op == op && c->curve.points && shape_equal(&c->shape, &f->shape[k])) {
                add_line(f, p, c);
                break;
            }
        }
    if (!p->lines)
        return;
    /* Five decades are enough; the slow end of small messages may leave the picture. */
    p->hi = plot_nice_up(p->hi * 1.15);
    p->lo = plot_nice_down(fmax(p->lo, p->hi / 1e5));
    f->panels++;
}

static void make_ideal(struct figure *f)
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

static void figure_free(struct figure *f)
{
    for (int i = 0; i < f->ideal.tiers; i++)
        for (int d = 0; d < DIR_COUNT; d++)
            curve_free(&f->ideal.tier[i].curve[d]);
    for (int i = 0; i < f->panels; i++)
        for (int k = 0; k < f->panel[i].lines; k++)
            free(f->panel[i].line[k].ids);
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

static char *value_words(char buf[PLOT_TEXT], const struct figure *f, const struct line *l)
{
    double v = line_value(l, l->sizes - 1), want = expected(f, l, l->size[l->sizes - 1]);
    char rate[HEAT_NUMBER];

    heat_number(rate, v);
    if (isnan(want))
        snprintf(buf, PLOT_TEXT, "%.20s GB/s%s", rate,
                 l->c->basis == BASIS_PRESET ? ", published" : "");
    else
        snprintf(buf, PLOT_TEXT, "%.20s GB/s, %.0f%% of expected", rate, 100 * v / want);
    return buf;
}

/* --- files --- */

static void print_number(FILE *out, double v)
{
    if (isfinite(v))
        fprintf(out, "\t%.6g", v);
    else
        fputs("\tNaN", out);
}

static int write_lines(struct figure *f, const char *dir, struct err *err)
{
    struct file_out out;
    char name[48];

    if (plot_begin(&out, dir, "busbw.tsv",
                   "panel\tcolour\top\tshape\tbytes\tbusbw_GBps\tlo_GBps\thi_GBps\texpected_GBps\t"
                   "peak_GBps",
                   err) < 0)
        return -1;
    for (int p = 0; p < f->panels; p++)
        for (int k = 0; k < f->panel[p].lines; k++) {
            struct line *l = &f->panel[p].line[k];
            for (int i = 0; i < l->sizes; i++) {
                double lo, hi;
                curve_interval(&l->c->curve, l->size[i], &lo, &hi);
                fprintf(out.stream, "%d\t%d\t%s\t%s\t%.0f", p + 1, colour_of(f, &l->c->shape),
                        op_name(l->c->op), shape_text(name, &l->c->shape), l->size[i]);
                print_number(out.stream, line_value(l, i));
                print_number(out.stream, busbw(l->c->op, l->c->shape.ranks, l->size[i], hi));
                print_number(out.stream, busbw(l->c->op, l->c->shape.ranks, l->size[i], lo));
                print_number(out.stream, expected(f, l, l->size[i]));
                print_number(out.stream, l->peak);
                putc('\n', out.stream);
            }
        }
    return file_commit(&out, err);
}

static int by_value(const void *x, const void *y)
{
    double a = (*(const struct line *const *)x)->peak, b = (*(const struct line *const *)y)->peak;

    return a < b ? -1 : a > b;
}

struct top {
    double GBps;
    const struct line *line;
    int lines; /* that share it */
};

/* The peaks of a panel, ascending; those closer than a line of text count as one. */
static int tops_of(const struct panel *p, struct top *top)
{
    const struct line *l[LINES_MAX] = {0};
    int n = 0, kept = 0;

    for (int i = 0; i < p->lines; i++)
        if (!isnan(p->line[i].peak))
            l[n++] = &p->line[i];
    qsort(l, (size_t)n, sizeof(*l), by_value);
    for (int i = 0; i < n; i++) {
        bool apart = !kept || log(l[i]->peak / top[kept - 1].GBps) > 0.05 * log(p->hi / p->lo);
        if (apart)
            top[kept++] = (struct top){l[i]->peak, l[i], 0};
        top[kept - 1].lines++;
    }
    return kept;
}

static int write_panels(struct figure *f, const char *dir, struct err *err)
{
    struct file_out out;

    if (plot_begin(&out, dir, "busbw_panel.tsv",
                   "panel\top\tfrom_bytes\tto_bytes\tlo_GBps\thi_GBps\tpeaks", err) < 0)
        return -1;
    for (int p = 0; p < f->panels; p++) {
        struct top top[LINES_MAX];
        fprintf(out.stream, "%d\t%s\t%.0f\t%.0f\t%g\t%g\t%d\n", p + 1, op_name(f->panel[p].op),
                f->from, f->to, f->panel[p].lo, f->panel[p].hi, tops_of(&f->panel[p], top));
    }
    return file_commit(&out, err);
}

static int by_end(const void *x, const void *y)
{
    const struct line *a = *(const struct line *const *)x, *b = *(const struct line *const *)y;
    double u = line_value(a, a->sizes - 1), v = line_value(b, b->sizes - 1);

    return u < v ? -1 : u > v;
}

/* Labels at the ends of the lines, moved apart on the logarithmic axis. */
static void print_labels(FILE *out, const struct figure *f, int panel)
{
    const struct panel *p = &f->panel[panel];
    const struct line *l[LINES_MAX] = {0};
    double at[LINES_MAX], height = log(p->hi / p->lo);
    char words[PLOT_TEXT], value[PLOT_TEXT];

    for (int i = 0; i < p->lines; i++)
        l[i] = &p->line[i];
    qsort(l, (size_t)p->lines, sizeof(*l), by_end);
    for (int i = 0; i < p->lines; i++)
        at[i] = log(fmax(line_value(l[i], l[i]->sizes - 1), p->lo) / p->lo) / height;
    plot_spread(at, p->lines, 0.125, 0.03, 0.97);
    for (int i = 0; i < p->lines; i++)
        fprintf(out, "%d\t%d\t%s\t%s\t%g\n", panel + 1, colour_of(f, &l[i]->c->shape),
                shape_words(words, &l[i]->c->shape), value_words(value, f, l[i]),
                p->lo * exp(at[i] * height));
}

static void print_peaks(FILE *out, const struct figure *f, int panel)
{
    struct top top[LINES_MAX];
    int n = tops_of(&f->panel[panel], top);
    char words[PLOT_TEXT] = "";

    for (int i = 0; i < n; i++) {
        bool one = n > 1 && top[i].lines == 1;
        if (one)
            shape_words(words, &top[i].line->c->shape);
        fprintf(out, "%d\t%g\tpeak%s%s: %.3g GB/s\n", panel + 1, top[i].GBps, one ? " of " : "",
                one ? words : "", top[i].GBps);
    }
}

static int write_words(struct figure *f, const char *dir, struct err *err)
{
    struct file_out out;

    if (plot_begin(&out, dir, "busbw_label.tsv", "panel\tcolour\tlabel\tvalue\tat_GBps", err) < 0)
        return -1;
    for (int p = 0; p < f->panels; p++)
        print_labels(out.stream, f, p);
    if (file_commit(&out, err) < 0)
        return -1;
    if (plot_begin(&out, dir, "busbw_peak.tsv", "panel\tGBps\ttext", err) < 0)
        return -1;
    for (int p = 0; p < f->panels; p++)
        print_peaks(out.stream, f, p);
    return file_commit(&out, err);
}

int plot_data_busbw(const struct matrix *m, const char *dir, struct err *err)
{
    struct figure *f = mem_calloc(1, sizeof(*f));
    int rc = -1;

    f->m = m;
    f->from = INFINITY;
    choose_shapes(f);
    make_ideal(f);
    for (int op = 0; op < OP_COUNT; op++)
        add_panel(f, (enum op)op);
    if (!f->panels)
        err_data(err, "no bus bandwidth to plot: the matrix has no collective");
    else if (write_lines(f, dir, err) == 0 && write_panels(f, dir, err) == 0)
        rc = write_words(f, dir, err);
    figure_free(f);
    free(f);
    return rc;
}
