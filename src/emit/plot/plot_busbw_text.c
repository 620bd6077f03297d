/* SPDX-License-Identifier: BSD-3-Clause */
/* Bus bandwidth as tables: lines, panels, and the words beside them. */
#include <math.h>
#include <stdlib.h>

#include "emit/plot/heat.h"
#include "emit/plot/plot_busbw.h"

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

static char *value_words(char buf[PLOT_TEXT], const struct busbw_figure *f,
                         const struct busbw_line *l)
{
    double v = busbw_value(l, l->sizes - 1),
           want = busbw_expected(f, l, l->size[l->sizes - 1], NULL);
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

int busbw_write_lines(struct busbw_figure *f, const char *dir, struct err *err)
{
    struct file_out out;
    char name[48], from[80];

    if (plot_begin(&out, dir, "busbw.tsv",
                   "panel\tcolour\top\tshape\tbytes\tbusbw_GBps\tlo_GBps\thi_GBps\texpected_GBps\t"
                   "peak_GBps\texpected_from",
                   err) < 0)
        return -1;
    for (int p = 0; p < f->panels; p++)
        for (int k = 0; k < f->panel[p].lines; k++) {
            struct busbw_line *l = &f->panel[p].line[k];
            for (int i = 0; i < l->sizes; i++) {
                double lo, hi;
                curve_interval(&l->c->curve, l->size[i], &lo, &hi);
                fprintf(out.stream, "%d\t%d\t%s\t%s\t%.0f", p + 1, busbw_colour(f, &l->c->shape),
                        op_name(l->c->op), shape_text(name, &l->c->shape), l->size[i]);
                plot_number(out.stream, busbw_value(l, i));
                plot_number(out.stream, busbw_rate(l->c->op, l->c->shape.ranks, l->size[i], hi));
                plot_number(out.stream, busbw_rate(l->c->op, l->c->shape.ranks, l->size[i], lo));
                snprintf(from, sizeof(from), "-");
                plot_number(out.stream, busbw_expected(f, l, l->size[i], from));
                plot_number(out.stream, l->peak);
                fprintf(out.stream, "\t%s\n", from);
            }
        }
    return file_commit(&out, err);
}

static int by_value(const void *x, const void *y)
{
    double a = (*(const struct busbw_line *const *)x)->peak,
           b = (*(const struct busbw_line *const *)y)->peak;

    return a < b ? -1 : a > b;
}

struct top {
    double GBps;
    const struct busbw_line *line;
    int lines; /* that share it */
};

/* The peaks of a panel, ascending; those closer than a line of text count as one. */
static int tops_of(const struct busbw_panel *p, struct top *top)
{
    const struct busbw_line *l[BUSBW_LINES] = {0};
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

int busbw_write_panels(struct busbw_figure *f, const char *dir, struct err *err)
{
    struct file_out out;

    if (plot_begin(&out, dir, "busbw_panel.tsv",
                   "panel\top\tfrom_bytes\tto_bytes\tlo_GBps\thi_GBps\tpeaks", err) < 0)
        return -1;
    for (int p = 0; p < f->panels; p++) {
        struct top top[BUSBW_LINES];
        fprintf(out.stream, "%d\t%s\t%.0f\t%.0f\t%g\t%g\t%d\n", p + 1, op_name(f->panel[p].op),
                f->from, f->to, f->panel[p].lo, f->panel[p].hi, tops_of(&f->panel[p], top));
    }
    return file_commit(&out, err);
}

static int by_end(const void *x, const void *y)
{
    const struct busbw_line *a = *(const struct busbw_line *const *)x,
                            *b = *(const struct busbw_line *const *)y;
    double u = busbw_value(a, a->sizes - 1), v = busbw_value(b, b->sizes - 1);

    return u < v ? -1 : u > v;
}

/* Labels at the ends of the lines, moved apart on the logarithmic axis. */
static void print_labels(FILE *out, const struct busbw_figure *f, int panel)
{
    const struct busbw_panel *p = &f->panel[panel];
    const struct busbw_line *l[BUSBW_LINES] = {0};
    double at[BUSBW_LINES], height = log(p->hi / p->lo);
    char words[PLOT_TEXT], value[PLOT_TEXT];

    for (int i = 0; i < p->lines; i++)
        l[i] = &p->line[i];
    qsort(l, (size_t)p->lines, sizeof(*l), by_end);
    for (int i = 0; i < p->lines; i++)
        at[i] = log(fmax(busbw_value(l[i], l[i]->sizes - 1), p->lo) / p->lo) / height;
    plot_spread(at, p->lines, 0.125, 0.03, 0.97);
    for (int i = 0; i < p->lines; i++)
        fprintf(out, "%d\t%d\t%s\t%s\t%g\n", panel + 1, busbw_colour(f, &l[i]->c->shape),
                shape_words(words, &l[i]->c->shape), value_words(value, f, l[i]),
                p->lo * exp(at[i] * height));
}

static void print_peaks(FILE *out, const struct busbw_figure *f, int panel)
{
    struct top top[BUSBW_LINES];
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

int busbw_write_words(struct busbw_figure *f, const char *dir, struct err *err)
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
