/* SPDX-License-Identifier: BSD-3-Clause */
/* Findings that are not exceptions. */
#include "fit/fit_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"
#include "base/units.h"
#include "measure/plan.h"
#include "measure/taint.h"

enum { SAID_MAX = 32 };                    /* sentences of one kind */
static const double unstable_range = 0.15; /* 3 times the default half-width of 5 % */
static const double equal_tiers = 0.02;

/* --- contention: number of pairs of the same two racks at once, and the bandwidth of each --- */

struct crowd {
    int racks, round, epoch; /* racks: key of the two */
    int src, dst;
    double Bps;
};

static uint64_t turn_of(const void *crowd)
{
    return stats_2ints(&((const struct crowd *)crowd)->round);
}

static uint64_t racks_of(const void *crowd)
{
    return stats_2ints((int[]){((const struct crowd *)crowd)->racks, 0});
}

/* List the bandwidth points under load of one tier that join two racks (without racks: all points). */
static int crowds(const struct fit *f, int tier, struct crowd **out)
{
    int n = 0;

    *out = NULL;
    for (int i = 0; i < f->points->count; i++) {
        const struct point *p = &f->points->point[i];
        if (!fit_is_crowded(f, p) || fit_tier(f, p) != tier)
            continue;
        MEM_PUSH(*out, n) =
            (struct crowd){fit_rack_pair(f, p->src, p->dst), p->round, p->epoch, p->src, p->dst,
                           (double)p->bytes / p->sec.median};
    }
    stats_sort_keys(*out, n, sizeof(**out), turn_of);
    stats_sort_keys(*out, n, sizeof(**out), racks_of);
    return n;
}

static void say_contention(struct fit *f, int tier)
{
    const struct topo *t = &f->m->topo;
    double normal = f->baseline[tier].alone, share = 1;
    struct crowd *v;
    int n = crowds(f, tier, &v), racks = t->group[LEVEL_RACK].count, at = -1, flows = 0;

    for (int i = 0, j; i < n; i = j) { /* the round with most flows between two racks */
        double sum = 0;
        for (j = i; j < n && racks_of(&v[i]) == racks_of(&v[j]) && turn_of(&v[i]) == turn_of(&v[j]);
             j++)
            sum += v[j].Bps;
        if (j - i > flows || (j - i == flows && sum / (j - i) / normal < share)) {
            flows = j - i;
            share = sum / flows / normal;
            at = i;
        }
    }
    if (at >= 0 && flows > 1 && v[at].racks >= 0)
        matrix_find(
            f->m, "contention",
            "%s and %s: %d flows at once each have %.2f of the rate of one alone: a shared trunk, "
            "not a bad link",
            t->group[LEVEL_RACK].name[v[at].racks / racks],
            t->group[LEVEL_RACK].name[v[at].racks % racks], flows, share);
    else
        matrix_find(f->m, "contention",
                    "tier %s: pairs that run at once each have %.2f of the rate of one alone: they "
                    "share links, no link is bad",
                    f->m->tier[tier].rule.name, f->m->tier[tier].loaded);
    free(v);
}

/* --- unstable: the epochs of one observation differ more than their intervals allow --- */

/* Measurements of one operation, or of pairs of one tier alone. */
struct unrest {
    const char *name;
    int n, bad;
    const struct obs *worst;
};

static void note(struct unrest *u, const struct obs *o)
{
    if (obs_epochs(o) < 2)
        return;
    u->n++;
    u->bad += obs_range(o) > unstable_range;
    if (!u->worst || obs_range(o) > obs_range(u->worst))
        u->worst = o;
}

static bool unstable(const struct unrest *u)
{
    return u->bad > u->n / 10 && u->bad > 1;
}

/* "35 %"; above ten times the median a percentage is not useful. */
static const char *moved_text(char buf[UNITS_TEXT], double range)
{
    snprintf(buf, UNITS_TEXT, range > 10 ? "more than tenfold" : "%.0f %%", 100 * range);
    return buf;
}

/* Report one finding "busy" for all if most measurements of most operations moved: no single operation is the cause. */
static void say_busy(struct fit *f, const struct unrest *u, int count)
{
    struct unrest all = {0};
    int measured = 0, moved = 0;
    char size[UNITS_TEXT], by[UNITS_TEXT];

    for (int i = 0; i < count; i++) {
        if (!u[i].worst)
            continue;
        all.n += u[i].n;
        all.bad += u[i].bad;
        measured++;
        moved += 2 * u[i].bad > u[i].n;
        if (!all.worst || obs_range(u[i].worst) > obs_range(all.worst))
            all = (struct unrest){u[i].name, all.n, all.bad, u[i].worst};
    }
    if (moved < 2 || 2 * moved <= measured)
        return;
    matrix_find(f->m, "busy",
                "%d of %d measurements moved by more than %.0f %% between epochs, the worst by "
                "%s (%s at %s): most likely other work runs on %s",
                all.bad, all.n, 100 * unstable_range, moved_text(by, obs_range(all.worst)),
                all.name, units_bytes_text(size, all.worst->bytes),
                f->m->topo.hosts > 1 ? "these hosts or in their network"
                                     : "this machine, or it has fewer cores than ranks");
}

static void say_unstable(struct fit *f)
{
    struct unrest u[TIER_MAX + OP_COUNT] = {0};
    struct obs *obs;
    char size[UNITS_TEXT], by[UNITS_TEXT];
    int count = observe(&obs, f->points, false), tiers = f->m->tiers;

    for (int t = 0; t < tiers; t++)
        u[t].name = f->m->tier[t].rule.name;
    for (int op = 0; op < OP_COUNT; op++)
        u[tiers + op].name = op_name(op);
    for (int i = 0; i < f->count; i++)
        if (f->obs[i].alone && f->obs[i].tier >= 0)
            note(&u[f->obs[i].tier], &f->obs[i]);
    for (int i = 0; i < count; i++)
        note(&u[tiers + (int)obs[i].op], &obs[i]);
    say_busy(f, u, tiers + OP_COUNT);
    for (int i = 0; i < tiers + OP_COUNT; i++)
        if (unstable(&u[i]))
            matrix_find(f->m, "unstable",
                        "%s%s: %d of %d measurements moved by more than %.0f %% between epochs, "
                        "the worst by %s at %s",
                        i < tiers ? "tier " : "", u[i].name, u[i].bad, u[i].n, 100 * unstable_range,
                        moved_text(by, obs_range(u[i].worst)),
                        units_bytes_text(size, u[i].worst->bytes));
    free(obs);
}

/* --- bimodal: healthy pairs of one tier at two levels --- */

static void say_bimodal(struct fit *f, int tier)
{
    int n = 0, at = 0, count;
    const int *of = fit_of(f, tier, OP_PAIR_BW, &count);
    double *v = mem_calloc((size_t)count + 1, sizeof(*v)), widest = 0;

    for (int i = 0; i < count; i++) {
        const struct obs *o = &f->obs[of[i]];
        double usual = o->alone ? f->baseline[tier].alone : f->baseline[tier].parallel;
        if (f->baseline[tier].contended && !o->alone) /* caused by the fabric, not the pair */
            continue;
        if (fit_is_bandwidth(f, o) && o->sec > 0 && usual > 0 && fit_is_healthy(f, o))
            v[n++] = o->bytes / o->sec / usual / fit_declared(f, o->src, o->dst, tier);
    }
    stats_sort(v, n);
    for (int i = n / 5 + 1; i < n - n / 5; i++)
        if (v[i] / v[i - 1] - 1 > widest) {
            widest = v[i] / v[i - 1] - 1;
            at = i;
        }
    if (n >= 10 && widest > 0.15)
        matrix_find(
            f->m, "bimodal",
            "tier %s: %d pairs have about %.2f and %d about %.2f of its usual bandwidth, and no "
            "pair lies between",
            f->m->tier[tier].rule.name, at, stats_quantile(v, at, 0.5), n - at,
            stats_quantile(v + at, n - at, 0.5));
    free(v);
}

static void say_equal_tiers(struct fit *f)
{
    for (int a = 0; a + 1 < f->m->tiers; a++) {
        const struct tier *x = &f->m->tier[a], *y = &f->m->tier[a + 1];
        double ratio = matrix_rate(f->m, a, DIR_UNI) / matrix_rate(f->m, a + 1, DIR_UNI);
        if (fabs(ratio - 1) < equal_tiers &&
            fabs(curve_floor(&x->curve[DIR_ONEWAY]) / curve_floor(&y->curve[DIR_ONEWAY]) - 1) <
                equal_tiers)
            matrix_find(f->m, "tiers",
                        "tiers %s and %s measure the same (latency and bandwidth within %.0f %%)",
                        x->rule.name, y->rule.name, 100 * equal_tiers);
    }
}

static void say_unmeasured(struct fit *f)
{
    for (int t = 0; t < f->m->tiers; t++) {
        int points = 0;
        for (int d = 0; d < DIR_COUNT; d++)
            points += f->m->tier[t].curve[d].points;
        if (!points && f->m->tier[t].possible > 0)
            matrix_find(f->m, "unmeasured", "tier %s: no healthy pair was measured",
                        f->m->tier[t].rule.name);
    }
}

struct taint_mark {
    char *subject;
    const struct point *point;
};

static int by_subject(const void *a, const void *b)
{
    const struct taint_mark *x = a, *y = b;
    int order = strverscmp(x->subject, y->subject);

    return order ? order : x->point < y->point ? -1 : 1;
}

/* Report tainted points by the name of the GPU or port.  The first reason is used for all. */
static void say_tainted(struct fit *f)
{
    int n = 0, said = 0, rest = 0;
    struct taint_mark *mark = NULL;

    for (int i = 0; i < f->points->count; i++) {
        const struct point *p = &f->points->point[i];
        const char *subject;
        if (taint_is(p)) {
            int len = taint_subject(p, &subject);
            MEM_PUSH(mark, n) = (struct taint_mark){mem_printf("%.*s", len, subject), p};
        }
    }
    if (n)
        qsort(mark, (size_t)n, sizeof(*mark), by_subject);
    for (int i = 0, k; i < n; i = k) {
        for (k = i + 1; k < n && !strcmp(mark[k].subject, mark[i].subject); k++)
            ;
        if (said++ < SAID_MAX)
            matrix_find(f->m, "tainted", "%s while %d of %d points were measured: %s",
                        mark[i].subject, k - i, f->points->count, taint_words(mark[i].point));
        else
            rest += k - i;
    }
    if (rest)
        matrix_find(f->m, "tainted", "%d points of other endpoints and ports", rest);
    for (int i = 0; i < n; i++)
        free(mark[i].subject);
    free(mark);
}

struct user {
    int host, endpoint;
    const char *busid;
};

static int by_gpu(const void *a, const void *b)
{
    const struct user *x = a, *y = b;
    int order = strcmp(x->busid, y->busid);

    if (x->host != y->host)
        return x->host < y->host ? -1 : 1;
    return order ? order : x->endpoint < y->endpoint ? -1 : 1;
}

/* Report ranks that share a GPU: a trial, not a measurement. */
static void say_shared(struct fit *f)
{
    const struct topo *t = &f->m->topo;
    struct user *u = mem_calloc((size_t)t->endpoints + 1, sizeof(*u));
    int n = 0, said = 0;

    for (int e = 0; e < t->endpoints; e++)
        if (t->endpoint[e].kind == ENDPOINT_GPU && *t->endpoint[e].busid)
            u[n++] = (struct user){topo_at(t, e, LEVEL_HOST), e, t->endpoint[e].busid};
    qsort(u, (size_t)n, sizeof(*u), by_gpu);
    for (int i = 0, k; i < n && said < SAID_MAX; i = k) {
        for (k = i + 1; k < n && u[k].host == u[i].host && !strcmp(u[k].busid, u[i].busid); k++)
            ;
        if (k - i > 1 && ++said)
            matrix_find(f->m, "shared_gpu",
                        "%d ranks, %d to %d, share one GPU (%s of %s): not a fabric measurement",
                        k - i, u[i].endpoint, u[k - 1].endpoint, u[i].busid,
                        t->group[LEVEL_HOST].name[u[i].host]);
    }
    free(u);
}

/* Report slow pairs that do not fit groups of hosts, unless full uplinks or named slow parts explain them. */
static void say_contradictions(struct fit *f)
{
    bool crowd = false;

    for (int t = 0; t < f->m->tiers; t++)
        crowd |= f->baseline[t].uplinks;
    for (int i = 0; i < f->m->exceptions; i++)
        crowd |= f->m->exception[i].factor > 0 && f->m->exception[i].factor < 1;
    if (f->contradictions && !crowd)
        matrix_find(
            f->m, "racks",
            "pairs of hosts fall into fast and slow ones, but not into racks: %d slow pairs lie "
            "between hosts that fast pairs join",
            f->contradictions);
}

/* --- all of them --- */

void fit_findings(struct fit *f)
{
    say_contradictions(f);
    for (int t = 0; t < f->m->tiers; t++) {
        if (f->baseline[t].contended && !f->baseline[t].uplinks)
            say_contention(f, t);
        say_bimodal(f, t);
    }
    say_equal_tiers(f);
    say_unstable(f);
    say_unmeasured(f);
    say_tainted(f);
    say_shared(f);
}
