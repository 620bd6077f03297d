/* SPDX-License-Identifier: BSD-3-Clause */
/* plot_step_scaling.c - speed per GPU over the number of GPUs: series from a table or from
 * predictions. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"
#include "base/table.h"
#include "report/plot/plot_data.h"

static const double most = 1e30;

static struct scaling_series *series_named(struct scaling *s, const char *name)
{
    for (int i = 0; i < s->count; i++)
        if (!strcmp(s->series[i].name, name))
            return &s->series[i];
    struct scaling_series *one = &MEM_PUSH(s->series, s->count);
    *one = (struct scaling_series){.name = mem_strdup(name)};
    return one;
}

/* Insert a point in order of size. */
static int add(struct scaling *s, const char *name, struct scaling_point p, const char *where,
               const char *advice, struct err *err)
{
    struct scaling_series *one = series_named(s, name);
    int at = one->points;

    if (s->count > SCALING_SERIES_MAX)
        return err_data(err, "%s: \"%s\" is the %dth series, and %d can be told apart", where, name,
                        s->count, SCALING_SERIES_MAX);
    for (int i = 0; i < one->points; i++)
        if (one->point[i].gpus == p.gpus)
            return err_data(err, "%s: series \"%s\" has %.0f GPUs twice%s", where, name, p.gpus,
                            advice);
    (void)MEM_PUSH(one->point, one->points);
    for (; at > 0 && one->point[at - 1].gpus > p.gpus; at--)
        one->point[at] = one->point[at - 1];
    one->point[at] = p;
    return 0;
}

/* --- from a table --- */

struct columns {
    int series, gpus, value, lo, hi, measured, tokens;
    bool seconds; /* value, lo, hi and measured are times */
};

static int find_columns(struct columns *c, const struct tsv *t, struct err *err)
{
    c->series = tsv_column(t, "series", err);
    c->gpus = c->series < 0 ? -1 : tsv_column(t, "gpus", err);
    if (c->gpus < 0)
        return -1;
    c->value = tsv_find(t, "tokens_per_gpu");
    c->seconds = c->value < 0;
    c->value = c->seconds ? tsv_find(t, "seconds") : c->value;
    if (c->value < 0)
        return err_data(err, "%s: neither a column \"tokens_per_gpu\" nor \"seconds\"", t->path);
    c->lo = tsv_find(t, "lo");
    c->hi = tsv_find(t, "hi");
    c->measured = tsv_find(t, "measured");
    c->tokens = tsv_find(t, "tokens");
    return 0;
}

/* Read a cell that may be absent, empty or "-". */
static int optional(const struct tsv *t, int row, int col, double *out, struct err *err)
{
    const char *text = col < 0 ? "" : t->row[row].cell[col];

    *out = NAN;
    if (!*text || !strcmp(text, "-"))
        return 0;
    return tsv_double(t, row, col, 1e-12, most, out, err);
}

static int read_row(struct scaling *s, const struct tsv *t, int row, const struct columns *c,
                    struct err *err)
{
    struct scaling_point p = {.value = NAN, .messages = NAN};
    double tokens;

    if (tsv_double(t, row, c->gpus, 1, 1e9, &p.gpus, err) < 0 ||
        tsv_double(t, row, c->value, 1e-12, most, &p.value, err) < 0 ||
        optional(t, row, c->lo, &p.lo, err) < 0 || optional(t, row, c->hi, &p.hi, err) < 0 ||
        optional(t, row, c->measured, &p.measured, err) < 0 ||
        optional(t, row, c->tokens, &tokens, err) < 0)
        return -1;
    char *where = mem_printf("%s:%d", t->path, t->row[row].line);
    int rc = 0;
    if (p.gpus != floor(p.gpus))
        rc = err_data(err, "%s: \"gpus\" is %g, no whole number", where, p.gpus);
    else if (p.lo > p.value || p.hi < p.value)
        rc = err_data(err, "%s: %g is outside its interval %g..%g", where, p.value, p.lo, p.hi);
    if (c->seconds) { /* the longest time is the lowest speed */
        double each = isnan(tokens) ? 1 : tokens / p.gpus, lo = p.lo;
        p.value = each / p.value;
        p.lo = each / p.hi;
        p.hi = each / lo;
        p.measured = each / p.measured;
        s->tokens &= !isnan(tokens);
    }
    if (rc == 0)
        rc = add(s, t->row[row].cell[c->series], p, where, "", err);
    free(where);
    return rc;
}

int scaling_load(struct scaling *s, const char *path, struct err *err)
{
    struct columns c = {0};
    struct tsv t;
    int rc;

    *s = (struct scaling){.tokens = true};
    if (tsv_load(&t, path, err) < 0)
        return -1;
    rc = find_columns(&c, &t, err);
    for (int i = 0; i < t.rows && rc == 0; i++)
        rc = read_row(s, &t, i, &c, err);
    if (rc == 0 && !s->count)
        rc = err_data(err, "%s: no rows", path);
    tsv_free(&t);
    return rc;
}

/* --- from predictions --- */

/* "dp_shard=8,tp=4" becomes "tp=4", which is the same for any size. */
static char *without_dp(const char *layout)
{
    char *copy = mem_strdup(layout), *rest = copy, *word, *out = mem_strdup("");

    while ((word = strsep(&rest, ",")))
        if (*word && strncmp(word, "dp", 2) != 0)
            out = mem_append(out, "%s%s", *out ? "," : "", word);
    free(copy);
    return out;
}

static char *name_of(const struct step_bar *b)
{
    char *rest = without_dp(b->layout), *name;

    name = mem_printf("%s%s%s%s%s", b->model, *rest ? ", " : "", rest, *b->how ? ", " : "", b->how);
    free(rest);
    return name;
}

int scaling_of_steps(struct scaling *s, const struct step_bars *b, struct err *err)
{
    int rc = 0;

    *s = (struct scaling){.tokens = true};
    for (int i = 0; i < b->bars && rc == 0; i++) {
        const struct step_bar *one = &b->bar[i];
        double each = one->tokens_per_gpu * one->sec;
        if (isnan(one->ranks) || isnan(one->tokens_per_gpu))
            return err_data(err, "%s: it has no \"%s\", which scaling needs", one->file,
                            isnan(one->ranks) ? "ranks" : "tokens_per_s_per_gpu");
        char *name = one->given ? mem_strdup(one->given) : name_of(one);
        rc = add(s, name,
                 (struct scaling_point){one->ranks, one->tokens_per_gpu, each / one->hi,
                                        each / one->lo, each / one->measured, step_messages(one)},
                 one->file, "; LABEL=FILE tells series apart", err);
        free(name);
    }
    return rc == 0 && !s->count ? err_data(err, "no predicted step to draw") : rc;
}

void scaling_free(struct scaling *s)
{
    for (int i = 0; i < s->count; i++) {
        free(s->series[i].name);
        free(s->series[i].point);
    }
    free(s->series);
    *s = (struct scaling){0};
}

/* --- tables: lines, texts at their ends, ranges of the axes --- */

enum { AREA_H_PIXELS = 900, LABEL_PIXELS = 62, NAME_CHARS = 40, TICKS_MAX = 64 };

/* Speed that is 100 %: the predicted speed of the smallest job; for measured points its measured
 * speed, if known. */
static double base_of(const struct scaling_series *one, bool measured)
{
    double v = one->point[0].measured;

    return measured && !isnan(v) ? v : one->point[0].value;
}

static double efficiency(const struct scaling_series *one, double v, bool measured)
{
    return 100 * v / base_of(one, measured);
}

/* Half the width of an interval on a logarithmic scale; 0: no interval. */
static double width_of(const struct scaling_point *p)
{
    double w = log(p->hi / p->lo) / 2;

    return isfinite(w) ? w : 0;
}

/* Efficiency if all messages took f times as long, in p and in the smallest job. */
static double if_messages(const struct scaling_series *one, const struct scaling_point *p, double f)
{
    return step_ratio_if(efficiency(one, p->value, false), one->point[0].messages, p->messages, f);
}

/* One end of the interval of p's efficiency: sign -1 or 1.  A factor that is wrong in the whole
 * step of both jobs cancels.  Two errors remain: messages that are off relative to compute by as
 * much as the whole step may be, and the part of p's interval that exceeds that of the smallest job
 * (in squares, as independent errors add up). */
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
    if (r.from == r.to) { /* a single size: centre it */
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

static void put_lines(FILE *out, const void *figure)
{
    const struct scaling *s = figure;
    char name[PLOT_TEXT];

    for (int i = 0; i < s->count; i++)
        for (int k = 0; k < s->series[i].points; k++) {
            const struct scaling_series *one = &s->series[i];
            const struct scaling_point *p = &one->point[k];
            fprintf(out, "%d\t%s\t%.0f", i + 1, plot_text(name, one->name, 100), p->gpus);
            plot_number(out, s->tokens ? p->value : NAN);
            print_percent(out, efficiency(one, p->value, false));
            print_percent(out, ratio_end(one, p, -1));
            print_percent(out, ratio_end(one, p, 1));
            print_percent(out, efficiency(one, p->measured, true));
            fputc('\n', out);
        }
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

/* Put labels beside the right border, in the order of the lines' ends, without overlap. */
static void put_labels(FILE *out, const void *figure)
{
    const struct scaling *s = figure;
    struct range r = range_of(s);
    double at[SCALING_SERIES_MAX], scale = (r.hi - r.lo) / AREA_H_PIXELS;
    int order[SCALING_SERIES_MAX] = {0};
    char name[PLOT_TEXT], words[PLOT_TEXT];

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
    plot_spread(at, s->count, LABEL_PIXELS * scale, r.lo + LABEL_PIXELS / 2. * scale,
                r.hi - LABEL_PIXELS / 2. * scale);
    for (int i = 0; i < s->count; i++) {
        const struct scaling_series *one = &s->series[order[i]];
        end_words(words, s, one);
        fprintf(out, "%d\t%s\t%s\t%.4f\n", order[i] + 1, plot_text(name, one->name, NAME_CHARS),
                words, at[i]);
    }
}

/* Sizes in the data, without those too near another. */
static void put_ticks(FILE *out, const void *figure)
{
    const struct scaling *s = figure;
    struct range r = range_of(s);
    double *v = NULL, apart = log(r.to / r.from) * 0.055, before = 0;
    char text[PLOT_TEXT];
    int n = 0;

    for (int i = 0; i < s->count; i++)
        for (int k = 0; k < s->series[i].points; k++)
            MEM_PUSH(v, n) = s->series[i].point[k].gpus;
    if (n)
        stats_sort(v, n);
    for (int i = 0; i < n; i++) {
        if (before > 0 && log(v[i] / before) < apart)
            continue;
        fprintf(out, "%.0f\t%s\n", v[i], plot_count(text, (long)v[i], ""));
        before = v[i];
    }
    free(v);
}

static void put_meta(FILE *out, const void *figure)
{
    const struct scaling *s = figure;
    struct range r = range_of(s);
    bool measured = false, intervals = false;

    for (int i = 0; i < s->count; i++)
        for (int k = 0; k < s->series[i].points; k++) {
            measured |= !isnan(s->series[i].point[k].measured);
            intervals |= !isnan(s->series[i].point[k].lo) && s->series[i].points > 1;
        }
    fprintf(out, "title\tScaling efficiency\n");
    fprintf(out, "subtitle\t%s, relative to the smallest job of each line%s%s; dashed: ideal\n",
            s->tokens ? "tokens/s of a GPU" : "speed of a GPU, its batch the same at any size",
            intervals ? "; shade: interval of the ratio" : "",
            measured ? "; diamond: measured" : "");
    fprintf(out, "series\t%d\nfrom\t%g\nto\t%g\nlo\t%g\nhi\t%g\n", s->count, r.from, r.to, r.lo,
            r.hi);
}

static const struct plot_table tables[] = {
    /* The last four columns are percent of the series' smallest job; lo and hi are without the
     * errors that both share. */
    {"scaling.tsv", "line\tseries\tgpus\ttokens_per_s_per_gpu\tefficiency\tlo\thi\tmeasured",
     put_lines},
    {"scaling_label.tsv", "line\tseries\tvalue\tat", put_labels},
    {"scaling_tick.tsv", "gpus\ttext", put_ticks},
    {"scaling_meta.tsv", "key\tvalue", put_meta},
    {NULL, NULL, NULL},
};

int plot_data_scaling(const struct plot_source *s, const char *dir, struct err *err)
{
    if (!s->scaling->count)
        return err_data(err, "no series to draw");
    return plot_tables_write(tables, s->scaling, dir, err);
}

int plot_text_scaling(FILE *out, const struct scaling *s, struct err *err)
{
    static const struct table_column columns[] = {
        {NULL, "series", "text"},         {NULL, "GPUs", "figure"},
        {NULL, "tokens/s/GPU", "figure"}, {NULL, "efficiency", "%.1f %%"},
        {NULL, "measured", "%.1f %%"},    {0}};
    char name[PLOT_TEXT], gpus[PLOT_TEXT], rate[PLOT_TEXT];
    struct table t;

    if (!s->count)
        return err_data(err, "no series to draw");
    table_open(&t, columns);
    for (int i = 0; i < s->count; i++)
        for (int k = 0; k < s->series[i].points; k++) {
            const struct scaling_series *one = &s->series[i];
            const struct scaling_point *p = &one->point[k];
            plot_count(rate, s->tokens ? lround(p->value) : 0, "");
            table_add(&t, k ? "" : plot_text(name, one->name, NAME_CHARS),
                      plot_count(gpus, (long)p->gpus, ""), s->tokens ? rate : NULL,
                      efficiency(one, p->value, false), efficiency(one, p->measured, true));
        }
    table_print(out, &t, 0);
    table_free(&t);
    return 0;
}
