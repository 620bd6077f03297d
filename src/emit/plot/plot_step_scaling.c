/* SPDX-License-Identifier: BSD-3-Clause */
/* Speed of a GPU against how many there are: series from a table or from predictions. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "emit/plot/plot_data.h"
#include "emit/plot/plot_step.h"

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

/* Insert in order of size. */
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

/* A cell that may be absent, empty or "-". */
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
    if (c->seconds) { /* the longest time is the slowest */
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

/* "dp_shard=8,tp=4" is "tp=4" at any size. */
static char *without_dp(const char *layout)
{
    char *copy = mem_strdup(layout), *rest = copy, *word, *out = mem_strdup("");

    while ((word = strsep(&rest, ",")))
        if (*word && strncmp(word, "dp", 2) != 0) {
            char *longer = mem_printf("%s%s%s", out, *out ? "," : "", word);
            free(out);
            out = longer;
        }
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
