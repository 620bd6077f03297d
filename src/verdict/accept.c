/* SPDX-License-Identifier: BSD-3-Clause */
#include "verdict/accept.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/distribution.h"
#include "base/mem.h"
#include "base/units.h"
#include "cost/reference.h"
#include "verdict/declared.h"
#include "verdict/epochs.h"

const char *const accept_name[ACCEPT_IS_COUNT] = {"PASS", "WARN", "FAIL", "UNKNOWN"};

/* --- one row --- */

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

/* Nothing is there that could be judged, so the verdict does not wait for it.  Takes why over. */
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

/* `less` turned round where the check is bounded from above. */
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
    if (r->limit->of != LIMIT_ITSELF)
        warn *= r->bound / r->limit->bound;
    if (below(c, best, r->bound))
        r->is = ACCEPT_FAIL;
    else if (below(c, worst, r->bound)) {
        r->is = ACCEPT_WARN;
        explain(r, mem_strdup("the limit lies inside of the interval: measure longer"));
    } else if (isfinite(warn) && below(c, f.value, warn)) {
        r->is = ACCEPT_WARN;
        explain(r, mem_strdup("close to the limit"));
    } else
        r->is = ACCEPT_PASS;
}

/* A bound that is a share of `whole`, which is that of `name`. */
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

/* What the epochs of the campaign show of each figure. */
struct accept_noise {
    struct figures all;
    struct epochs *epochs;
};

/* Log of speed of each point of a figure, without what its size makes of it: sizes differ from epoch to epoch
 * where time ran out. */
static void take_noise(struct accept_noise *n, int i)
{
    const struct figure *g = &n->all.figure[i];
    double *y = mem_calloc((size_t)g->points + 1, sizeof(*y)),
           *like = mem_calloc((size_t)g->points + 1, sizeof(*like));
    const double *sec = n->all.sec + g->first, *amount = n->all.amount + g->first;

    for (int k = 0; k < g->points; k++) {
        int count = 0;
        for (int j = 0; j < g->points; j++)
            if (amount[j] == amount[k])
                like[count++] = log(sec[j]);
        y[k] = stats_middle(like, count) - log(sec[k]);
    }
    epochs_of(&n->epochs[i], &n->all, g, y);
    free(like);
    free(y);
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
    for (int i = 0; i < n->all.figures; i++)
        take_noise(n, i);
}

static void close_noise(struct accept_noise *n)
{
    for (int i = 0; i < n->all.figures; i++)
        epochs_free(&n->epochs[i]);
    free(n->epochs);
    if (n->all.matched)
        figures_free(&n->all);
}

/* tier -1: a collective of so many ranks.  NULL: not known. */
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

/* The 95 % interval of a value, as what was measured in few epochs has it.  Of one epoch nothing is known. */
static struct ranged widen(struct ranged f, const struct epochs *e)
{
    if (!e || e->blocks < 2)
        return f;
    double half = dist_t_quantile(0.975, e->blocks - 1) * sqrt(e->between / e->blocks);
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
    int n = 0, looked = 0;

    if (!p) {
        for (int i = 0; i < in->measured->exceptions; i++)
            n += in->measured->exception[i].wrong;
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

/* On one host all parts share what disturbs them, and noise of its tiers is noise of theirs. */
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

/* Each slow part is a line of its own; where there is none, one line says so.  The whole fabric is
 * what the tiers' rows judge. */
static void slow_parts(struct accept *a, const struct accept_input *in, const struct limit *l)
{
    const bool speed = l->check == CHECK_PART_SPEED;
    int rows = 0;

    for (int i = 0; i < in->parts->rows; i++) {
        const struct part_row *p = &in->parts->row[i];
        if (p->exception < 0 || (speed ? p->state != STATE_SLOW : !(p->alpha_add > 0)))
            continue;
        struct accept_row *r =
            add_row(a, l,
                    mem_printf("%s, %s%s", p->name, speed ? "speed over " : "latency added over ",
                               p->over));
        r->part = i;
        judge(r, speed ? speed_of_part(in, p) : exactly(p->alpha_add));
        rows++;
    }
    if (!rows)
        judge(add_row(a, l, mem_printf("%s: no part stands out", limit_check[l->check].what)),
              exactly(speed ? 1 : 0));
}

static void misplaced_hosts(struct accept *a, const struct accept_input *in, const struct limit *l)
{
    struct declared d;
    int misfits = 0, compared = 0;

    declared_init(&d, &in->measured->topo);
    if (in->points)
        declared_points(&d, in->points);
    declared_compare(&d);
    for (int i = 0; i < d.comparisons; i++)
        if (d.comparison[i].a < d.measured || d.comparison[i].b < d.measured) {
            compared++;
            misfits += d.comparison[i].how.misfits;
        }
    char *what = mem_strdup(limit_check[l->check].what);
    if (compared)
        judge(add_row(a, l, what), exactly(misfits));
    else
        unknown(a, l, what,
                mem_strdup(d.unmeasured ? d.unmeasured : "nothing is declared of these hosts"));
    declared_free(&d);
}

/* --- coverage --- */

/* What was not looked at is not good, nor bad. */
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

static struct ranged tier_rate(const struct accept_input *in, const struct matrix *m,
                               const struct tier *t)
{
    const struct curve *c = &t->curve[DIR_UNI];
    struct ranged f = exactly(matrix_rate(m, (int)(t - m->tier), DIR_UNI));

    if (c->points && c->point[c->points - 1].n) {
        const struct curve_point *p = &c->point[c->points - 1];
        f.lo *= p->sec / p->hi;
        f.hi *= p->sec / p->lo;
    }
    return in ? widen(f, noise_of(in, OP_PAIR_BW, (int)(t - m->tier), 0, true)) : f;
}

static struct ranged tier_latency(const struct accept_input *in, const struct matrix *m,
                                  const struct tier *t)
{
    const struct curve *c = &t->curve[DIR_ONEWAY];

    if (!c->points)
        return exactly(NAN);
    struct ranged f =
        c->point->n ? (struct ranged){c->alpha, c->point->lo, c->point->hi} : exactly(c->alpha);
    return in ? widen(f, noise_of(in, OP_PAIR_LATENCY, (int)(t - m->tier), 0, false)) : f;
}

/* What is left when noise between epochs is taken off the spread of pairs: their means still have some. */
static struct ranged tier_spread(const struct accept_input *in, const struct matrix *m,
                                 const struct tier *t)
{
    /* Standard error of the log of a MAD of n normal values (Rousseeuw & Croux, JASA 1993: efficiency 37 %). */
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

/* in: of the campaign; NULL: of the reference, whose noise is not known. */
typedef struct ranged tier_figure(const struct accept_input *in, const struct matrix *m,
                                  const struct tier *t);
static tier_figure *const tier_value[CHECK_COUNT] = {[CHECK_TIER_BANDWIDTH] = tier_rate,
                                                     [CHECK_TIER_LATENCY] = tier_latency,
                                                     [CHECK_TIER_SPREAD] = tier_spread,
                                                     [CHECK_TIER_LOADED] = tier_loaded};

/* Why there is no bound, or NULL. */
static char *tier_bound(struct accept_row *r, const struct accept_input *in, const struct tier *t)
{
    const struct tier *like = reference_tier(in->reference, t);

    if (r->limit->of == LIMIT_OF_DATA_SHEET) {
        double peak = t->peak_Bps > 0 ? t->peak_Bps : like ? like->peak_Bps : 0;
        if (peak > 0)
            bound_of(r, peak, "the data sheet");
        return peak > 0 ? NULL : mem_strdup("no data sheet is known for this tier");
    }
    if (!in->reference)
        return mem_strdup(in->why);
    if (!like)
        return mem_printf("%s has no such tier", in->reference_name);
    bound_of(r, tier_value[r->limit->check](NULL, in->reference, like).value, in->reference_name);
    return isfinite(r->bound) ? NULL : mem_printf("%s does not tell", in->reference_name);
}

/* Why a check says nothing of this tier, or NULL. */
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

static void judge_tier(struct accept *a, const struct accept_input *in, const struct limit *l,
                       const struct tier *t)
{
    struct accept_row *r =
        add_row(a, l, mem_printf("tier %s, %s", t->rule.name, limit_check[l->check].what));
    char *why = l->of == LIMIT_ITSELF ? NULL : tier_bound(r, in, t);

    judge(r, tier_value[l->check](in, in->measured, t));
    char *moot = nothing_to_judge(in, l, t);
    if (moot)
        leave_out(r, moot);
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
            (m->tier[i].pairs || m->tier[i].possible > 0))
            judge_tier(a, in, l, &m->tier[i]);
    if (a->rows == before)
        unknown(a, l,
                mem_printf("tier %s, %s", l->tier ? l->tier : "*", limit_check[l->check].what),
                mem_strdup("no pair of it was measured"));
}

/* --- collectives --- */

/* Bus bandwidth with its interval. */
static struct ranged busbw(const struct collective *c, double bytes)
{
    double rate = bytes * op_bus_factor(c->op, c->shape.ranks), lo, hi;

    curve_interval(&c->curve, bytes, &lo, &hi);
    return (struct ranged){rate / curve_time(&c->curve, bytes), rate / hi, rate / lo};
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
        bound_of(r, busbw(like, bytes).value, in->reference_name);
    judge(r, widen(busbw(c, bytes), noise_of(in, c->op, -1, c->shape.ranks, true)));
}

/* As it was measured: with a slow part in it, not what the fit made of it. */
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

static void collectives(struct accept *a, const struct accept_input *in, const struct limit *l)
{
    const struct matrix *m = in->measured;
    int before = a->rows, asked = 0;

    for (int i = 0; i < m->collectives; i++) {
        const struct collective *c = &m->collective[i],
                                *like = l->of == LIMIT_OF_REFERENCE
                                            ? reference_curve(in->reference, c)
                                            : NULL;
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

/* --- the verdict --- */

static void (*const judges[CHECK_COUNT])(struct accept *a, const struct accept_input *in,
                                         const struct limit *l) = {
    [CHECK_WRONG_DATA] = count_points, [CHECK_FAILED_POINTS] = count_points,
    [CHECK_DEAD_PARTS] = count_found,  [CHECK_PART_SPEED] = slow_parts,
    [CHECK_PART_LATENCY] = slow_parts, [CHECK_TIER_BANDWIDTH] = tiers,
    [CHECK_TIER_LATENCY] = tiers,      [CHECK_TIER_SPREAD] = tiers,
    [CHECK_TIER_LOADED] = tiers,       [CHECK_BUSBW] = collectives,
    [CHECK_RACKS] = misplaced_hosts,   [CHECK_TAINTED] = count_found,
    [CHECK_SEEN] = coverage,
};

/* --- the verdict of a busy machine --- */

/* Rates and times of a busy machine are not its own.  A slow part is judged beside parts of other hosts, which
 * are as busy. */
static bool is_disturbed(const struct matrix *m, const struct accept_row *r)
{
    enum limit_unit unit = limit_check[r->limit->check].unit;
    bool part = r->part >= 0 && m->topo.hosts > 1;

    return r->limit->check != CHECK_SEEN && unit != LIMIT_COUNT && !part;
}

static void doubt_busy(struct accept *a, const struct matrix *m)
{
    for (struct accept_row *r = a->row; r < a->row + a->rows && is_busy(m); r++)
        if (r->is == ACCEPT_FAIL && is_disturbed(m, r)) {
            r->is = ACCEPT_UNKNOWN;
            explain(r, mem_strdup("busy: figures moved between epochs, so other work runs here"));
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
