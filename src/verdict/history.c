/* SPDX-License-Identifier: BSD-3-Clause */
#include "verdict/history_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"

static const double week = 7 * 86400;

/* --- which campaigns --- */

static int by_begun(const void *x, const void *y)
{
    const struct campaign *a = *(const struct campaign *const *)x,
                          *b = *(const struct campaign *const *)y;
    int order = (a->begun > b->begun) - (a->begun < b->begun);

    return order ? order : strcmp(a->path, b->path);
}

/* Takes why over. */
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

/* The same by another name: "last" is a link to one of them. */
static bool same_campaign(const struct campaign *a, const struct campaign *b)
{
    const struct points *p = a->points, *q = b->points;

    return a->begun == b->begun && p->plan_crc == q->plan_crc && p->count == q->count && p->count &&
           p->point[0].sec.median == q->point[0].sec.median &&
           p->point[p->count - 1].sec.median == q->point[p->count - 1].sec.median;
}

/* Why it cannot be one of them; NULL: it can.  The caller frees. */
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

/* The last one first: its points and names are those that count. */
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

/* log of the speed of each point in each campaign, oldest first: v[point * campaigns + campaign]. */
static double *speeds(const struct history *h, const struct figures *f, const struct figure *g)
{
    double *v = mem_calloc((size_t)g->points * (size_t)h->campaigns, sizeof(*v));

    for (int i = 0; i < g->points; i++)
        for (int k = 0; k < h->campaigns; k++)
            v[i * h->campaigns + k] = -log(f->sec[(g->first + i) * h->campaigns + column(h, k)]);
    return v;
}

/* The median and its interval of v[n], which is sorted. */
static void median_of(double *v, int n, double *median, double *lo, double *hi)
{
    stats_sort(v, n);
    *median = stats_quantile(v, n, 0.5);
    stats_median_ci(v, n, lo, hi);
}

static double median_copy(const double *v, int n)
{
    double *copy = mem_dup(v, (size_t)n, sizeof(*v)), median = stats_median(copy, n);

    free(copy);
    return median;
}

/* How each campaign differs from the points' own means: means, as medians of few campaigns would bend a
 * slope. */
static void take_levels(struct history_figure *f, const struct history *h, const double *v)
{
    const int n = h->campaigns;
    double *off = mem_calloc((size_t)f->points, sizeof(*off)),
           *own = mem_calloc((size_t)f->points, sizeof(*own));

    for (int i = 0; i < f->points * n; i++)
        own[i / n] += v[i] / n;
    for (int k = 0; k < n; k++) {
        for (int i = 0; i < f->points; i++)
            off[i] = v[i * n + k] - own[i];
        median_of(off, f->points, &f->at[k].speed, &f->at[k].lo, &f->at[k].hi);
    }
    free(off);
    free(own);
}

/* Each point's last against its own median before: only whether, as one odd campaign bends that of few;
 * how much follows from the campaigns' levels. */
static void take_now(struct history_figure *f, const struct history *h, const double *v)
{
    const int n = h->campaigns;
    double *off = mem_calloc((size_t)f->points, sizeof(*off));

    for (int i = 0; i < f->points; i++)
        off[i] = v[i * n + n - 1] - median_copy(&v[i * n], n - 1);
    f->p_now = stats_signed_rank(off, f->points);
    free(off);
}

/* Times in weeks since the middle of all, so that their sum is 0. */
static double *weeks(const struct history *h)
{
    double *t = mem_calloc((size_t)h->campaigns, sizeof(*t)), mean = 0;

    for (int k = 0; k < h->campaigns; k++)
        mean += h->campaign[k]->begun / h->campaigns;
    for (int k = 0; k < h->campaigns; k++)
        t[k] = (h->campaign[k]->begun - mean) / week;
    return t;
}

static void take_drift(struct history_figure *f, const struct history *h, const double *v,
                       const double *t)
{
    const int n = h->campaigns;
    double *slope = mem_calloc((size_t)f->points, sizeof(*slope)),
           *level = mem_calloc((size_t)n, sizeof(*level));

    for (int i = 0; i < f->points; i++)
        for (int k = 0; k < n; k++)
            slope[i] += t[k] * v[i * n + k];
    for (int k = 0; k < n; k++)
        level[k] = f->at[k].speed;
    f->week = stats_slope(t, level, n, &f->week_lo, &f->week_hi);
    f->p_trend = isnan(f->week) ? NAN : stats_trend(level, n);
    f->p_points = isnan(f->week) ? NAN : stats_signed_rank(slope, f->points);
    free(slope);
    free(level);
}

/* Speeds become shares of the baseline. */
static void rebase(struct history_figure *f, int n)
{
    double *others = mem_calloc((size_t)n, sizeof(*others));

    for (int k = 0; k < n - 1; k++)
        others[k] = f->at[k].speed;
    double middle = stats_median(others, n - 1);
    f->spread = stats_spread(others, n - 1);
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
    take_levels(&f, h, v);
    take_now(&f, h, v);
    take_drift(&f, h, v, t);
    rebase(&f, h->campaigns);
    MEM_PUSH(h->figure, h->figures) = f;
    free(v);
}

/* --- what is more than noise --- */

/* sure[figure] of the p-values at this offset. */
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

/* Could even campaigns that only rise or fall be told from noise? */
static bool long_enough(const struct history *h)
{
    double *rising = mem_calloc((size_t)h->campaigns, sizeof(*rising));

    for (int k = 0; k < h->campaigns; k++)
        rising[k] = k;
    bool enough = stats_trend(rising, h->campaigns) <= HISTORY_ALPHA / h->figures;
    free(rising);
    return enough;
}

/* What the machine's figures waver by in the middle: the spread of few campaigns may be small by
 * chance. */
static double common_spread(const struct history *h)
{
    double *spread = mem_calloc((size_t)h->figures + 1, sizeof(*spread));

    for (int i = 0; i < h->figures; i++)
        spread[i] = h->figure[i].spread;
    double middle = h->figures ? stats_median(spread, h->figures) : 0;
    free(spread);
    return middle;
}

static void judge(struct history *h, double tolerance)
{
    /* Deviations, of the last campaign and of the median of the others, whose variance is pi / 2n. */
    const double beyond = 4 * sqrt(1 + acos(-1) / 2 / (h->campaigns - 1));
    bool *now = sure_of(h, offsetof(struct history_figure, p_now), COMPARE_ALPHA),
         *points = sure_of(h, offsetof(struct history_figure, p_points), COMPARE_ALPHA),
         *trend = sure_of(h, offsetof(struct history_figure, p_trend), HISTORY_ALPHA);
    double least = log1p(tolerance), span = (last_of(h)->begun - h->campaign[0]->begun) / week;
    double common = common_spread(h);
    bool enough = long_enough(h);

    for (int i = 0; i < h->figures; i++) {
        struct history_figure *f = &h->figure[i];
        const struct history_value *last = &f->at[h->campaigns - 1];
        double own = log(last->hi / last->lo) / 2 / 1.96;
        f->now = isnan(f->p_now)
                     ? CHANGE_UNSURE
                     : change_of(now[i], log(last->speed),
                                 fmax(least, beyond * hypot(fmax(f->spread, common), own)));
        f->drift = isnan(f->p_points) || isnan(f->p_trend) || !enough
                       ? CHANGE_UNSURE
                       : change_of(points[i] && trend[i], f->week * span, least);
    }
    free(now);
    free(points);
    free(trend);
}

/* --- all --- */

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
        rc = history_parts(h, tolerance, err);
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

/* --- in short --- */

struct tally {
    int worse, better, up, down, unsure, steady; /* figures */
    int fresh, again, gone, part_worse;          /* parts */
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

    return t.worse || t.down || t.fresh || t.again || t.part_worse ? EXIT_BELOW
           : t.unsure == h->figures                                ? EXIT_UNJUDGED
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
    if (t.steady == h->figures)
        line = mem_append(line, "; too few campaigns to tell drift");
    line = also(line, t.fresh, "part", "new");
    line = also(line, t.again, "part", "there again");
    line = also(line, t.part_worse, "part", "worse");
    line = also(line, t.gone, "part", "gone");
    line = also(line, t.versions, "change", "of versions");
    return also(line, h->lefts, "campaign", "left out");
}
