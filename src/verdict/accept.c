/* SPDX-License-Identifier: BSD-3-Clause */
#include "verdict/accept.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/distribution.h"
#include "base/mem.h"
#include "base/units.h"
#include "matrix/reference.h"
#include "verdict/declared.h"
#include "verdict/epochs.h"

const char *const accept_name[ACCEPT_IS_COUNT] = {"PASS", "WARN", "FAIL", "UNKNOWN"};

/* --- one row --- */

/* A limit kept by the value, with an interval that exceeds it by less than this share, is no reason
 * to measure longer. */
static const double near_enough = 0.01;
/* epochs; a line through fewer leaves too little to estimate noise from */
enum { LINE_LEAST = 5 };

/* A value with its interval. */
struct ranged {
    double value, lo, hi;
};

static struct ranged exactly(double value)
{
    return (struct ranged){value, value, value};
}

static struct accept_row *add_row(struct accept *a, const struct limit *l, char *what)
{
    struct accept_row *r = &MEM_PUSH(a->row, a->rows);

    *r = (struct accept_row){.limit = l,
                             .is = ACCEPT_UNKNOWN,
                             .part = -1,
                             .what = what,
                             .value = NAN,
                             .lo = NAN,
                             .hi = NAN,
                             .bound = l->of == LIMIT_ITSELF ? l->bound : NAN,
                             .of = mem_strdup(""),
                             .why = mem_strdup("")};
    return r;
}

static void explain(struct accept_row *r, char *why)
{
    free(r->why);
    r->why = why;
}

/* Mark the row as having nothing to judge, so that the verdict ignores it.  Takes ownership of
 * why. */
static void leave_out(struct accept_row *r, char *why)
{
    r->is = ACCEPT_UNKNOWN;
    r->left_out = true;
    explain(r, why);
}

static void unknown(struct accept *a, const struct limit *l, char *what, char *why)
{
    explain(add_row(a, l, what), why);
}

/* x < less, or x > less if the check is bounded from above. */
static bool below(const struct limit_check *c, double x, double bound)
{
    return c->least ? x < bound : x > bound;
}

static void judge(struct accept_row *r, struct ranged f)
{
    const struct limit_check *c = &limit_check[r->limit->check];
    double worst = c->least ? f.lo : f.hi, best = c->least ? f.hi : f.lo, warn = r->limit->warn;

    r->value = f.value;
    r->lo = f.lo;
    r->hi = f.hi;
    if (!isfinite(f.value) || !isfinite(r->bound))
        return;
    if (r->bound != r->limit->bound) /* bound is a share */
        warn *= r->bound / r->limit->bound;
    if (below(c, best, r->bound))
        r->is = ACCEPT_FAIL;
    else if (below(c, f.value, r->bound) ||
             below(c, worst, r->bound * (c->least ? 1 - near_enough : 1 + near_enough))) {
        r->is = ACCEPT_WARN;
        explain(r, mem_strdup("the limit lies inside of the interval: measure longer"));
    } else if (isfinite(warn) && below(c, f.value, warn)) {
        r->is = ACCEPT_WARN;
        explain(r, mem_strdup("close to the limit"));
    } else
        r->is = ACCEPT_PASS;
}

/* Set the bound to its share of `whole`, the figure of `name`. */
static void bound_of(struct accept_row *r, double whole, const char *name)
{
    enum limit_unit unit = limit_check[r->limit->check].unit;
    char share[LIMIT_TEXT], text[LIMIT_TEXT];

    r->bound = r->limit->bound * whole;
    free(r->of);
    r->of = mem_printf("%s of %s (%s)", limit_value_text(share, LIMIT_SHARE, r->limit->bound), name,
                       limit_value_text(text, unit, whole));
}

/* --- noise between epochs --- */

/* Noise of each figure between the epochs of the campaign. */
struct accept_noise {
    struct figures all;
    struct epochs *epochs;
};

/* Point of a figure with the size as sort key. */
struct sized {
    double amount;
    int at;
};

/* Amounts are positive, so their bits have their order. */
static uint64_t by_amount(const void *item)
{
    uint64_t bits;

    memcpy(&bits, &((const struct sized *)item)->amount, sizeof(bits));
    return bits;
}

/* Set y to the median log time of the points of one size minus their own, because epochs that ran
 * out of time lack sizes.  like: room for n values. */
static void center(double *y, double *like, const struct sized *size, int n, const double *sec)
{
    for (int k = 0; k < n; k++)
        like[k] = y[size[k].at] = log(sec[size[k].at]);
    double median = stats_middle(like, n);
    for (int k = 0; k < n; k++)
        y[size[k].at] = median - y[size[k].at];
}

static void take_noise(struct accept_noise *n, int i)
{
    const struct figure *g = &n->all.figure[i];
    double *y = mem_calloc((size_t)g->points + 1, sizeof(*y)),
           *like = mem_calloc((size_t)g->points + 1, sizeof(*like));
    struct sized *size = mem_calloc((size_t)g->points + 1, sizeof(*size));

    for (int k = 0; k < g->points; k++)
        size[k] = (struct sized){n->all.amount[g->first + k], k};
    stats_sort_keys(size, g->points, sizeof(*size), by_amount);
    for (int k = 0, j; k < g->points; k = j) {
        for (j = k + 1; j < g->points && size[j].amount == size[k].amount; j++)
            ;
        center(y, like, size + k, j - k, n->all.sec + g->first);
    }
    epochs_of(&n->epochs[i], &n->all, g, y);
    free(size);
    free(like);
    free(y);
}

static const struct property *property_of(const struct matrix *m, const struct tier *t,
                                          enum property_kind kind)
{
    for (int i = 0; i < m->properties; i++)
        if (m->property[i].kind == kind && &m->tier[m->property[i].tier] == t)
            return &m->property[i];
    return NULL;
}

/* Hashed flows make the rate under load depend on the partners, so it says nothing about how far a
 * pair alone varies. */
static void keep_alone(struct figures *f, struct figure *g, const struct matrix *m)
{
    int kept = g->first;

    if (g->key.tier < 0 || !property_of(m, &m->tier[g->key.tier], PROPERTY_COLLISIONS))
        return;
    for (int k = g->first; k < g->first + g->points; k++)
        if (f->cell[k].alone) {
            f->cell[kept] = f->cell[k];
            f->sec[kept] = f->sec[k];
            f->amount[kept++] = f->amount[k];
        }
    g->points = kept - g->first;
}

static void open_noise(struct accept_noise *n, const struct accept_input *in)
{
    const struct campaign c = {
        .matrix = in->measured, .topo = &in->measured->topo, .points = in->points};

    *n = (struct accept_noise){0};
    if (!in->points)
        return;
    figures_match(&n->all, &c, 1);
    n->epochs = mem_calloc((size_t)n->all.figures + 1, sizeof(*n->epochs));
    for (int i = 0; i < n->all.figures; i++) {
        keep_alone(&n->all, &n->all.figure[i], in->measured);
        take_noise(n, i);
    }
}

static void close_noise(struct accept_noise *n)
{
    for (int i = 0; i < n->all.figures; i++)
        epochs_free(&n->epochs[i]);
    free(n->epochs);
    if (n->all.matched)
        figures_free(&n->all);
}

/* tier -1: a collective of `ranks` ranks.  NULL: unknown. */
static const struct epochs *noise_of(const struct accept_input *in, enum op op, int tier, int ranks,
                                     bool large)
{
    const struct accept_noise *n = in->noise;

    for (int i = 0; i < n->all.figures; i++) {
        const struct figure_key *k = &n->all.figure[i].key;
        if (k->op == (int)op && k->tier == tier && k->large == large &&
            (tier >= 0 || k->shape.ranks == ranks))
            return &n->epochs[i];
    }
    return NULL;
}

/* Returns the variance of a figure between epochs; *df: its degrees of freedom.  Slow drift belongs
 * to the fabric, not to the noise of the mean, so with LINE_LEAST epochs the variance is taken
 * about a straight line in time. */
static double about_line(const struct epochs *e, double *df)
{
    double n = 0, t = 0, tt = 0, ty = 0, yy = 0;

    *df = e->blocks - 1;
    if (e->blocks < LINE_LEAST)
        return e->between;
    for (int i = 0; i < PLAN_EPOCHS; i++)
        if (!isnan(e->value[i])) {
            double y = e->value[i] - e->level;
            n++;
            t += i;
            tt += i * i;
            ty += i * y;
            yy += y * y;
        }
    *df = e->blocks - 2;
    return fmax(0, yy - ty * ty / (tt - t * t / n)) / *df;
}

/* Widen a 95 % interval to the noise of a mean of few epochs.  One epoch shows no noise:
 * unchanged. */
static struct ranged widen(struct ranged f, const struct epochs *e)
{
    if (!e || e->blocks < 2)
        return f;
    double df, s2 = about_line(e, &df), half = dist_t_quantile(0.975, df) * sqrt(s2 / e->blocks);
    return (struct ranged){f.value, fmin(f.lo, f.value * exp(-half)),
                           fmax(f.hi, f.value * exp(half))};
}

static bool is_busy(const struct matrix *m)
{
    int i = 0;

    while (i < m->findings && strcmp(m->finding[i].kind, "busy") != 0)
        i++;
    return i < m->findings;
}

/* --- checks of the whole campaign --- */

static void count_points(struct accept *a, const struct accept_input *in, const struct limit *l)
{
    const bool wrong = l->check == CHECK_WRONG_DATA;
    const struct points *p = in->points;
    int n = 0, looked = 0, parts = 0;

    for (int i = 0; i < in->measured->exceptions; i++)
        parts += in->measured->exception[i].wrong;
    if (!p) {
        n = parts;
        char *what = mem_strdup(limit_check[l->check].what);
        if (wrong && n)
            judge(add_row(a, l, what), exactly(n));
        else
            unknown(a, l, what, mem_strdup("a campaign's directory would tell: its points.tsv"));
        return;
    }
    for (int i = 0; i < p->count; i++) {
        looked += wrong ? p->point[i].checked : 1;
        n += wrong ? p->point[i].wrong : p->point[i].stop == STOP_FAILED;
    }
    if (wrong && !n) /* points are of another pass, but the matrix names the parts */
        n = parts;
    struct accept_row *r = add_row(a, l,
                                   mem_printf("%s, of %d%s", limit_check[l->check].what, looked,
                                              wrong ? " that were verified" : ""));
    judge(r, looked ? exactly(n) : exactly(NAN));
    if (!looked)
        explain(r, mem_strdup(wrong ? "no data was verified" : "there are no points"));
}

static void count_found(struct accept *a, const struct accept_input *in, const struct limit *l)
{
    const struct matrix *m = in->measured;
    const bool dead = l->check == CHECK_DEAD_PARTS;
    struct accept_row *r = add_row(a, l, mem_strdup(limit_check[l->check].what));
    int n = 0;

    for (int i = 0; dead && i < m->exceptions; i++)
        n += m->exception[i].factor == 0 && !m->exception[i].wrong;
    for (int i = 0; !dead && i < m->findings; i++)
        n += !strcmp(m->finding[i].kind, "tainted");
    judge(r, exactly(n));
    if (!dead && r->is == ACCEPT_PASS && is_busy(m)) { /* no fault of the machine */
        r->is = ACCEPT_WARN;
        explain(r, mem_strdup("figures moved between epochs: most likely other work runs here"));
    }
}

/* True if a row of the limits names this state. */
static bool has_own_row(const struct limits *all, enum part_state state)
{
    for (int i = 0; i < all->count; i++)
        if ((all->limit[i].check == CHECK_PART_SPEED || all->limit[i].check == CHECK_PART_SHARE) &&
            all->limit[i].state == (int)state)
            return true;
    return false;
}

/* The fabric as a whole is judged by the tiers' rows; dead parts and wrong data have checks of
 * their own. */
static bool applies(const struct limits *all, const struct limit *l, const struct part_row *p)
{
    bool share = p->state == STATE_INTERMITTENT || p->state == STATE_SAMPLES;

    if (p->exception < 0)
        return false;
    if (l->check == CHECK_PART_LATENCY)
        return p->alpha_add > 0;
    if (p->state == STATE_LATE || p->state == STATE_DEAD || p->state == STATE_WRONG)
        return false;
    if (l->state >= 0)
        return l->state == (int)p->state;
    return !has_own_row(all, p->state) && (l->check == CHECK_PART_SPEED || share);
}

/* On one host all parts share the disturbances, so noise of the tiers is noise of the parts. */
static struct ranged speed_of_part(const struct accept_input *in, const struct part_row *p)
{
    const struct accept_noise *n = in->noise;
    struct ranged f =
        isfinite(p->lo) ? (struct ranged){p->factor, p->lo, p->hi} : exactly(p->factor);

    for (int i = 0; in->measured->topo.hosts == 1 && i < n->all.figures; i++)
        if (n->all.figure[i].key.op == OP_PAIR_BW)
            f = widen(f, &n->epochs[i]);
    return f;
}

static struct ranged part_figure(const struct accept_input *in, const struct part_row *p,
                                 enum check check)
{
    if (check == CHECK_PART_LATENCY)
        return exactly(p->alpha_add);
    if (check == CHECK_PART_SHARE)
        return exactly(p->share);
    return speed_of_part(in, p);
}

/* A listed part never passes, because `run` exits with 1 for it. */
static void judge_part(struct accept *a, const struct accept_input *in, const struct limit *l,
                       const struct part_row *p, int part)
{
    static const char *const what[CHECK_COUNT] = {[CHECK_PART_SPEED] = "speed",
                                                  [CHECK_PART_SHARE] = "share",
                                                  [CHECK_PART_LATENCY] = "latency added"};
    char speed[PART_SPEED];
    bool plain = p->state == STATE_SLOW || l->check == CHECK_PART_LATENCY;
    struct accept_row *r =
        add_row(a, l,
                mem_printf("%s, %s over %s%s%s", p->name, what[l->check], p->over,
                           plain ? "" : ": ", plain ? "" : part_words(p, speed)));

    r->part = part;
    judge(r, part_figure(in, p, l->check));
    if (r->is == ACCEPT_UNKNOWN)
        explain(r, mem_strdup("how slow it is was not measured"));
    else if (r->is == ACCEPT_PASS && (l->check != CHECK_PART_LATENCY || p->state == STATE_LATE)) {
        r->is = ACCEPT_WARN;
        explain(r, mem_strdup("within the limit, but it stands out from its like"));
    }
}

/* Add one row per part, or a single row if no part stands out. */
static void slow_parts(struct accept *a, const struct accept_input *in, const struct limit *l)
{
    const bool least = limit_check[l->check].least;
    int rows = 0, parts = 0;

    for (int i = 0; i < in->parts->rows; i++) {
        parts += in->parts->row[i].exception >= 0;
        if (!applies(in->limits, l, &in->parts->row[i]))
            continue;
        judge_part(a, in, l, &in->parts->row[i], i);
        rows++;
    }
    if (!rows && l->state < 0)
        judge(add_row(a, l,
                      mem_printf("%s: %s", limit_check[l->check].what,
                                 !parts  ? "no part stands out"
                                 : least ? "no part is slow at all times"
                                         : "none")),
              exactly(least ? 1 : 0));
}

static void misplaced_hosts(struct accept *a, const struct accept_input *in, const struct limit *l)
{
    struct declared d;
    int misfits, compared = 0;

    declared_init(&d, in->topo && in->points ? in->topo : &in->measured->topo);
    if (in->points)
        declared_points(&d, in->points);
    declared_compare(&d);
    for (int i = 0; i < d.comparisons; i++)
        compared += d.comparison[i].a < d.measured || d.comparison[i].b < d.measured;
    char *what = mem_strdup(limit_check[l->check].what), *who = declared_misplaced(&d, &misfits);
    if (compared) {
        struct accept_row *r = add_row(a, l, what);
        judge(r, exactly(misfits));
        if (misfits)
            explain(r, mem_printf("%s: correct the declaration", who));
    } else
        unknown(a, l, what,
                mem_strdup(d.unmeasured ? d.unmeasured : "nothing is declared of these hosts"));
    free(who);
    declared_free(&d);
}

/* --- coverage --- */

/* Parts that were not checked are unknown, not good or bad. */
static void coverage(struct accept *a, const struct accept_input *in, const struct limit *l)
{
    const struct seen_parts *s = matrix_seen(in->measured, (enum seen)l->part);
    struct accept_row *r = add_row(
        a, l, mem_printf("parts of kind %s: %s", seen_name[l->part], limit_check[l->check].what));

    judge(r, exactly(s ? s->judged / s->parts : NAN));
    if (!s)
        explain(r, mem_strdup("there are none, or none is known"));
    else if (r->is == ACCEPT_FAIL) {
        r->is = ACCEPT_UNKNOWN;
        explain(r, mem_printf("%.0f of %.0f met too few others", s->parts - s->judged, s->parts));
    }
}

/* --- tiers --- */

/* 95 % interval of the median of a tier's pairs.  spread: MAD of their logs; the standard error of
 * a median of normal values is 1.2533 times that of their mean.  For few pairs: factors less and
 * more, from the samples behind the curve point. */
static struct ranged of_pairs(double value, const struct tier *t, double spread, double less,
                              double more)
{
    double half = 1.96 * 1.2533 * 1.4826 * spread / sqrt(t->pairs);

    return t->pairs < ACCEPT_PAIRS ? (struct ranged){value, value * less, value * more}
                                   : (struct ranged){value, value * exp(-half), value * exp(half)};
}

static struct ranged tier_rate(const struct accept_input *in, const struct matrix *m,
                               const struct tier *t)
{
    const struct curve *c = &t->curve[DIR_UNI];
    struct ranged f = exactly(matrix_rate(m, (int)(t - m->tier), DIR_UNI));

    if (c->points && c->point[c->points - 1].n) {
        const struct curve_point *p = &c->point[c->points - 1];
        f = of_pairs(f.value, t, t->spread, p->sec / p->hi, p->sec / p->lo);
    }
    return in ? widen(f, noise_of(in, OP_PAIR_BW, (int)(t - m->tier), 0, true)) : f;
}

static struct ranged tier_latency(const struct accept_input *in, const struct matrix *m,
                                  const struct tier *t)
{
    const struct curve *c = &t->curve[DIR_ONEWAY];

    if (!c->points)
        return exactly(NAN);
    struct ranged f = exactly(c->alpha);
    if (c->point->n)
        f = of_pairs(c->alpha, t, t->latency_spread, c->point->lo / c->alpha,
                     c->point->hi / c->alpha);
    return in ? widen(f, noise_of(in, OP_PAIR_LATENCY, (int)(t - m->tier), 0, false)) : f;
}

/* The lower end is the spread without the noise between epochs, part of which remains in the pairs'
 * means. */
static struct ranged tier_spread(const struct accept_input *in, const struct matrix *m,
                                 const struct tier *t)
{
    /* Standard error of the log of a MAD of n normal values (Rousseeuw & Croux, JASA 1993: 37 %
     * efficiency). */
    const double half = 1.96 * 1.17 / sqrt(t->pairs > 0 ? t->pairs : 1);
    const struct epochs *e = in ? noise_of(in, OP_PAIR_BW, (int)(t - m->tier), 0, true) : NULL;
    double noise = e && e->luck_noise > 0 ? sqrt(e->luck_noise) / 1.4826 : 0;

    if (!t->pairs)
        return exactly(NAN);
    double lo = sqrt(fmax(0, t->spread * t->spread - noise * noise)) * exp(-half);
    return (struct ranged){t->spread, lo, t->spread};
}

static struct ranged tier_loaded(const struct accept_input *in, const struct matrix *m,
                                 const struct tier *t)
{
    struct ranged f = exactly(t->loaded);

    return in ? widen(f, noise_of(in, OP_PAIR_BW, (int)(t - m->tier), 0, true)) : f;
}

/* Figure of a tier.  in: for the campaign; NULL: for the reference, whose noise is unknown. */
typedef struct ranged tier_figure(const struct accept_input *in, const struct matrix *m,
                                  const struct tier *t);
static tier_figure *const tier_value[CHECK_COUNT] = {[CHECK_TIER_BANDWIDTH] = tier_rate,
                                                     [CHECK_TIER_LATENCY] = tier_latency,
                                                     [CHECK_TIER_SPREAD] = tier_spread,
                                                     [CHECK_TIER_LOADED] = tier_loaded};

/* Returns "hgx-h100", with the rate of the machine's NICs if they differ. */
static char *reference_called(const struct accept_input *in, double scale)
{
    return scale == 1 ? mem_strdup(in->reference_name)
                      : mem_printf("%s with NICs of %.0f Gb/s", in->reference_name,
                                   reference_nics(&in->measured->topo) * 8 / 1e9);
}

/* Returns why no tier can be compared with t. */
static char *no_such_tier(const struct accept_input *in, const struct tier *t)
{
    char rate[UNITS_TEXT];

    return mem_printf(
        "no tier of %s carries %s", in->reference_name,
        units_rate_text(rate, matrix_rate(in->measured, (int)(t - in->measured->tier), DIR_UNI)));
}

/* Set the bound from the reference.  Returns why there is none, or NULL. */
static char *tier_bound(struct accept_row *r, const struct accept_input *in, const struct tier *t)
{
    const struct tier *like = reference_tier(in->reference, in->measured, t);

    if (r->limit->of == LIMIT_OF_DATA_SHEET) {
        double peak = t->peak_Bps > 0 ? t->peak_Bps : like ? like->peak_Bps : 0;
        if (peak > 0)
            bound_of(r, peak, "the data sheet");
        return peak > 0 ? NULL : mem_strdup("no data sheet is known for this tier");
    }
    if (!in->reference)
        return mem_strdup(in->why);
    if (!like)
        return no_such_tier(in, t);
    bool nics = like->nic && limit_check[r->limit->check].unit == LIMIT_RATE;
    double scale = nics ? reference_scale(in->reference, &in->measured->topo) : 1;
    double whole = scale * tier_value[r->limit->check](NULL, in->reference, like).value;
    if (!isfinite(whole))
        return mem_printf("%s does not tell", in->reference_name);
    char *name = reference_called(in, scale);
    bound_of(r, whole, name);
    free(name);
    return NULL;
}

/* Devices of another kind are judged by their declared rate.  Devices without a declared rate are not judged. */
static void judge_class(struct accept *a, const struct accept_input *in, const struct limit *l,
                        const struct tier *t, const struct property *p)
{
    struct accept_row *r = add_row(
        a, l, mem_printf("tier %s of %s, %s", t->rule.name, p->what, limit_check[l->check].what));
    char *why = l->of == LIMIT_ITSELF ? NULL : tier_bound(r, in, t);

    r->left_out = isnan(p->declared);
    if (!why && r->left_out)
        why = mem_printf("nobody declares what they can have: %.2f of what most have", p->ratio);
    if (why) {
        r->bound = NAN;
        explain(r, why);
    } else {
        r->bound *= p->declared;
        free(r->of);
        char share[LIMIT_TEXT];
        r->of =
            mem_printf("%s of their NICs' rate", limit_value_text(share, LIMIT_SHARE, l->bound));
    }
    judge(r, exactly(p->Bps));
}

static void classes(struct accept *a, const struct accept_input *in, const struct limit *l,
                    const struct tier *t)
{
    const struct matrix *m = in->measured;

    if (l->check != CHECK_TIER_BANDWIDTH || l->of != LIMIT_OF_REFERENCE)
        return;
    for (int i = 0; i < m->properties; i++) {
        const struct property *p = &m->property[i];
        if (p->kind == PROPERTY_CLASS && &m->tier[p->tier] == t && p->Bps > 0)
            judge_class(a, in, l, t, p);
    }
}

/* True if an absolute bound is for NICs of another rate. */
static bool other_nics(struct accept_row *r, const struct accept_input *in)
{
    double nics = reference_nics(&in->measured->topo), want = r->limit->nic_Bps;

    if (!(want > 0) || !(nics > 0) || fabs(nics / want - 1) < 0.02)
        return false;
    explain(r,
            mem_printf("for NICs of %.0f Gb/s, these have %.0f", want * 8 / 1e9, nics * 8 / 1e9));
    return true;
}

/* Returns why a check does not apply to this tier, or NULL. */
static char *nothing_to_judge(const struct accept_input *in, const struct limit *l,
                              const struct tier *t)
{
    const struct topo *topo = &in->measured->topo;
    bool cpus = topo->endpoints && topo->endpoint[0].kind == ENDPOINT_CPU;

    if (l->check == CHECK_TIER_SPREAD && t->pairs > 0 && t->pairs < ACCEPT_PAIRS)
        return mem_printf("%d pair%s: too few to tell pairs from noise", t->pairs,
                          units_s(t->pairs));
    if (l->check == CHECK_TIER_LOADED && cpus && t->rule.same & 1u << LEVEL_HOST)
        return mem_strdup("ranks share the memory and the cores of their host");
    return NULL;
}

/* Returns "pods are 2:1 oversubscribed, hgx-h100 declares 1:1". */
static char *taper_words(const struct accept_input *in, const struct property *p, double declared)
{
    return mem_printf("%s are %.2g:1 oversubscribed, %s declares %.2g:1",
                      p->level == LEVEL_SPINE ? "pods" : level_many[p->level], p->ratio,
                      in->reference_name, 1 / declared);
}

/* Bandwidth under load: oversubscription is judged by the declared ratio and collisions not at all.
 * Pairs that ran alone because they stood out can only prove that the others are good. */
static void judge_loaded(struct accept_row *r, const struct accept_input *in, const struct tier *t)
{
    const struct property *taper = property_of(in->measured, t, PROPERTY_TAPER);
    const struct tier *like = in->reference ? reference_tier(in->reference, in->measured, t) : NULL;
    double fine = isfinite(r->limit->warn) ? r->limit->warn : r->limit->bound, declared;

    r->left_out = true;
    if (property_of(in->measured, t, PROPERTY_COLLISIONS)) {
        r->value = t->loaded;
        explain(r, mem_strdup("flows are hashed onto the same uplinks (show findings)"));
    } else if (taper && !r->limit->tier && !in->reference) {
        r->value = 1 / taper->ratio;
        explain(r, mem_strdup("oversubscribed (show findings), and nothing declares how far"));
    } else if (taper && !r->limit->tier) {
        declared = like && like->loaded < 1 ? like->loaded : 1;
        r->bound *= declared;
        judge(r, exactly(1 / taper->ratio));
        explain(r, taper_words(in, taper, declared));
        r->left_out = false;
    } else if (!taper && !t->loaded_pairs && t->loaded < fine) {
        r->value = t->loaded;
        explain(r, mem_strdup("only pairs that stood out ran alone: measure again"));
    } else {
        judge(r, taper ? exactly(1 / taper->ratio) : tier_loaded(in, in->measured, t));
        r->left_out = false;
    }
}

static void judge_tier(struct accept *a, const struct accept_input *in, const struct limit *l,
                       const struct tier *t)
{
    struct accept_row *r =
        add_row(a, l, mem_printf("tier %s, %s", t->rule.name, limit_check[l->check].what));
    char *why = l->of == LIMIT_ITSELF ? NULL : tier_bound(r, in, t);

    char *moot = nothing_to_judge(in, l, t);

    if (moot) {
        r->value = tier_value[l->check](in, in->measured, t).value;
        leave_out(r, moot);
        free(why);
        return;
    }
    if (l->check == CHECK_TIER_LOADED && isfinite(t->loaded)) {
        judge_loaded(r, in, t);
        free(why);
        return;
    }
    if (other_nics(r, in)) {
        free(why);
        return;
    }
    judge(r, tier_value[l->check](in, in->measured, t));
    if (why)
        explain(r, why);
    else if (r->is == ACCEPT_UNKNOWN)
        explain(r, mem_strdup("not measured"));
}

static void tiers(struct accept *a, const struct accept_input *in, const struct limit *l)
{
    const struct matrix *m = in->measured;
    int before = a->rows;

    for (int i = 0; i < m->tiers; i++)
        if ((l->tier ? !strcmp(l->tier, m->tier[i].rule.name) : m->tier[i].pairs > 0) &&
            (m->tier[i].pairs || m->tier[i].possible > 0)) {
            judge_tier(a, in, l, &m->tier[i]);
            classes(a, in, l, &m->tier[i]);
        }
    if (a->rows == before)
        unknown(a, l,
                mem_printf("tier %s, %s", l->tier ? l->tier : "*", limit_check[l->check].what),
                mem_strdup("no pair of it was measured"));
}

/* --- collectives --- */

/* True for points of the groups behind a curve, as far as a point tells its group. */
static bool is_of_curve(const struct topo *t, const struct collective *c, const struct point *p)
{
    return (int)p->op == (int)c->op && p->ranks == c->shape.ranks &&
           (!c->at_once || (int)p->flows == c->at_once) &&
           (c->shape.domains == 1) == (topo_domain(t, p->src) == topo_domain(t, p->dst));
}

/* Times of the points of a curve at this size, ascending.  The caller frees. */
static double *times_of(const struct accept_input *in, const struct collective *c, double bytes,
                        int *n)
{
    const struct figures *all = &in->noise->all;
    double *sec = NULL;

    *n = 0;
    for (int i = 0; i < all->figures; i++) {
        const struct figure *g = &all->figure[i];
        if (g->key.op != (int)c->op || g->key.tier >= 0 || g->key.shape.ranks != c->shape.ranks)
            continue;
        for (int k = g->first; k < g->first + g->points; k++) {
            const struct point *p = &in->points->point[all->of[k]];
            if ((double)p->bytes == bytes && is_of_curve(&in->measured->topo, c, p))
                MEM_PUSH(sec, *n) = all->sec[k];
        }
    }
    if (*n)
        stats_sort(sec, *n);
    return sec;
}

/* Time down to which the points of all groups and epochs leave it open what a collective takes, as a
 * share of its time; at most 1.  A curve is the median of few groups, and each group of few epochs,
 * so that two stray points of one group can move it.  Only a fault needs this: what is well is not
 * doubted because of a stray point. */
static double open_share(const struct accept_input *in, const struct collective *c, double bytes)
{
    const struct curve_point *p = c->curve.point;
    double lo, hi, share = 1;
    int n;

    while (p < c->curve.point + c->curve.points - 1 && p->bytes < bytes)
        p++;
    double *sec = times_of(in, c, p->bytes, &n);
    if (n > 1) {
        stats_median_ci(sec, n, &lo, &hi);
        share = fmin(1, lo / p->sec);
    }
    free(sec);
    return share;
}

/* Returns the bus bandwidth with its interval.  in: for the campaign; NULL: for the reference. */
static struct ranged busbw(const struct accept_input *in, const struct collective *c, double bytes)
{
    double rate = bytes * op_bus_factor(c->op, c->shape.ranks), sec = curve_time(&c->curve, bytes),
           lo, hi;

    curve_interval(&c->curve, bytes, &lo, &hi);
    if (in)
        lo = fmin(lo, sec * open_share(in, c, bytes));
    return (struct ranged){rate / sec, rate / hi, rate / lo};
}

static double last_size(const struct collective *c)
{
    return c->curve.point[c->curve.points - 1].bytes;
}

static void judge_collective(struct accept *a, const struct accept_input *in, const struct limit *l,
                             const struct collective *c, const struct collective *like)
{
    double bytes = l->bytes > 0 ? l->bytes
                   : like       ? fmin(last_size(c), last_size(like))
                                : last_size(c);
    char shape[48], size[UNITS_TEXT];
    struct accept_row *r =
        add_row(a, l,
                mem_printf("%s %s, %s", op_name(c->op), shape_text(shape, &c->shape),
                           units_bytes_text(size, bytes)));

    if (curve_end(&c->curve, bytes) != 0) {
        explain(r, mem_printf("measured only to %s", units_bytes_text(size, last_size(c))));
        return;
    }
    if (like && curve_end(&like->curve, bytes) != 0) {
        explain(r, mem_printf("%s only goes to %s", in->reference_name,
                              units_bytes_text(size, last_size(like))));
        return;
    }
    if (like)
        bound_of(r, busbw(NULL, like, bytes).value, in->reference_name);
    judge(r, widen(busbw(in, c, bytes), noise_of(in, c->op, -1, c->shape.ranks, true)));
}

/* True if the limit applies to this collective as measured, including slow parts, not as fitted. */
static bool asked_for(const struct limit *l, const struct collective *c)
{
    return c->curve.points && c->basis == BASIS_MEASURED && (l->op < 0 || l->op == (int)c->op) &&
           (!l->ranks || l->ranks == c->shape.ranks) &&
           (!l->domains || l->domains == c->shape.domains);
}

static char *collective_words(const struct limit *l)
{
    return l->ranks ? mem_printf("%s of %d ranks",
                                 l->op < 0 ? "collectives" : op_name((enum op)l->op), l->ranks)
                    : mem_strdup(l->op < 0 ? "collectives" : op_name((enum op)l->op));
}

/* Returns the reference's curve of the same shape.  Figures published for one machine across
 * domains depend on its network and NCCL release: an expectation (check collective), but no bound
 * for other machines. */
static const struct collective *same_curve(const struct accept_input *in,
                                           const struct collective *c)
{
    const struct collective *like = reference_curve(in->reference, c);

    return like && like->basis == BASIS_PRESET && c->shape.domains > 1 ? NULL : like;
}

static void collectives(struct accept *a, const struct accept_input *in, const struct limit *l)
{
    const struct matrix *m = in->measured;
    int before = a->rows, asked = 0;

    for (int i = 0; i < m->collectives; i++) {
        const struct collective *c = &m->collective[i],
                                *like = l->of == LIMIT_OF_REFERENCE ? same_curve(in, c) : NULL;
        if (!asked_for(l, c))
            continue;
        asked++;
        if (like || l->of == LIMIT_ITSELF)
            judge_collective(a, in, l, c, like);
    }
    if (a->rows == before)
        unknown(a, l, collective_words(l),
                !asked          ? mem_strdup("not measured, or only with a slow part in the group")
                : in->reference ? mem_printf("%s has no curve of these groups", in->reference_name)
                                : mem_strdup(in->why));
}

/* --- collectives across domains, compared with the expectation for a healthy group --- */

/* True if c is judged by expectation.  Shapes that another campaign measured belong to check busbw.
 * A fitted curve has its slow part removed; that part has rows of its own. */
static bool across(const struct accept_input *in, const struct limit *l, const struct collective *c)
{
    struct collective as_measured = *c;

    if (c->basis == BASIS_FITTED)
        as_measured.basis = BASIS_MEASURED;
    return c->shape.domains > 1 && asked_for(l, &as_measured) && !same_curve(in, c);
}

/* Measured relative to expected speed; the interval includes both.  NAN: no reliable
 * expectation. */
static struct ranged of_expected(const struct accept_input *in, const struct collective *c,
                                 double bytes, const struct cost *want)
{
    double sec = curve_time(&c->curve, bytes), lo, hi;

    double share = reference_curve_share(c, want, sec);
    if (isnan(share))
        return exactly(NAN);
    curve_interval(&c->curve, bytes, &lo, &hi);
    lo = fmin(lo, sec * open_share(in, c, bytes));
    return (struct ranged){share, want->lo / hi, want->hi / lo};
}

/* A model that may be wrong proves a fault only if its whole interval does; if the model may be at
 * fault, the row warns. */
static void judge_expected(struct accept_row *r, struct ranged f)
{
    judge(r, (struct ranged){f.value, f.value, f.hi});
    r->lo = f.lo;
    if (r->is == ACCEPT_WARN)
        explain(r, mem_strdup("below what is expected, by less than that may be wrong"));
}

/* Returns false if there is no reliable expectation for this group at this size. */
static bool add_across(struct accept *a, const struct accept_input *in, const struct limit *l,
                       const struct reference *ref, const struct collective *c)
{
    double bytes = l->bytes > 0 ? l->bytes : last_size(c);
    int *ids = shape_group(&in->measured->topo, &c->shape);
    char shape[48], size[UNITS_TEXT], words[80];
    struct cost want;

    reference_of_curve(ref, c, ids, &bytes, 1, &want);
    free(ids);
    struct ranged f = of_expected(in, c, bytes, &want);
    if (isnan(f.value) || curve_end(&c->curve, bytes) != 0)
        return false;
    struct accept_row *r =
        add_row(a, l,
                mem_printf("%s %s, %s%s", op_name(c->op), shape_text(shape, &c->shape),
                           units_bytes_text(size, bytes),
                           c->basis == BASIS_FITTED ? ", without its slow part" : ""));
    free(r->of);
    r->of = mem_strdup(reference_words(ref, &want, words));
    judge_expected(r, f);
    return true;
}

static void collectives_across(struct accept *a, const struct accept_input *in,
                               const struct limit *l)
{
    const struct matrix *m = in->measured;
    struct reference ref;
    int none = 0, all = 0;

    reference_open(&ref, m);
    for (int i = 0; i < m->collectives; i++)
        if (across(in, l, &m->collective[i])) {
            all++;
            none += !add_across(a, in, l, &ref, &m->collective[i]);
        }
    if (none)
        unknown(a, l, mem_printf("%d of %d collectives across domains", none, all),
                mem_strdup("no curve is published for these groups, and the model is not good "
                           "enough to judge them"));
    reference_free(&ref);
}

/* --- the verdict --- */

static void (*const judges[CHECK_COUNT])(struct accept *a, const struct accept_input *in,
                                         const struct limit *l) = {
    [CHECK_WRONG_DATA] = count_points, [CHECK_FAILED_POINTS] = count_points,
    [CHECK_DEAD_PARTS] = count_found,  [CHECK_PART_SPEED] = slow_parts,
    [CHECK_PART_SHARE] = slow_parts,   [CHECK_PART_LATENCY] = slow_parts,
    [CHECK_TIER_BANDWIDTH] = tiers,    [CHECK_TIER_LATENCY] = tiers,
    [CHECK_TIER_SPREAD] = tiers,       [CHECK_TIER_LOADED] = tiers,
    [CHECK_BUSBW] = collectives,       [CHECK_COLLECTIVE] = collectives_across,
    [CHECK_RACKS] = misplaced_hosts,   [CHECK_TAINTED] = count_found,
    [CHECK_SEEN] = coverage,
};

/* --- the verdict of a busy machine --- */

/* True for rates and times of a busy machine, which are not its own.  Slow parts are compared with
 * parts of other hosts that are equally busy. */
static bool is_disturbed(const struct matrix *m, const struct accept_row *r)
{
    enum limit_unit unit = limit_check[r->limit->check].unit;
    bool part = r->part >= 0 && m->topo.hosts > 1;

    return r->limit->check != CHECK_SEEN && unit != LIMIT_COUNT && !part;
}

static void doubt_busy(struct accept *a, const struct matrix *m)
{
    for (int i = 0; i < a->rows && is_busy(m); i++)
        if (a->row[i].is == ACCEPT_FAIL && is_disturbed(m, &a->row[i])) {
            a->row[i].is = ACCEPT_UNKNOWN;
            explain(&a->row[i],
                    mem_strdup("busy: figures moved between epochs, so other work runs here"));
        }
}

bool accept_lacks(const struct accept_row *r)
{
    bool there = r->limit->check == CHECK_SEEN && isfinite(r->value);

    return r->is == ACCEPT_UNKNOWN && !r->left_out && (!r->limit->optional || there);
}

void accept_judge(struct accept *a, const struct accept_input *given)
{
    struct accept_input in = *given;
    struct accept_noise noise;
    int counts = 0;

    *a = (struct accept){0};
    open_noise(&noise, &in);
    in.noise = &noise;
    for (int i = 0; i < in.limits->count; i++)
        judges[in.limits->limit[i].check](a, &in, &in.limits->limit[i]);
    close_noise(&noise);
    doubt_busy(a, in.measured);
    for (int i = 0; i < a->rows; i++) {
        a->count[a->row[i].is]++;
        counts += accept_lacks(&a->row[i]);
    }
    a->verdict = a->count[ACCEPT_FAIL]    ? ACCEPT_FAIL
                 : counts || a->rows == 0 ? ACCEPT_UNKNOWN
                 : a->count[ACCEPT_WARN]  ? ACCEPT_WARN
                                          : ACCEPT_PASS;
}

/* --- racks --- */

static bool lies_in(const struct part_row *p, int rack)
{
    bool in = false;

    for (int i = 0; i < p->places; i++)
        in |= p->place[i].at[LEVEL_RACK] == rack;
    return in;
}

static enum accept_is part_is(const struct accept *a, const struct parts *p, int part)
{
    enum part_state state = p->row[part].state;
    enum accept_is is = ACCEPT_WARN; /* a listed part never passes */

    for (int i = 0; i < a->rows; i++)
        if (a->row[i].part == part && a->row[i].is == ACCEPT_FAIL)
            is = ACCEPT_FAIL;
    return state == STATE_DEAD || state == STATE_WRONG ? ACCEPT_FAIL : is;
}

enum accept_is accept_rack(const struct accept *a, const struct parts *p, int rack)
{
    enum accept_is is = ACCEPT_PASS;

    for (int i = 0; i < a->rows; i++)
        if (a->row[i].limit->check == CHECK_SEEN && accept_lacks(&a->row[i]))
            is = ACCEPT_UNKNOWN;
    for (int i = 0; i < p->rows; i++)
        if (is != ACCEPT_FAIL && lies_in(&p->row[i], rack))
            is = part_is(a, p, i);
    return is;
}

void accept_free(struct accept *a)
{
    for (int i = 0; i < a->rows; i++) {
        free(a->row[i].what);
        free(a->row[i].of);
        free(a->row[i].why);
    }
    free(a->row);
    *a = (struct accept){0};
}

int accept_code(const struct accept *a)
{
    return a->verdict == ACCEPT_FAIL      ? EXIT_BELOW
           : a->verdict == ACCEPT_UNKNOWN ? EXIT_UNJUDGED
                                          : EXIT_GOOD;
}

char *accept_text(const struct accept_row *r)
{
    enum limit_unit unit = limit_check[r->limit->check].unit;
    char value[LIMIT_TEXT], bound[LIMIT_TEXT];

    if (r->is == ACCEPT_UNKNOWN)
        return mem_printf("%s: %s", r->what, r->why);
    return mem_printf("%s: %s, limit %s%s%s", r->what, limit_value_text(value, unit, r->value),
                      limit_value_text(bound, unit, r->bound), *r->of ? ", " : "", r->of);
}
