/* SPDX-License-Identifier: BSD-3-Clause */
#include "verdict/history.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/distribution.h"
#include "base/mem.h"
#include "base/units.h"

static const double week = 7 * 86400;

/* --- choice of campaigns --- */

static int by_begun(const void *x, const void *y)
{
    const struct campaign *a = *(const struct campaign *const *)x,
                          *b = *(const struct campaign *const *)y;
    int order = (a->begun > b->begun) - (a->begun < b->begun);

    return order ? order : strcmp(a->path, b->path);
}

/* Takes ownership of why. */
static void leave(struct history *h, int i, char *why)
{
    MEM_PUSH(h->left, h->lefts) = (struct history_left){h->campaign[i]->path, why};
    memmove(h->campaign + i, h->campaign + i + 1,
            (size_t)(--h->campaigns - i) * sizeof(*h->campaign));
}

static const struct campaign *last_of(const struct history *h)
{
    return h->campaign[h->campaigns - 1];
}

/* True for the same campaign under another name: "last" is a link to a campaign. */
static bool same_campaign(const struct campaign *a, const struct campaign *b)
{
    const struct points *p = a->points, *q = b->points;

    return a->begun == b->begun && p->plan_crc == q->plan_crc && p->count == q->count && p->count &&
           p->point[0].sec.median == q->point[0].sec.median &&
           p->point[p->count - 1].sec.median == q->point[p->count - 1].sec.median;
}

/* Returns why campaign i cannot be compared; NULL: it can.  The caller frees. */
static char *unlike(const struct history *h, int i)
{
    const struct campaign *c = h->campaign[i];

    if (c->begun <= 0)
        return mem_strdup("does not say when its points were begun");
    if (i == h->campaigns - 1)
        return NULL;
    if (same_campaign(c, h->campaign[i + 1]))
        return mem_printf("is the same as %s", h->campaign[i + 1]->path);
    return figures_unlike(c, last_of(h));
}

static void leave_unlike(struct history *h)
{
    for (int i = h->campaigns - 1; i >= 0; i--) {
        char *why = unlike(h, i);
        if (why)
            leave(h, i, why);
    }
}

/* The last campaign comes first, because its points and names decide. */
static void match(struct figures *f, const struct history *h)
{
    struct campaign *c = mem_calloc((size_t)h->campaigns, sizeof(*c));

    c[0] = *last_of(h);
    for (int i = 1; i < h->campaigns; i++)
        c[i] = *h->campaign[i - 1];
    figures_match(f, c, h->campaigns);
    free(c);
}

/* Column of campaign i in the figures. */
static int column(const struct history *h, int i)
{
    return i == h->campaigns - 1 ? 0 : i + 1;
}

static void leave_strangers(struct history *h, struct figures *f)
{
    int before = h->campaigns, all = f->matched[0];

    for (int i = before - 2; i >= 0; i--)
        if (2 * f->matched[i + 1] < all)
            leave(h, i,
                  mem_printf("has %d of the %d points of %s: other hosts, or another plan",
                             f->matched[i + 1], all, last_of(h)->path));
    if (h->campaigns < before) {
        figures_free(f);
        match(f, h);
    }
}

static int refuse_few(const struct history *h, struct err *err)
{
    const struct history_left *l = h->left;

    return h->campaigns >= HISTORY_LEAST
               ? 0
               : err_data(err, "only %d campaign%s can be compared; %s %s", h->campaigns,
                          units_s(h->campaigns), l ? l->path : "", l ? l->why : "");
}

/* --- one figure --- */

/* Returns the log speed of each point per campaign, oldest first: v[point * campaigns +
 * campaign]. */
static double *speeds(const struct history *h, const struct figures *f, const struct figure *g)
{
    double *v = mem_calloc((size_t)g->points * (size_t)h->campaigns, sizeof(*v));

    for (int i = 0; i < g->points; i++)
        for (int k = 0; k < h->campaigns; k++)
            v[i * h->campaigns + k] = -log(f->sec[(g->first + i) * h->campaigns + column(h, k)]);
    return v;
}

/* Compute the level of each campaign relative to the points' own means (means, because medians of
 * few campaigns would bend a slope) and its noise, the variance that its own epochs show. */
static void take_levels(struct history_figure *f, const struct history *h,
                        const struct figures *all, const struct figure *g, const double *v)
{
    const int n = h->campaigns;
    double *off = mem_calloc((size_t)f->points, sizeof(*off)),
           *own = mem_calloc((size_t)f->points, sizeof(*own));

    for (int i = 0; i < f->points * n; i++)
        own[i / n] += v[i] / n;
    for (int k = 0; k < n; k++) {
        struct history_value *at = &f->at[k];
        struct epochs e;
        for (int i = 0; i < f->points; i++)
            off[i] = v[i * n + k] - own[i];
        epochs_of(&e, all, g, off);
        double noise = e.between / e.blocks, half = NAN;
        if (e.blocks > 1)
            half = sqrt(noise) * dist_t_quantile(0.975, e.blocks - 1);
        f->noise += noise / n;
        at->speed = e.level;
        at->lo = e.level - half;
        at->hi = e.level + half;
        epochs_free(&e);
    }
    free(off);
    free(own);
}

/* Times in weeks from their mean, so that the sum is 0. */
static double *weeks(const struct history *h)
{
    double *t = mem_calloc((size_t)h->campaigns, sizeof(*t)), mean = 0;

    for (int k = 0; k < h->campaigns; k++)
        mean += h->campaign[k]->begun / h->campaigns;
    for (int k = 0; k < h->campaigns; k++)
        t[k] = (h->campaign[k]->begun - mean) / week;
    return t;
}

/* Theil's slope is printed; the t test uses the least-squares slope. */
static void take_drift(struct history_figure *f, const struct history *h, const double *t)
{
    const int n = h->campaigns;
    double *level = mem_calloc((size_t)n, sizeof(*level)), squares = 0, mean = 0, rest = 0;

    for (int k = 0; k < n; k++) {
        level[k] = f->at[k].speed;
        mean += level[k] / n;
        squares += t[k] * t[k];
        f->slope += t[k] * level[k];
    }
    f->slope /= squares;
    for (int k = 0; k < n; k++)
        rest += pow(level[k] - mean - f->slope * t[k], 2);
    f->rest = rest / (n - 2);
    f->steps = 1 / squares;
    f->week = stats_slope(t, level, n, &f->week_lo, &f->week_hi);
    f->p_trend = isnan(f->week) ? NAN : stats_trend(level, n);
    free(level);
}

/* Sum of squares about the mean. */
static double sum_squares(const double *v, int n, double *mean)
{
    double sum = 0;

    *mean = 0;
    for (int i = 0; i < n; i++)
        *mean += v[i] / n;
    for (int i = 0; i < n; i++)
        sum += (v[i] - *mean) * (v[i] - *mean);
    return sum;
}

/* Find the split into two levels with the least variance.  Needs take_drift(). */
static void take_step(struct history_figure *f, int n)
{
    double *level = mem_calloc((size_t)n, sizeof(*level)), before, after;

    f->inside = NAN;
    for (int k = 0; k < n; k++)
        level[k] = f->at[k].speed;
    for (int k = HISTORY_SIDE; k <= n - HISTORY_SIDE; k++) {
        double var =
            (sum_squares(level, k, &before) + sum_squares(level + k, n - k, &after)) / (n - 2);
        if (f->inside <= var)
            continue;
        f->inside = var;
        f->since = k;
        f->step = after - before;
    }
    f->by_levels = f->inside < f->rest;
    free(level);
}

/* Turn speeds into shares of the baseline. */
static void rebase(struct history_figure *f, int n)
{
    double *others = mem_calloc((size_t)n, sizeof(*others));

    for (int k = 0; k < n - 1; k++)
        others[k] = f->at[k].speed;
    double mean;
    f->wobble = sum_squares(others, n - 1, &mean) / (n - 2);
    double middle = stats_median(others, n - 1);
    for (int k = 0; k < n - 1; k++)
        others[k] = f->at[k].value;
    f->baseline = stats_median(others, n - 1);
    for (int k = 0; k < n; k++) {
        f->at[k].speed = exp(f->at[k].speed - middle);
        f->at[k].lo = exp(f->at[k].lo - middle);
        f->at[k].hi = exp(f->at[k].hi - middle);
    }
    free(others);
}

static void add_figure(struct history *h, const struct figures *all, const struct figure *g,
                       const double *t)
{
    struct history_figure f = {.what = mem_strdup(g->what),
                               .rate = g->rate,
                               .tier = g->key.tier >= 0,
                               .points = g->points,
                               .at = mem_calloc((size_t)h->campaigns, sizeof(*f.at))};
    double *v = speeds(h, all, g);

    for (int k = 0; k < h->campaigns; k++)
        f.at[k].value = figures_median(all, g, column(h, k));
    take_levels(&f, h, all, g, v);
    take_drift(&f, h, t);
    take_step(&f, h->campaigns);
    rebase(&f, h->campaigns);
    MEM_PUSH(h->figure, h->figures) = f;
    free(v);
}

/* --- significance --- */

/* sure[figure]: stats_holm() on the p-values at this offset. */
static bool *sure_of(const struct history *h, size_t offset, double alpha)
{
    double *p = mem_calloc((size_t)h->figures + 1, sizeof(*p));
    bool *sure = mem_calloc((size_t)h->figures + 1, sizeof(*sure));

    for (int i = 0; i < h->figures; i++)
        memcpy(&p[i], (const char *)&h->figure[i] + offset, sizeof(*p));
    stats_holm(p, h->figures, alpha, sure);
    free(p);
    return sure;
}

static enum change change_of(bool sure, double log_change, double least)
{
    return !sure || fabs(log_change) <= least ? CHANGE_NONE
           : log_change < 0                   ? CHANGE_WORSE
                                              : CHANGE_BETTER;
}

static bool is_change(enum change c)
{
    return c == CHANGE_WORSE || c == CHANGE_BETTER;
}

/* True if campaigns that only rise or fall could be told from noise. */
static bool long_enough(const struct history *h)
{
    double *rising = mem_calloc((size_t)h->campaigns, sizeof(*rising));

    for (int k = 0; k < h->campaigns; k++)
        rising[k] = k;
    bool enough = stats_trend(rising, h->campaigns) <= HISTORY_ALPHA / h->figures;
    free(rising);
    return enough;
}

/* Moderate the variances between campaigns at this offset by those of the other figures; at least
 * the variance that a campaign's epochs show.  Returns their degrees of freedom. */
static double moderate(struct history *h, size_t offset)
{
    double *ratio = mem_calloc((size_t)h->figures + 1, sizeof(*ratio)), own = h->campaigns - 2,
           var0, df0;

    for (int i = 0; i < h->figures; i++) {
        memcpy(&ratio[i], (const char *)&h->figure[i] + offset, sizeof(*ratio));
        ratio[i] /= h->figure[i].noise > 0 ? h->figure[i].noise : 1;
    }
    stats_prior(ratio, h->figures, own, &var0, &df0);
    df0 = fmin(df0, own);
    for (int i = 0; i < h->figures; i++) {
        double noise = h->figure[i].noise > 0 ? h->figure[i].noise : 1,
               var = (df0 * var0 + own * ratio[i]) / (df0 + own) * noise;
        var = fmax(var, h->figure[i].noise > 0 ? noise : 0) + EPOCHS_FLOOR * EPOCHS_FLOOR;
        memcpy((char *)&h->figure[i] + offset, &var, sizeof(var));
    }
    free(ratio);
    return df0 + own;
}

static double p_of(double change, double var, double df)
{
    return df < HISTORY_DF ? NAN : 2 * dist_t_cdf(-fabs(change) / sqrt(var), df);
}

/* Set p-values from the variance between campaigns. */
static void test_figures(struct history *h)
{
    double df_now = moderate(h, offsetof(struct history_figure, wobble)),
           df_rest = moderate(h, offsetof(struct history_figure, rest)),
           df_inside = moderate(h, offsetof(struct history_figure, inside));
    const int splits = h->campaigns - 2 * HISTORY_SIDE + 1;
    /* Variance of the last campaign plus that of the median of the others, pi / 2n. */
    const double both = 1 + acos(-1) / 2 / (h->campaigns - 1);

    for (int i = 0; i < h->figures; i++) {
        struct history_figure *f = &h->figure[i];
        f->spread = sqrt(f->wobble);
        f->p_now = p_of(log(f->at[h->campaigns - 1].speed), f->wobble * both, df_now);
        f->p_step = NAN;
        if (f->since)
            f->p_step =
                fmin(1, splits * p_of(f->step,
                                      f->inside * (1. / f->since + 1. / (h->campaigns - f->since)),
                                      df_inside));
        f->p_slope = isnan(f->week) ? NAN : p_of(f->slope, f->rest * f->steps, df_rest);
    }
}

static void judge(struct history *h, double tolerance)
{
    test_figures(h);
    bool *now = sure_of(h, offsetof(struct history_figure, p_now), COMPARE_ALPHA),
         *slope = sure_of(h, offsetof(struct history_figure, p_slope), COMPARE_ALPHA),
         *trend = sure_of(h, offsetof(struct history_figure, p_trend), HISTORY_ALPHA),
         *step = sure_of(h, offsetof(struct history_figure, p_step), HISTORY_STEP);
    double least = log1p(tolerance), span = (last_of(h)->begun - h->campaign[0]->begun) / week;
    bool enough = long_enough(h);

    for (int i = 0; i < h->figures; i++) {
        struct history_figure *f = &h->figure[i];
        f->now = isnan(f->p_now) ? CHANGE_UNSURE
                                 : change_of(now[i], log(f->at[h->campaigns - 1].speed), least);
        f->drift = isnan(f->p_slope) || isnan(f->p_trend) || !enough
                       ? CHANGE_UNSURE
                       : change_of(slope[i] && trend[i], f->week * span, least);
        f->stepped = isnan(f->p_step) ? CHANGE_UNSURE : change_of(step[i], f->step, least);
        if (is_change(f->drift) && is_change(f->stepped))
            *(f->by_levels ? &f->drift : &f->stepped) = CHANGE_NONE;
    }
    free(step);
    free(now);
    free(slope);
    free(trend);
}

/* --- parts and the campaigns that list them --- */

/* Number, among all parts, of each row of each campaign's list. */
static int known_part(const struct history *h, const struct parts *list, int *const *id, int k,
                      const struct part_row *r)
{
    for (int j = k - 1; j >= 0; j--) {
        const struct part_row *same =
            compare_find_part(&list[j], h->campaign[j]->topo, r, h->campaign[k]->topo);
        if (same)
            return id[j][same - list[j].row];
    }
    return -1;
}

static void add_seen(struct history *h, const struct parts *list, int **id, int k)
{
    char speed[PART_SPEED];

    id[k] = mem_calloc((size_t)list[k].rows + 1, sizeof(int));
    for (int i = 0; i < list[k].rows; i++) {
        const struct part_row *r = &list[k].row[i];
        int at = known_part(h, list, id, k, r);
        if (at < 0) {
            at = h->parts;
            MEM_PUSH(h->part, h->parts) =
                (struct history_part){.speed = mem_calloc((size_t)h->campaigns, sizeof(char *))};
        }
        struct history_part *p = &h->part[at];
        id[k][i] = at;
        free(p->what);
        free(p->speed[k]);
        p->what = mem_strdup(r->name);
        p->kind = r->kind;
        p->speed[k] = mem_strdup(part_speed(r, speed));
    }
}

static const struct part_row *row_of(const struct parts *list, int *const *id, int k, int part)
{
    for (int i = 0; i < list[k].rows; i++)
        if (id[k][i] == part)
            return &list[k].row[i];
    return NULL;
}

/* True if the points show the part of the last campaign against the latest campaign that does not
 * list it. */
static bool is_shown(const struct history *h, const struct figures *all,
                     const struct history_part *p, const struct part_row *now)
{
    int k = h->campaigns - 1;

    while (k >= 0 && strcmp(p->speed[k], "-") != 0)
        k--;
    return k < 0 || compare_shows(
                        &(struct seen_part){all, now, last_of(h), 0, h->campaign[k], column(h, k)});
}

static void judge_part(struct history *h, const struct figures *all, const struct parts *list,
                       int *const *id, int part, double tolerance)
{
    struct history_part *p = &h->part[part];
    const int last = h->campaigns - 1;
    const struct part_row *now = row_of(list, id, last, part), *first = NULL;
    bool seen = false, gone = false;

    for (int k = 0; k <= last; k++) {
        p->returned |= gone && p->speed[k];
        seen |= p->speed[k] != NULL;
        gone |= seen && !p->speed[k];
        if (!p->speed[k])
            p->speed[k] = mem_strdup("-");
        first = first ? first : row_of(list, id, k, part);
    }
    bool from_start = row_of(list, id, 0, part) != NULL;
    p->is = !now                         ? PART_GONE
            : from_start && !p->returned ? compare_part(first, now, tolerance)
            : is_shown(h, all, p, now)   ? PART_NEW
                                         : PART_SAME;
}

static int make_parts(struct history *h, const struct figures *all, double tolerance,
                      struct err *err)
{
    struct parts *list = mem_calloc((size_t)h->campaigns, sizeof(*list));
    int **id = mem_calloc((size_t)h->campaigns, sizeof(*id)), rc = 0;

    for (int k = 0; k < h->campaigns && rc == 0; k++) {
        rc = compare_list_parts(&list[k], h->campaign[k], err);
        if (rc == 0)
            add_seen(h, list, id, k);
    }
    for (int i = 0; i < h->parts && rc == 0; i++)
        judge_part(h, all, list, id, i, tolerance);
    for (int k = 0; k < h->campaigns; k++) {
        parts_free(&list[k]);
        free(id[k]);
    }
    free(list);
    free(id);
    return rc;
}

/* --- whole history --- */

static void make_figures(struct history *h, const struct figures *all, double tolerance)
{
    double *t = weeks(h);

    for (int i = 0; i < all->figures; i++)
        add_figure(h, all, &all->figure[i], t);
    judge(h, tolerance);
    free(t);
}

int history_make(struct history *h, const struct campaign *c, int n, double tolerance,
                 struct err *err)
{
    struct figures all = {0};

    *h = (struct history){.campaign = mem_calloc((size_t)n, sizeof(*h->campaign)), .campaigns = n};
    for (int i = 0; i < n; i++)
        h->campaign[i] = &c[i];
    qsort(h->campaign, (size_t)n, sizeof(*h->campaign), by_begun);
    leave_unlike(h);
    if (h->campaigns >= HISTORY_LEAST) {
        match(&all, h);
        leave_strangers(h, &all);
    }
    int rc = refuse_few(h, err);
    if (rc == 0) {
        make_figures(h, &all, tolerance);
        versions_list(&h->versions, h->campaign, h->campaigns);
        rc = make_parts(h, &all, tolerance, err);
    }
    figures_free(&all);
    return rc;
}

void history_free(struct history *h)
{
    for (int i = 0; i < h->figures; i++) {
        free(h->figure[i].what);
        free(h->figure[i].at);
    }
    for (int i = 0; i < h->parts; i++) {
        for (int k = 0; k < h->campaigns; k++)
            free(h->part[i].speed[k]);
        free(h->part[i].speed);
        free(h->part[i].what);
    }
    for (int i = 0; i < h->lefts; i++)
        free(h->left[i].why);
    versions_free(&h->versions);
    free(h->campaign);
    free(h->left);
    free(h->figure);
    free(h->part);
    *h = (struct history){0};
}

/* --- summary --- */

struct tally {
    int worse, better, up, down, fell, rose, unsure, steady; /* figures */
    int fresh, again, gone, part_worse;                      /* parts */
    int versions;
};

static struct tally tally_of(const struct history *h)
{
    struct tally t = {0};

    for (int i = 0; i < h->figures; i++) {
        const struct history_figure *f = &h->figure[i];
        t.worse += f->now == CHANGE_WORSE;
        t.better += f->now == CHANGE_BETTER;
        t.down += f->drift == CHANGE_WORSE;
        t.up += f->drift == CHANGE_BETTER;
        t.fell += f->stepped == CHANGE_WORSE;
        t.rose += f->stepped == CHANGE_BETTER;
        t.unsure += f->now == CHANGE_UNSURE;
        t.steady += f->drift == CHANGE_UNSURE;
    }
    for (int i = 0; i < h->parts; i++) {
        const struct history_part *p = &h->part[i];
        t.fresh += p->is == PART_NEW && !p->returned;
        t.again += p->is == PART_NEW && p->returned;
        t.gone += p->is == PART_GONE;
        t.part_worse += p->is == PART_WORSE;
    }
    for (int i = 0; i < h->versions.rows; i++)
        for (int k = 1; k < h->campaigns; k++)
            t.versions += strcmp(h->versions.row[i].value[k], h->versions.row[i].value[k - 1]) != 0;
    return t;
}

int history_code(const struct history *h)
{
    const struct tally t = tally_of(h);

    return t.worse || t.down || t.fell || t.fresh || t.again || t.part_worse ? EXIT_BELOW
           : t.unsure == h->figures                                          ? EXIT_UNJUDGED
                                                                             : EXIT_GOOD;
}

static char *also(char *line, int n, const char *one, const char *what)
{
    return n ? mem_append(line, "; %d %s%s %s", n, one, units_s(n), what) : line;
}

char *history_line(const struct history *h)
{
    const struct tally t = tally_of(h);
    char *line = mem_printf("%d campaigns: %d of %d figures below the baseline, %d drift%s down",
                            h->campaigns, t.worse, h->figures, t.down, t.down == 1 ? "s" : "");

    if (t.better || t.up)
        line =
            mem_append(line, "; %d above it, %d drift%s up", t.better, t.up, t.up == 1 ? "s" : "");
    if (t.fell || t.rose)
        line = mem_append(line, "; %d stepped down, %d up", t.fell, t.rose);
    if (t.steady == h->figures)
        line = mem_append(line, "; too few campaigns to tell drift");
    line = also(line, t.fresh, "part", "new");
    line = also(line, t.again, "part", "there again");
    line = also(line, t.part_worse, "part", "worse");
    line = also(line, t.gone, "part", "gone");
    line = also(line, t.versions, "change", "of versions");
    return also(line, h->lefts, "campaign", "left out");
}
