/* SPDX-License-Identifier: BSD-3-Clause */
/* Exceptions of the cost matrix from the parts that the noise model names (noise/noise.h). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/stats.h"
#include "base/units.h"
#include "fit/fit_impl.h"

/* Factor that costs use.  STATE_LOADED counts as slow, because collectives always run under load; STATE_SAMPLES
 * counts as intermittent, because messages are slow for a share of the time. */
static double price_factor(const struct found *x)
{
    enum part_state as = x->state == STATE_LOADED    ? STATE_SLOW
                         : x->state == STATE_SAMPLES ? STATE_INTERMITTENT
                                                     : x->state;

    return part_factor(as, exp(x->effect), x->share);
}

static const char *tier_text(const struct matrix *m, int tier)
{
    return tier >= 0 ? m->tier[tier].rule.name : "every tier that crosses NICs";
}

/* The looks behind an exception, in words. */
static char *evidence_text(const struct matrix *m, const struct exception *e, const struct found *x)
{
    static const char *const when[STATE_COUNT] = {
        [STATE_INTERMITTENT] = " in a part of the time",
        [STATE_LOADED] = " beside other traffic",
        [STATE_BOTH_WAYS] = " while both directions carry data",
        [STATE_SMALL] = " at small sizes",
        [STATE_LARGE] = " at large sizes",
        [STATE_SAMPLES] = " in a part of the messages",
        [STATE_LOST_UPLINKS] = " while many of its NICs send at once"};
    char alone[64] = "", add[UNITS_TEXT], usual[UNITS_TEXT];

    if (e->state == STATE_DEAD)
        return mem_printf("no answer in %d of %d measurements", e->evidence, x->looks);
    if (e->state == STATE_LATE)
        return mem_printf("%d measurements in %d block%s of time answer %s later than the %s of %s",
                          x->looks, x->blocks, units_s(x->blocks),
                          units_seconds_text(add, e->alpha_add),
                          units_seconds_text(usual, x->usual_s), tier_text(m, e->tier));
    if (x->alone)
        snprintf(alone, sizeof(alone), ", %d of them alone%s", x->alone,
                 e->state == STATE_SLOW ? " (no contention)" : "");
    return mem_printf(
        "%d measurements with %d partner%s in %d block%s of time%s: %.0f %% of normal over %s%s",
        x->looks, x->partners, units_s(x->partners), x->blocks, units_s(x->blocks), alone,
        100 * exp(x->effect), tier_text(m, e->tier), when[e->state] ? when[e->state] : "");
}

/* --- looks of a part --- */

static const double same_factor = 0.1;  /* smaller differences of factors have one cause */
static const double least_loss = 0.035; /* smallest loss by which a tier shows the part */
static const double sure = 3;           /* standard errors by which two tiers differ */
static const double as_deep = 0.7;      /* share of an effect at which a slow end explains it */
enum { TIER_LOOKS = 2 };                /* looks needed for the factor of a tier */

static bool passes(const struct fit *f, const struct found *x, const struct look *l)
{
    const struct exception e = {.part = x->part, .side = x->side, .a = x->a, .b = x->b};

    return matrix_passes(f->m, &e, l->src, l->dst);
}

/* True if another named endpoint or group is on the path. */
static bool passes_another(const struct fit *f, const struct found *x, const struct look *l)
{
    for (int i = 0; i < f->noise.founds; i++) {
        const struct found *o = &f->noise.found[i];
        bool shows = o->state != STATE_LATE && !(o->state == STATE_LOST_UPLINKS && l->alone);
        if (o != x && !part_is_two(o->part) && shows && passes(f, o, l))
            return true;
    }
    return false;
}

/* Effect of a part in one tier. */
struct tier_effect {
    double effect, sd; /* log of the factor; NAN: too few looks */
};

/* Write the residuals of the part's looks in a tier, alone or under load, into v. */
static int residuals(const struct fit *f, const struct found *x, int tier, bool alone, double *v,
                     double *sigma)
{
    int n = 0;

    for (int i = 0; i < f->looks; i++) {
        const struct look *l = &f->look[i];
        if (l->kind != LOOK_RATE || l->tier != tier || l->alone != alone || !isfinite(l->y) ||
            !passes(f, x, l) || passes_another(f, x, l))
            continue;
        const struct usual *u = fit_usual(f, l->kind, l->tier, l->alone);
        if (u) {
            *sigma = fmax(*sigma, u->sigma);
            v[n++] = l->y - u->y;
        }
    }
    return n;
}

/* Effect in one tier.  Pairs that share a trunk at the same time are not evidence about their ends, and a few pairs
 * under load are weak evidence. */
static struct tier_effect effect_of(const struct fit *f, const struct found *x, int tier, double *v)
{
    double sigma = 0.01, crowd = 0.01;
    int n = residuals(f, x, tier, true, v, &sigma), more = 0;

    if (!f->baseline[tier].contended || n < TIER_LOOKS)
        more = residuals(f, x, tier, false, v + n, &crowd);
    if (more > n) {
        n += more;
        sigma = fmax(sigma, crowd);
    }
    /* Stray points are slow, so a single normal look is better evidence than a single slow look. */
    if (n < TIER_LOOKS && !(n && v[0] > log1p(-least_loss)))
        return (struct tier_effect){NAN, NAN};
    return n < 1 ? (struct tier_effect){NAN, NAN}
                 : (struct tier_effect){stats_middle(v, n), 1.2533 * sigma / sqrt(n)};
}

static void tier_effects(const struct fit *f, const struct found *x, struct tier_effect e[TIER_MAX])
{
    double *v = mem_calloc((size_t)f->looks + 1, sizeof(*v));

    for (int t = 0; t < f->m->tiers; t++)
        e[t] = f->m->tier[t].nic ? effect_of(f, x, t, v) : (struct tier_effect){NAN, NAN};
    free(v);
}

static bool differ(const struct tier_effect *a, const struct tier_effect *b)
{
    double most = fmax(a->effect, b->effect), least = fmin(a->effect, b->effect);

    return exp(least) < (1 - same_factor) * exp(most) &&
           most - least > sure * sqrt(a->sd * a->sd + b->sd * b->sd);
}

static bool any_differ(const struct tier_effect *e, int tiers)
{
    for (int a = 0; a < tiers; a++)
        for (int b = 0; b < a; b++)
            if (!isnan(e[a].effect) && !isnan(e[b].effect) && differ(&e[a], &e[b]))
                return true;
    return false;
}

/* True if a part at an end of the pair, named before, is slow enough to explain the effect. */
static bool end_explains(const struct matrix *m, const struct found *x, const struct look *l)
{
    for (int i = 0; i < m->exceptions; i++) {
        const struct exception *e = &m->exception[i];
        bool wider = !part_is_two(e->part) || (e->part == PART_RACK_PAIR && x->part == PART_PAIR);
        if (wider && (e->factor <= 0 || log(e->factor) <= as_deep * x->effect) &&
            matrix_crosses(m, e, l->src, l->dst, l->tier))
            return true;
    }
    return false;
}

/* True if a part at an end explains at least half of the looks between the two. */
static bool is_explained(const struct fit *f, const struct found *x)
{
    int looks = 0, explained = 0;

    for (int i = 0; i < f->looks && x->state != STATE_LATE; i++) {
        const struct look *l = &f->look[i];
        if (l->kind != LOOK_RATE || !passes(f, x, l))
            continue;
        looks++;
        explained += end_explains(f->m, x, l);
    }
    return looks && 2 * explained >= looks;
}

/* Added latency of a late part, s: the median over its looks of latency - usual latency; only looks alone if there
 * are enough. */
static double late_by(const struct fit *f, const struct found *x)
{
    double *v = mem_calloc((size_t)f->looks + 1, sizeof(*v)), add = NAN;

    for (int alone = 1; alone >= 0 && isnan(add); alone--) {
        int n = 0;
        for (int i = 0; i < f->looks; i++) {
            const struct look *l = &f->look[i];
            const struct usual *u =
                l->kind == LOOK_LATENCY && l->alone == alone && isfinite(l->y) && passes(f, x, l)
                    ? fit_usual(f, l->kind, l->tier, l->alone)
                    : NULL;
            if (u)
                v[n++] = exp(-l->y) - exp(-u->y);
        }
        if (n >= TIER_LOOKS)
            add = stats_middle(v, n);
    }
    free(v);
    return add > 0 ? add : x->usual_s * expm1(-x->effect);
}

/* Count the looks at a dead part, the looks without an answer, and their partners. */
static void count_dead(const struct fit *f, struct found *x, struct exception *e)
{
    const struct matrix *m = f->m;
    bool *met = mem_calloc((size_t)m->topo.endpoints + 1, sizeof(*met));

    for (int i = 0; i < f->looks; i++) {
        const struct look *l = &f->look[i];
        int other = part_at(m, x->part, l->src) == x->a ? l->dst : l->src;
        if (!passes(f, x, l))
            continue;
        x->looks++;
        if (isfinite(l->y))
            continue;
        e->evidence++;
        e->alone += l->alone;
        e->partners += !met[other];
        met[other] = true;
    }
    free(met);
}

/* Standard error of the effect from the scatter of its looks, for effects without a standard error in the noise
 * model. */
static double scatter_of(const struct fit *f, const struct found *x)
{
    double *v = mem_calloc((size_t)f->looks + 1, sizeof(*v)), sigma = 0, sd = 0;
    int n = 0;

    for (int t = 0; t < f->m->tiers; t++)
        for (int alone = 0; alone < 2 && (x->tier < 0 ? f->m->tier[t].nic : t == x->tier); alone++)
            n += residuals(f, x, t, alone, v + n, &sigma);
    if (n)
        sd = 1.2533 * 1.4826 * stats_mad(v, n, stats_median(v, n)) / sqrt(n);
    free(v);
    return sd;
}

static void add(struct fit *f, struct found *x)
{
    struct exception e = {.part = x->part,
                          .side = x->side,
                          .a = x->a,
                          .b = x->b,
                          .tier = x->tier,
                          .state = x->state,
                          .factor = price_factor(x),
                          .evidence = x->looks,
                          .alone = x->alone,
                          .partners = x->partners};

    if (x->state == STATE_LATE) {
        e.alpha_add = late_by(f, x);
        if (x->part == PART_PAIR)
            e.tier = topo_tier_by(&f->m->topo, x->a, x->b, f->by_nic);
    } else if (x->state == STATE_DEAD) {
        count_dead(f, x, &e);
    } else {
        double sd = isfinite(x->sd) ? x->sd : scatter_of(f, x);
        e.lo = exp(x->effect - STATS_Z95 * sd);
        e.hi = fmin(1, exp(x->effect + STATS_Z95 * sd));
        e.depth = x->state == STATE_SLOW ? 0 : exp(x->effect);
        e.share = x->state == STATE_SLOW ? 0 : x->share;
    }
    e.why = evidence_text(f->m, &e, x);
    MEM_PUSH(f->m->exception, f->m->exceptions) = e;
}

/* Order exceptions by severity, worst first. */
static int by_place(const void *a, const void *b)
{
    const struct exception *x = a, *y = b;

    return stats_order(
        (double[]){-part_severity(x->state), x->part, x->a, x->b, x->tier, x->side, x->state},
        (double[]){-part_severity(y->state), y->part, y->a, y->b, y->tier, y->side, y->state}, 7);
}

/* Add one exception, or one per tier in which the part is slow: a NIC that is slower than a trunk has another factor
 * in each tier. */
static void add_by_tiers(struct fit *f, struct found *x)
{
    struct tier_effect e[TIER_MAX];
    bool nics = x->tier < 0 || f->m->tier[x->tier].nic;

    if (part_is_two(x->part) && is_explained(f, x))
        return;
    if (x->state == STATE_SLOW && !part_is_two(x->part) && nics)
        tier_effects(f, x, e);
    if (x->state != STATE_SLOW || part_is_two(x->part) || !nics || !any_differ(e, f->m->tiers)) {
        add(f, x);
        return;
    }
    for (int t = 0; t < f->m->tiers; t++) {
        struct found one = *x;
        one.tier = t;
        one.effect = e[t].effect;
        if (e[t].effect < log1p(-least_loss))
            add(f, &one);
    }
}

/* --- groups of which all endpoints are slow --- */

/* True if both slow endpoints are in one group, with the same tier, direction and factor. */
static bool is_sibling(const struct fit *f, const struct exception *x, const struct exception *y,
                       enum level level)
{
    return y->part == PART_ENDPOINT && y->state == x->state && y->tier == x->tier &&
           y->side == x->side && fit_at(f, y->a, level) == fit_at(f, x->a, level) &&
           fabs(y->factor - x->factor) <= same_factor * fmax(x->factor, y->factor);
}

/* Merge the siblings of exception k into exception k, which becomes their group. */
static void fold(struct fit *f, int k, enum part part, enum level level)
{
    struct matrix *m = f->m;
    struct exception one = m->exception[k];
    int kept = k, n = 0;

    one.evidence = one.alone = one.partners = 0;
    for (int i = k; i < m->exceptions; i++) {
        struct exception *y = &m->exception[i];
        if (!is_sibling(f, &m->exception[k], y, level) && i != k) {
            m->exception[kept++] = *y;
            continue;
        }
        one.evidence += y->evidence;
        one.alone += y->alone;
        one.partners = y->partners > one.partners ? y->partners : one.partners;
        one.lo = fmin(one.lo, y->lo);
        one.hi = fmax(one.hi, y->hi);
        n++;
        free(y->why);
        if (i == k)
            kept++;
    }
    m->exceptions = kept;
    one.part = part;
    one.a = fit_at(f, one.a, level);
    one.why = mem_printf("each of its %d endpoints, in %d measurements: %.0f %% of normal over %s",
                         n, one.evidence, 100 * one.factor, tier_text(m, one.tier));
    m->exception[k] = one;
}

/* Name a group as the part if all its endpoints are named; smallest groups first. */
static void merge_groups(struct fit *f)
{
    static const struct {
        enum part part;
        enum level level;
        int least;
    } kind[] = {{PART_HOST, LEVEL_HOST, 2}, {PART_LEAF, LEVEL_LEAF, 3}, {PART_RACK, LEVEL_RACK, 3}};
    struct matrix *m = f->m;

    for (size_t g = 0; g < sizeof(kind) / sizeof(*kind); g++)
        for (int k = 0; k < m->exceptions; k++) {
            const struct exception *x = &m->exception[k];
            int found = 0, all = 0;
            if (x->part != PART_ENDPOINT || x->state != STATE_SLOW ||
                fit_at(f, x->a, kind[g].level) < 0)
                continue;
            for (int i = k; i < m->exceptions; i++)
                found += is_sibling(f, x, &m->exception[i], kind[g].level);
            for (int i = 0; i < m->topo.endpoints && found >= kind[g].least; i++)
                all += fit_at(f, i, kind[g].level) == fit_at(f, x->a, kind[g].level);
            if (found >= kind[g].least && found == all)
                fold(f, k, kind[g].part, kind[g].level);
        }
}

void fit_parts(struct fit *f)
{
    struct matrix *m = f->m;

    /* Parts before pairs: a pair is not reported if its ends explain the loss. */
    for (int two = 0; two < 2; two++)
        for (int i = 0; i < f->noise.founds; i++)
            if (part_is_two(f->noise.found[i].part) == two)
                add_by_tiers(f, &f->noise.found[i]);
    merge_groups(f);
    if (m->exceptions)
        qsort(m->exception, (size_t)m->exceptions, sizeof(*m->exception), by_place);
}
