/* SPDX-License-Identifier: BSD-3-Clause */
#include "verdict/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/distribution.h"
#include "base/mem.h"
#include "base/stats.h"
#include "base/units.h"
#include "verdict/versions.h"

const char *const part_change_name[PART_CHANGES] = {"new", "gone", "worse", "better", "same"};

/* --- figures --- */

/* Judge the log of speed after / before of each point by epochs. */
static void take_epochs(struct epochs *e, const struct figures *all, const struct figure *g)
{
    double *ratio = mem_calloc((size_t)g->points, sizeof(double));

    for (int i = 0; i < g->points; i++) {
        const double *sec = &all->sec[(g->first + i) * 2];
        ratio[i] = log(sec[0] / sec[1]);
    }
    epochs_of(e, all, g, ratio);
    free(ratio);
}

static struct figure_change make_change(const struct epochs *e)
{
    double half = isnan(e->se) ? NAN : e->se * dist_t_quantile(0.975, e->df);

    return (struct figure_change){.ratio = exp(e->level),
                                  .lo = exp(e->level - half),
                                  .hi = exp(e->level + half),
                                  .p = e->p,
                                  .blocks = e->blocks};
}

/* True for members of "together", bandwidth of pairs over NICs.  A fabric that is slower as a whole
 * shows there; tiers inside domains would dilute the change. */
static bool is_member(const struct figures *all, int i)
{
    bool nic = false;

    for (int k = 0; k < all->figures; k++)
        nic |= all->figure[k].key.op == OP_PAIR_BW && all->figure[k].nic;
    return all->figure[i].key.op == OP_PAIR_BW && all->figure[i].nic == nic;
}

static void join_tiers(struct epochs *e, const struct figures *all)
{
    const struct epochs **part = mem_calloc((size_t)all->figures + 1, sizeof(*part));
    int parts = 0;

    for (int i = 0; i < all->figures; i++)
        if (is_member(all, i))
            part[parts++] = &e[i];
    if (parts)
        epochs_join(&e[all->figures], part, parts);
    else
        e[all->figures] = (struct epochs){.level = NAN, .between = NAN, .within = NAN};
    free(part);
}

static void make_figures(struct compare *c, const struct figures *all)
{
    const int n = all->figures;
    struct epochs *e = mem_calloc((size_t)n + 1, sizeof(*e));

    for (int i = 0; i < n; i++)
        take_epochs(&e[i], all, &all->figure[i]);
    join_tiers(e, all);
    epochs_judge(e, n + 1);
    c->together = make_change(&e[n]);
    for (int i = 0; i < n; i++) {
        const struct figure *g = &all->figure[i];
        struct figure_change *f = &MEM_PUSH(c->figure, c->figures);
        *f = make_change(&e[i]);
        f->what = mem_strdup(g->what);
        f->before = figures_median(all, g, 0);
        f->after = figures_median(all, g, 1);
        f->points = g->points;
        f->rate = g->rate;
        f->tier = g->key.tier >= 0;
        f->member = is_member(all, i);
    }
    for (int i = 0; i <= n; i++)
        epochs_free(&e[i]);
    free(e);
}

static enum change change_of(const struct figure_change *f, bool sure, double tolerance)
{
    return isnan(f->p)                                       ? CHANGE_UNSURE
           : !sure || fabs(log(f->ratio)) < log1p(tolerance) ? CHANGE_NONE
           : f->ratio < 1                                    ? CHANGE_WORSE
                                                             : CHANGE_BETTER;
}

/* Mark the figures significant in Holm's test at this level, among all or among the members of
 * together. */
static void add_sure(const struct compare *c, bool members, double alpha, bool *sure)
{
    double *p = mem_calloc((size_t)c->figures + 1, sizeof(*p));
    bool *these = mem_calloc((size_t)c->figures + 1, sizeof(*these));

    for (int i = 0; i < c->figures; i++)
        p[i] = members && !c->figure[i].member ? NAN : c->figure[i].p;
    stats_holm(p, c->figures, alpha, these);
    for (int i = 0; i < c->figures; i++)
        sure[i] |= these[i];
    free(these);
    free(p);
}

/* A test that rejects passes its level on: once all tiers together have changed, the same
 * COMPARE_TOGETHER finds the tiers (gatekeeping, Bretz et al. 2009).  False alarms stay below
 * COMPARE_ALPHA. */
static void judge_figures(struct compare *c, double tolerance)
{
    bool *sure = mem_calloc((size_t)c->figures + 1, sizeof(*sure)),
         together = c->together.p <= COMPARE_TOGETHER;

    add_sure(c, false, COMPARE_ALPHA - COMPARE_TOGETHER, sure);
    if (together)
        add_sure(c, true, COMPARE_TOGETHER, sure);
    for (int i = 0; i < c->figures; i++)
        c->figure[i].is = change_of(&c->figure[i], sure[i], tolerance);
    c->together.is = change_of(&c->together, together, tolerance);
    free(sure);
}

/* --- evidence for a part in the points of both campaigns --- */

/* Loss of the part in one point: log of the rate, log of slow messages' rate, or s of latency. */
static double loss_of(const struct part_row *r, const struct point *a, const struct point *b)
{
    return r->state == STATE_LATE      ? b->sec.median - a->sec.median
           : r->state == STATE_SAMPLES ? point_tail_log(b) - point_tail_log(a)
                                       : log(b->sec.median / a->sec.median);
}

/* Loss in a mean over points that the campaign naming the part predicts. */
static double said_loss(const struct part_row *r)
{
    double share = r->state == STATE_SAMPLES                            ? COMPARE_CAUGHT
                   : r->state == STATE_INTERMITTENT && !isnan(r->share) ? r->share
                                                                        : 1;

    return r->state == STATE_LATE ? r->alpha_add : -share * log(r->factor);
}

/* True if a mean over points can show the part.  Only few points are of small or large sizes, or of
 * turns in which many NICs send. */
static bool is_judged(const struct part_row *r)
{
    return r->exception >= 0 && r->state != STATE_SMALL && r->state != STATE_LARGE &&
           r->state != STATE_LOST_UPLINKS && r->state != STATE_DEAD && r->state != STATE_WRONG;
}

/* True for points that would show the part. */
static bool would_show(const struct part_row *r, const struct point *x)
{
    enum op op = r->state == STATE_LATE        ? OP_PAIR_LATENCY
                 : r->state == STATE_BOTH_WAYS ? OP_PAIR_BIBW
                                               : OP_PAIR_BW;

    return x->op == op && (r->state != STATE_LOADED || x->flows > 1);
}

/* Loss of the points of a figure that cross the part, relative to the median of the others. */
static double figure_loss(const struct seen_part *s, const struct figure *g, int *points)
{
    const int n = s->all->campaigns;
    const struct matrix *m = s->by->matrix;
    const struct exception *e = &m->exception[s->row->exception];
    double *rest = mem_calloc((size_t)g->points + 1, sizeof(*rest)), sum = 0;
    int own = 0, others = 0;

    for (int i = g->first; i < g->first + g->points; i++) {
        const struct point *with = &s->by->points->point[s->all->of[i * n + s->with]],
                           *without = &s->than->points->point[s->all->of[i * n + s->without]];
        double loss = would_show(s->row, with) ? loss_of(s->row, without, with) : NAN;
        if (isnan(loss))
            continue;
        int tier = topo_tier_by(&m->topo, with->src, with->dst, stage_by_nic(with->stage));
        if (matrix_crosses(m, e, with->src, with->dst, tier)) {
            sum += loss;
            own++;
        } else {
            rest[others++] = loss;
        }
    }
    double usual = others ? stats_middle(rest, others) : 0;
    free(rest);
    *points = own;
    return own ? sum / own - usual : 0;
}

bool compare_shows(const struct seen_part *s)
{
    double sum = 0;
    int points = 0;

    for (int i = 0, n; is_judged(s->row) && i < s->all->figures; i++)
        if (s->all->figure[i].key.tier >= 0) {
            double loss = figure_loss(s, &s->all->figure[i], &n);
            sum += loss * n;
            points += n;
        }
    return !points || !(sum < points * COMPARE_SHOWN * said_loss(s->row));
}

/* --- parts --- */

/* Rank of a state, higher is worse; equal ranks are ordered by speed left or latency added. */
static int state_rank(const struct part_row *r)
{
    static const int rank[STATE_COUNT] = {
        [STATE_LATE] = 1, [STATE_SLOW] = 3, [STATE_DEAD] = 4, [STATE_WRONG] = 4};
    enum { AT_TIMES = 2 }; /* slow under some condition only */

    return rank[r->state] ? rank[r->state] : AT_TIMES;
}

/* Mean speed relative to its tier; 1: unknown. */
static double left_of(const struct part_row *r)
{
    double factor = isnan(r->factor) ? 1 : r->factor;

    return isnan(r->share) ? factor : part_factor(STATE_INTERMITTENT, factor, r->share);
}

/* Shares of few blocks of time vary, so only a factor of 1.5 is a change. */
static enum part_change_kind by_loss(double before, double after)
{
    static const double more = 1.5;

    return after > more * before ? PART_WORSE : before > more * after ? PART_BETTER : PART_SAME;
}

enum part_change_kind compare_part(const struct part_row *a, const struct part_row *b,
                                   double tolerance)
{
    double change = b->factor - a->factor;

    if (state_rank(a) != state_rank(b))
        return state_rank(a) < state_rank(b) ? PART_WORSE : PART_BETTER;
    if (a->state == STATE_LATE)
        return by_loss(a->alpha_add, b->alpha_add);
    if (a->state != STATE_SLOW && a->state != STATE_DEAD && a->state != STATE_WRONG)
        return by_loss(1 - left_of(a), 1 - left_of(b));
    if (a->state != STATE_SLOW || b->hi >= a->lo) /* no change unless an interval is known */
        change = fmax(change, -tolerance);
    if (a->state != STATE_SLOW || b->lo <= a->hi)
        change = fmin(change, tolerance);
    return change < -tolerance ? PART_WORSE : change > tolerance ? PART_BETTER : PART_SAME;
}

static double share_of(const struct part_row *r)
{
    return isnan(r->factor) ? 1 : r->factor;
}

/* shown: result of compare_shows() for a part that only one campaign names. */
static void add_part(struct compare *c, const struct part_row *a, const struct part_row *b,
                     bool shown, double tolerance)
{
    const struct part_row *one = b ? b : a;
    char speed[PART_SPEED];

    MEM_PUSH(c->part, c->parts) =
        (struct part_change){.what = mem_strdup(one->name),
                             .kind = one->kind,
                             .before = a ? share_of(a) : 1,
                             .after = b ? share_of(b) : 1,
                             .before_text = mem_strdup(a ? part_words(a, speed) : "-"),
                             .after_text = mem_strdup(b ? part_words(b, speed) : "-"),
                             .is = a && b   ? compare_part(a, b, tolerance)
                                   : !shown ? PART_SAME
                                   : b      ? PART_NEW
                                            : PART_GONE};
}

/* The endpoints identify a dead NIC, because a NIC that dies takes its endpoint along and is no
 * longer listed as a NIC. */
static bool same_endpoints(const struct topo *t, const struct part_row *x, const struct topo *u,
                           const struct part_row *y)
{
    bool same = x->places && x->places == y->places;

    for (int i = 0; same && i < x->places; i++) {
        int a = x->place[i].endpoint, b = y->place[i].endpoint;
        same = a >= 0 && b >= 0 && t->endpoint[a].local == u->endpoint[b].local &&
               !strcmp(t->host[topo_at(t, a, LEVEL_HOST)].name,
                       u->host[topo_at(u, b, LEVEL_HOST)].name);
    }
    return same;
}

const struct part_row *compare_find_part(const struct parts *in, const struct topo *t,
                                         const struct part_row *part, const struct topo *of)
{
    const struct part_row *near = NULL;

    for (const struct part_row *r = in->row; in->rows && r < in->row + in->rows; r++) {
        if (!strcmp(r->name, part->name))
            return r;
        if (!near && same_endpoints(t, r, of, part))
            near = r;
    }
    return near;
}

static int compare_parts(struct compare *c, const struct campaign *both, const struct figures *all,
                         double tolerance, struct err *err)
{
    const struct campaign *a = &both[0], *b = &both[1];
    struct parts before = {0}, after = {0};
    int rc = compare_list_parts(&before, a, err);

    if (rc == 0)
        rc = compare_list_parts(&after, b, err);
    for (int i = 0; rc == 0 && i < after.rows; i++) {
        const struct part_row *r = &after.row[i],
                              *was = compare_find_part(&before, a->topo, r, b->topo);
        bool shown = !was && compare_shows(&(struct seen_part){all, r, b, 1, a, 0});
        add_part(c, was, r, shown, tolerance);
    }
    for (int i = 0; rc == 0 && i < before.rows; i++) {
        const struct part_row *r = &before.row[i];
        if (!compare_find_part(&after, b->topo, r, a->topo))
            add_part(c, r, NULL, compare_shows(&(struct seen_part){all, r, a, 0, b, 1}), tolerance);
    }
    parts_free(&before);
    parts_free(&after);
    return rc;
}

/* --- whole comparison --- */

static void compare_versions(struct compare *c, const struct campaign *a, const struct campaign *b)
{
    const struct campaign *const both[] = {a, b};
    struct versions v;

    versions_list(&v, both, 2);
    for (int i = 0; i < v.rows; i++)
        if (strcmp(v.row[i].value[0], v.row[i].value[1]) != 0)
            MEM_PUSH(c->version, c->versions) =
                (struct version_change){mem_strdup(v.row[i].what), mem_strdup(v.row[i].value[0]),
                                        mem_strdup(v.row[i].value[1])};
    versions_free(&v);
}

int compare_campaigns(struct compare *c, const struct campaign *a, const struct campaign *b,
                      double tolerance, struct err *err)
{
    const struct campaign both[] = {*a, *b};
    char *unlike = figures_unlike(a, b);
    struct figures all;

    *c = (struct compare){0};
    if (unlike) {
        err_data(err, "%s %s: they cannot be compared", a->path, unlike);
        free(unlike);
        return -1;
    }
    figures_match(&all, both, 2);
    make_figures(c, &all);
    c->matched = all.matched[1];
    c->unmatched = all.more[1];
    int rc = 0;
    if (!c->matched)
        rc = err_data(err, "%s and %s have no point in common: other hosts, or another plan",
                      a->path, b->path);
    judge_figures(c, tolerance);
    compare_versions(c, a, b);
    if (rc == 0)
        rc = compare_parts(c, both, &all, tolerance, err);
    figures_free(&all);
    return rc;
}

void compare_free(struct compare *c)
{
    for (int i = 0; i < c->figures; i++)
        free(c->figure[i].what);
    for (int i = 0; i < c->parts; i++) {
        free(c->part[i].what);
        free(c->part[i].before_text);
        free(c->part[i].after_text);
    }
    for (int i = 0; i < c->versions; i++) {
        free(c->version[i].what);
        free(c->version[i].before);
        free(c->version[i].after);
    }
    free(c->figure);
    free(c->part);
    free(c->version);
    *c = (struct compare){0};
}

static int count_figures(const struct compare *c, enum change is)
{
    int n = 0;

    for (int i = 0; i < c->figures; i++)
        n += c->figure[i].is == is;
    return n;
}

static int count_parts(const struct compare *c, enum part_change_kind is)
{
    int n = 0;

    for (int i = 0; i < c->parts; i++)
        n += c->part[i].is == is;
    return n;
}

int compare_code(const struct compare *c)
{
    if (c->together.is == CHANGE_WORSE || count_figures(c, CHANGE_WORSE) ||
        count_parts(c, PART_NEW) || count_parts(c, PART_WORSE))
        return EXIT_BELOW;
    return count_figures(c, CHANGE_UNSURE) == c->figures ? EXIT_UNJUDGED : EXIT_GOOD;
}

char *compare_line(const struct compare *c)
{
    char *line = mem_printf("%d of %d figures worse, %d better", count_figures(c, CHANGE_WORSE),
                            c->figures, count_figures(c, CHANGE_BETTER));

    for (int k = 0; k < PART_SAME; k++)
        if (count_parts(c, (enum part_change_kind)k))
            line =
                mem_append(line, "; %d part%s %s", count_parts(c, (enum part_change_kind)k),
                           units_s(count_parts(c, (enum part_change_kind)k)), part_change_name[k]);
    line = mem_append(line, "; %d point%s in both", c->matched, units_s(c->matched));
    int unsure = count_figures(c, CHANGE_UNSURE);
    return unsure ? mem_append(line, "; %d not judged: fewer than %d epochs in both", unsure,
                               EPOCHS_LEAST)
                  : line;
}
