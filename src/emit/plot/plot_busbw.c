/* SPDX-License-Identifier: BSD-3-Clause */
/* Bus bandwidth against size: one panel an op, one line a group shape. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "emit/plot/plot_busbw.h"
#include "emit/text/shape_group.h"

/* --- which shapes --- */

static int by_shape(const void *x, const void *y)
{
    const struct shape *a = x, *b = y;

    if (a->ranks != b->ranks)
        return a->ranks < b->ranks ? -1 : 1;
    return a->domains != b->domains ? (a->domains < b->domains ? -1 : 1) : 0;
}

/* Distinct shapes from small to large; of many, BUSBW_LINES evenly with both ends. */
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
    f->shapes = n < BUSBW_LINES ? n : BUSBW_LINES;
    for (int i = 0; i < f->shapes; i++)
        f->shape[i] = all[n <= BUSBW_LINES ? i : (int)lround(i * (n - 1) / (BUSBW_LINES - 1.0))];
    free(all);
}

int busbw_colour(const struct busbw_figure *f, const struct shape *s)
{
    for (int i = 0; i < f->shapes; i++)
        if (shape_equal(&f->shape[i], s))
            return i + 1;
    return 0;
}

/* --- lines --- */

double busbw_rate(enum op op, int ranks, double bytes, double sec)
{
    return sec > 0 ? bytes / sec / 1e9 * op_bus_factor(op, ranks) : NAN;
}

/* A measured curve at its sizes; a published one, which has no samples, at powers of two. */
static void choose_sizes(struct busbw_line *l)
{
    const struct curve *c = &l->c->curve;

    if (c->point[0].n == 0) {
        for (double s = 1 << 10; s <= 8.0 * (1 << 30) && l->sizes < BUSBW_SIZES; s *= 2)
            l->size[l->sizes++] = s;
        return;
    }
    int step = (c->points + BUSBW_SIZES - 1) / BUSBW_SIZES;
    for (int i = 0; i < c->points; i += step)
        l->size[l->sizes++] = c->point[i].bytes;
}

double busbw_expected(const struct busbw_figure *f, const struct busbw_line *l, double bytes,
                      char words[80])
{
    struct cost cost;

    reference_of_curve(&f->reference, l->c, l->ids, bytes, &cost);
    if (isnan(reference_share(&cost, curve_time(&l->c->curve, bytes))))
        return NAN;
    if (words)
        reference_words(&f->reference, &cost, words);
    return busbw_rate(l->c->op, l->c->shape.ranks, bytes, cost.sec);
}

static double peak(const struct busbw_figure *f, const struct busbw_line *l)
{
    static const double huge = 1e15; /* bytes: no latency is left */
    struct cost cost;

    if (!l->ids)
        return NAN;
    matrix_collective(&f->ideal, l->c->op, l->ids, l->c->shape.ranks, huge, &cost);
    return busbw_rate(l->c->op, l->c->shape.ranks, huge, cost.sec);
}

double busbw_value(const struct busbw_line *l, int i)
{
    return busbw_rate(l->c->op, l->c->shape.ranks, l->size[i],
                      curve_time(&l->c->curve, l->size[i]));
}

static void add_line(struct busbw_figure *f, struct busbw_panel *p, const struct collective *c)
{
    struct busbw_line *l = &p->line[p->lines++];

    l->c = c;
    l->ids = shape_group(&f->m->topo, &c->shape);
    choose_sizes(l);
    l->peak = peak(f, l);
    if (!isnan(l->peak))
        p->hi = fmax(p->hi, l->peak);
    for (int i = 0; i < l->sizes; i++) {
        double v = busbw_value(l, i);
        p->lo = fmin(p->lo, v);
        p->hi = fmax(fmax(p->hi, v), busbw_expected(f, l, l->size[i], NULL));
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
    for (int i = 0; i < f->ideal.tiers; i++)
        for (int d = 0; d < DIR_COUNT; d++)
            curve_free(&f->ideal.tier[i].curve[d]);
    for (int i = 0; i < f->panels; i++)
        for (int k = 0; k < f->panel[i].lines; k++)
            free(f->panel[i].line[k].ids);
}

int plot_data_busbw(const struct matrix *m, const char *dir, struct err *err)
{
    struct busbw_figure *f = mem_calloc(1, sizeof(*f));
    int rc = -1;

    f->m = m;
    f->from = INFINITY;
    reference_open(&f->reference, m);
    choose_shapes(f);
    make_ideal(f);
    for (int op = 0; op < OP_COUNT; op++)
        add_panel(f, (enum op)op);
    if (!f->panels)
        err_data(err, "no bus bandwidth to plot: the matrix has no collective");
    else if (busbw_write_lines(f, dir, err) == 0 && busbw_write_panels(f, dir, err) == 0)
        rc = busbw_write_words(f, dir, err);
    figure_free(f);
    free(f);
    return rc;
}
