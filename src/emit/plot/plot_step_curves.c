/* SPDX-License-Identifier: BSD-3-Clause */
/* Scaling efficiency as tables: lines, what is written at their ends, the range of the axes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "emit/plot/plot_data.h"
#include "emit/plot/plot_step.h"
#include "emit/text/table.h"

enum { AREA_H_PIXELS = 900, LABEL_PIXELS = 62, NAME_CHARS = 40, TICKS_MAX = 64 };

/* What 100 % is: the predicted speed of the smallest job; of measured ones, the measured speed of
 * that job where there is one. */
static double base_of(const struct scaling_series *one, bool measured)
{
    double v = one->point[0].measured;

    return measured && !isnan(v) ? v : one->point[0].value;
}

static double efficiency(const struct scaling_series *one, double v, bool measured)
{
    return 100 * v / base_of(one, measured);
}

/* Half the width of an interval on a logarithmic scale; 0 where there is none. */
static double width_of(const struct scaling_point *p)
{
    double w = log(p->hi / p->lo) / 2;

    return isfinite(w) ? w : 0;
}

/* Efficiency if all messages took f times as long, in p as in the smallest job. */
static double if_messages(const struct scaling_series *one, const struct scaling_point *p, double f)
{
    const struct scaling_point *base = &one->point[0];
    double m = isnan(p->messages) ? 0 : p->messages,
           m0 = isnan(base->messages) ? 0 : base->messages;

    return efficiency(one, p->value * (1 + (f - 1) * m0) / (1 + (f - 1) * m), false);
}

/* The interval of p's efficiency, one end of it: sign -1 or 1.  A factor that is wrong in the whole
 * step of both jobs cancels.  What stays: messages that are off against computing by as much as the
 * whole step may be, and what p's interval has beyond that of the smallest job (in squares, as
 * independent errors add up). */
static double ratio_end(const struct scaling_series *one, const struct scaling_point *p, int sign)
{
    double w = width_of(p), w0 = width_of(&one->point[0]), eff = efficiency(one, p->value, false);
    double more = log(if_messages(one, p, exp(w)) / eff);
    double less = log(if_messages(one, p, exp(-w)) / eff);
    double mixed = sign < 0 ? fmin(more, less) : fmax(more, less);

    if (isnan(p->lo) || isnan(p->hi))
        return NAN;
    return eff * exp(sign * sqrt(mixed * mixed + fmax(0, w * w - w0 * w0)));
}

struct range {
    double from, to; /* GPUs */
    double lo, hi;   /* percent */
};

static void widen(struct range *r, double v)
{
    if (isnan(v))
        return;
    r->lo = fmin(r->lo, v);
    r->hi = fmax(r->hi, v);
}

static struct range range_of(const struct scaling *s)
{
    struct range r = {INFINITY, 0, 80, 104};

    for (int i = 0; i < s->count; i++)
        for (int k = 0; k < s->series[i].points; k++) {
            const struct scaling_series *one = &s->series[i];
            const struct scaling_point *p = &one->point[k];
            r.from = fmin(r.from, p->gpus);
            r.to = fmax(r.to, p->gpus);
            widen(&r, efficiency(one, p->value, false));
            widen(&r, ratio_end(one, p, -1));
            widen(&r, ratio_end(one, p, 1));
            widen(&r, efficiency(one, p->measured, true));
        }
    r.lo = fmax(0, 10 * floor((r.lo - 0.5) / 10));
    r.hi = r.hi > 104 ? 5 * ceil(r.hi / 5) : r.hi;
    if (r.from == r.to) { /* one size: in the middle */
        r.from /= 2;
        r.to *= 2;
    }
    return r;
}

static void print_percent(FILE *out, double v)
{
    if (isfinite(v))
        fprintf(out, "\t%.2f", v);
    else
        fputs("\tNaN", out);
}

static int write_lines(const struct scaling *s, const char *dir, struct err *err)
{
    struct file_out out;
    char name[PLOT_TEXT];

    if (plot_begin(&out, dir, "scaling.tsv",
                   "line\tseries\tgpus\ttokens_per_s_per_gpu\tefficiency\tlo\thi\tmeasured",
                   err) < 0)
        return -1;
    for (int i = 0; i < s->count; i++)
        for (int k = 0; k < s->series[i].points; k++) {
            const struct scaling_series *one = &s->series[i];
            const struct scaling_point *p = &one->point[k];
            fprintf(out.stream, "%d\t%s\t%.0f", i + 1, plot_text(name, one->name, 100), p->gpus);
            if (s->tokens)
                fprintf(out.stream, "\t%.6g", p->value);
            else
                fputs("\tNaN", out.stream);
            print_percent(out.stream, efficiency(one, p->value, false));
            print_percent(out.stream, ratio_end(one, p, -1));
            print_percent(out.stream, ratio_end(one, p, 1));
            print_percent(out.stream, efficiency(one, p->measured, true));
            fputc('\n', out.stream);
        }
    return file_commit(&out, err);
}

static const struct scaling_point *last(const struct scaling_series *one)
{
    return &one->point[one->points - 1];
}

static void end_words(char out[PLOT_TEXT], const struct scaling *s,
                      const struct scaling_series *one)
{
    char gpus[PLOT_TEXT], rate[PLOT_TEXT];
    const struct scaling_point *p = last(one);

    plot_count(gpus, (long)p->gpus, "GPU");
    plot_count(rate, lround(p->value), "");
    snprintf(out, PLOT_TEXT, "%.0f%% at %.30s%s%.30s%s", efficiency(one, p->value, false), gpus,
             s->tokens ? ", " : "", s->tokens ? rate : "", s->tokens ? " tokens/s/GPU" : "");
}

/* Labels beside the right border, in the order of the lines' ends, apart from each other. */
static int write_labels(const struct scaling *s, const struct range *r, const char *dir,
                        struct err *err)
{
    double at[SCALING_SERIES_MAX], scale = (r->hi - r->lo) / AREA_H_PIXELS;
    int order[SCALING_SERIES_MAX];
    char name[PLOT_TEXT], words[PLOT_TEXT];
    struct file_out out;

    for (int i = 0; i < s->count; i++) {
        double v = efficiency(&s->series[i], last(&s->series[i])->value, false);
        int k = i;
        for (; k > 0 && at[k - 1] > v; k--) {
            at[k] = at[k - 1];
            order[k] = order[k - 1];
        }
        at[k] = v;
        order[k] = i;
    }
    plot_spread(at, s->count, LABEL_PIXELS * scale, r->lo + LABEL_PIXELS / 2. * scale,
                r->hi - LABEL_PIXELS / 2. * scale);
    if (plot_begin(&out, dir, "scaling_label.tsv", "line\tseries\tvalue\tat", err) < 0)
        return -1;
    for (int i = 0; i < s->count; i++) {
        const struct scaling_series *one = &s->series[order[i]];
        end_words(words, s, one);
        fprintf(out.stream, "%d\t%s\t%s\t%.4f\n", order[i] + 1,
                plot_text(name, one->name, NAME_CHARS), words, at[i]);
    }
    return file_commit(&out, err);
}

static int by_number(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;

    return (a > b) - (a < b);
}

/* The sizes that there are, those too near another left out. */
static int write_ticks(const struct scaling *s, const struct range *r, const char *dir,
                       struct err *err)
{
    double *v = NULL, apart = log(r->to / r->from) * 0.055, before = 0;
    struct file_out out;
    char text[PLOT_TEXT];
    int n = 0;

    for (int i = 0; i < s->count; i++)
        for (int k = 0; k < s->series[i].points; k++)
            MEM_PUSH(v, n) = s->series[i].point[k].gpus;
    if (v)
        qsort(v, (size_t)n, sizeof(*v), by_number);
    int rc = plot_begin(&out, dir, "scaling_tick.tsv", "gpus\ttext", err);
    for (int i = 0; rc == 0 && v && i < n; i++) {
        if (before > 0 && log(v[i] / before) < apart)
            continue;
        fprintf(out.stream, "%.0f\t%s\n", v[i], plot_count(text, (long)v[i], ""));
        before = v[i];
    }
    free(v);
    return rc == 0 ? file_commit(&out, err) : rc;
}

static int write_meta(const struct scaling *s, const struct range *r, const char *dir,
                      struct err *err)
{
    struct file_out out;
    bool measured = false, intervals = false;

    for (int i = 0; i < s->count; i++)
        for (int k = 0; k < s->series[i].points; k++) {
            measured |= !isnan(s->series[i].point[k].measured);
            intervals |= !isnan(s->series[i].point[k].lo) && s->series[i].points > 1;
        }
    if (plot_begin(&out, dir, "scaling_meta.tsv", "key\tvalue", err) < 0)
        return -1;
    fprintf(out.stream, "title\tScaling efficiency\n");
    fprintf(
        out.stream, "subtitle\t%s, relative to the smallest job of each line%s%s; dashed: ideal\n",
        s->tokens ? "tokens/s of a GPU" : "speed of a GPU, its batch the same at any size",
        intervals ? "; shade: interval of the ratio" : "", measured ? "; diamond: measured" : "");
    fprintf(out.stream, "series\t%d\nfrom\t%g\nto\t%g\nlo\t%g\nhi\t%g\n", s->count, r->from, r->to,
            r->lo, r->hi);
    return file_commit(&out, err);
}

int plot_data_scaling(const struct scaling *s, const char *dir, struct err *err)
{
    if (!s->count)
        return err_data(err, "no series to draw");
    struct range r = range_of(s);
    if (write_lines(s, dir, err) < 0 || write_labels(s, &r, dir, err) < 0 ||
        write_ticks(s, &r, dir, err) < 0)
        return -1;
    return write_meta(s, &r, dir, err);
}

int plot_text_scaling(FILE *out, const struct scaling *s, struct err *err)
{
    char name[PLOT_TEXT], gpus[PLOT_TEXT], rate[PLOT_TEXT], share[32], measured[32];
    struct table t;

    if (!s->count)
        return err_data(err, "no series to draw");
    table_init(&t, "lrrrr");
    table_row(&t, "series", "GPUs", "tokens/s/GPU", "efficiency", "measured");
    for (int i = 0; i < s->count; i++)
        for (int k = 0; k < s->series[i].points; k++) {
            const struct scaling_series *one = &s->series[i];
            const struct scaling_point *p = &one->point[k];
            snprintf(share, sizeof(share), "%.1f %%", efficiency(one, p->value, false));
            snprintf(measured, sizeof(measured), "%.1f %%", efficiency(one, p->measured, true));
            plot_count(rate, s->tokens ? lround(p->value) : 0, "");
            table_row(&t, k ? "" : plot_text(name, one->name, NAME_CHARS),
                      plot_count(gpus, (long)p->gpus, ""), s->tokens ? rate : NULL, share,
                      isnan(p->measured) ? NULL : measured);
        }
    table_print(out, &t, 0);
    table_free(&t);
    return 0;
}
