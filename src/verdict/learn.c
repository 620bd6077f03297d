/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/distribution.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/op.h"
#include "base/units.h"
#include "verdict/accept.h"

/* Share of campaigns of a good machine that miss a learned limit: one in a hundred for each figure. */
static const double misses = 0.01;
/* Least distance of a limit from the mean.  A point ends when its median is known to about 2 % on either side, so that the
 * interval of a figure as good as the learned ones keeps a limit that is 3 % away. */
static const double least_distance = 0.03;

/* A figure that all campaigns have. */
struct learned {
    enum check check;
    const struct tier *tier;
    const struct collective *collective;
    double bytes;       /* collectives: largest size of all campaigns */
    double mean;        /* of the logs */
    double least, most; /* values */
    double squares;     /* sum of squared distances of the logs from their mean */
};

static const struct tier *same_tier(const struct matrix *m, const struct tier *t)
{
    for (int i = 0; i < m->tiers; i++)
        if (!strcmp(m->tier[i].rule.name, t->rule.name) && m->tier[i].pairs >= ACCEPT_PAIRS)
            return &m->tier[i];
    return NULL;
}

static const struct collective *same_collective(const struct matrix *m, const struct collective *c)
{
    for (int i = 0; i < m->collectives; i++) {
        const struct collective *d = &m->collective[i];
        if (d->op == c->op && d->basis == BASIS_MEASURED && d->curve.points &&
            d->shape.ranks == c->shape.ranks && d->shape.domains == c->shape.domains)
            return d;
    }
    return NULL;
}

static double tier_value(const struct matrix *m, const struct tier *t, enum check check)
{
    const struct curve *latency = &t->curve[DIR_ONEWAY];

    if (check == CHECK_TIER_BANDWIDTH)
        return matrix_rate(m, (int)(t - m->tier), DIR_UNI);
    return latency->points ? latency->alpha : NAN;
}

/* Value of the figure in a campaign; NAN: it has none. */
static double value_in(const struct matrix *m, const struct learned *f)
{
    const struct tier *t = f->tier ? same_tier(m, f->tier) : NULL;
    const struct collective *c = f->collective ? same_collective(m, f->collective) : NULL;

    if (t)
        return tier_value(m, t, f->check);
    if (!c || curve_end(&c->curve, f->bytes) != 0)
        return NAN;
    return f->bytes * op_bus_factor(c->op, c->shape.ranks) / curve_time(&c->curve, f->bytes);
}

/* Returns false if a campaign lacks the figure. */
static bool learn(struct learned *f, const struct matrix *const *m, int n)
{
    f->least = INFINITY;
    f->most = f->mean = f->squares = 0;
    for (int i = 0; i < n; i++) {
        double x = value_in(m[i], f);
        if (!(x > 0) || !isfinite(x))
            return false;
        f->least = fmin(f->least, x);
        f->most = fmax(f->most, x);
        f->mean += log(x) / n;
    }
    for (int i = 0; i < n; i++) {
        double away = log(value_in(m[i], f)) - f->mean;
        f->squares += away * away;
    }
    return true;
}

static void largest_size(struct learned *f, const struct matrix *const *m, int n)
{
    f->bytes = INFINITY;
    for (int i = 0; i < n; i++) {
        const struct collective *c = same_collective(m[i], f->collective);
        f->bytes = c ? fmin(f->bytes, c->curve.point[c->curve.points - 1].bytes) : 0;
    }
}

static struct learned *figures_of(const struct matrix *const *m, int n, int *count)
{
    struct learned *all = NULL;

    *count = 0;
    for (int i = 0; i < 2 * m[0]->tiers; i++) {
        struct learned f = {.check = i % 2 ? CHECK_TIER_LATENCY : CHECK_TIER_BANDWIDTH,
                            .tier = &m[0]->tier[i / 2]};
        if (learn(&f, m, n))
            MEM_PUSH(all, *count) = f;
    }
    for (int i = 0; i < m[0]->collectives; i++) {
        struct learned f = {.check = CHECK_BUSBW, .collective = &m[0]->collective[i]};
        if (same_collective(m[0], f.collective) != f.collective)
            continue;
        largest_size(&f, m, n);
        if (learn(&f, m, n))
            MEM_PUSH(all, *count) = f;
    }
    return all;
}

/* Distance of a limit from the mean, as a log: the end of a one-sided interval for the value of one more campaign.  The
 * variance is that of all figures of the check; a campaign's day moves all of them, so it counts once a campaign. */
static double distance(const struct learned *all, int count, enum check check, int n)
{
    double squares = 0;
    int figures = 0;

    for (int i = 0; i < count; i++)
        if (all[i].check == check) {
            squares += all[i].squares;
            figures++;
        }
    double s = sqrt(squares / (figures * (n - 1)));
    return fmax(dist_t_quantile(1 - misses, n - 1) * s * sqrt(1 + 1.0 / n),
                -log1p(-least_distance));
}

static json_t *row_json(const struct learned *f, double away, int n, const char *from)
{
    const struct limit_check *c = &limit_check[f->check];
    char bound[LIMIT_TEXT], least[LIMIT_TEXT], most[LIMIT_TEXT], size[32];
    double at = exp(f->mean + (c->least ? -away : away));
    char *source =
        mem_printf("%d campaigns, %s to %s: %s", n, limit_value_text(least, c->unit, f->least),
                   limit_value_text(most, c->unit, f->most), from);
    json_t *row =
        json_pack("{s:s, s:s, s:b, s:s}", "check", c->name, c->least ? "at_least" : "at_most",
                  limit_value_text(bound, c->unit, at), "optional", 1, "source", source);

    if (f->tier)
        json_object_set_new(row, "tier", json_string(f->tier->rule.name));
    else {
        snprintf(size, sizeof(size), "%.0f", f->bytes);
        json_object_update_new(row,
                               json_pack("{s:s, s:i, s:i, s:s}", "op", op_name(f->collective->op),
                                         "ranks", f->collective->shape.ranks, "domains",
                                         f->collective->shape.domains, "bytes", size));
    }
    free(source);
    return row;
}

/* Rows of railgauge's own limits that the learned ones do not replace. */
static int other_rows(json_t **rows, struct err *err)
{
    char *path = file_data("jobs/limits/default.json");
    json_t *root = NULL, *row;
    size_t i;
    int rc = path ? json_open(&root, path, "railgauge-limits", 1, err)
                  : err_config(err, "jobs/limits/default.json is not installed");

    *rows = json_array();
    json_array_foreach(json_object_get(root, "limits"), i, row)
    {
        const char *check = json_string_value(json_object_get(row, "check"));
        if (check && strcmp(check, limit_check[CHECK_TIER_BANDWIDTH].name) != 0 &&
            strcmp(check, limit_check[CHECK_TIER_LATENCY].name) != 0 &&
            strcmp(check, limit_check[CHECK_BUSBW].name) != 0)
            json_array_append(*rows, row);
    }
    json_decref(root);
    free(path);
    return rc;
}

int accept_learn(json_t **out, const struct matrix *const *m, int n, const char *from,
                 struct err *err)
{
    int count;
    json_t *rows = NULL;

    *out = NULL;
    if (n < ACCEPT_LEARN)
        return err_usage(
            err, "%d campaign%s: limits are learned from %d or more, for the spread between them",
            n, units_s(n), ACCEPT_LEARN);
    struct learned *all = figures_of(m, n, &count);
    int rc = count ? other_rows(&rows, err)
                   : err_set(err, "no tier with %d pairs and no collective is in all of them",
                             ACCEPT_PAIRS);
    if (rc == 0) {
        for (int i = 0; i < count; i++)
            json_array_append_new(
                rows, row_json(&all[i], distance(all, count, all[i].check, n), n, from));
        *out = json_pack("{s:s, s:i, s:s, s:O}", "format", "railgauge-limits", "version", 1,
                         "title", from, "limits", rows);
    }
    json_decref(rows);
    free(all);
    return rc;
}
