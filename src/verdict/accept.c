/* SPDX-License-Identifier: BSD-3-Clause */
#include "verdict/accept.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"
#include "cost/reference.h"
#include "verdict/declared.h"

const char *const accept_name[ACCEPT_IS_COUNT] = {"PASS", "WARN", "FAIL", "UNKNOWN"};

/* --- one row --- */

/* A figure with its interval. */
struct figure {
    double value, lo, hi;
};

static struct figure exactly(double value)
{
    return (struct figure){value, value, value};
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

static void unknown(struct accept *a, const struct limit *l, char *what, char *why)
{
    explain(add_row(a, l, what), why);
}

/* `less` turned round where the check is bounded from above. */
static bool below(const struct limit_check *c, double x, double bound)
{
    return c->least ? x < bound : x > bound;
}

static void judge(struct accept_row *r, struct figure f)
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
    int n = 0;

    for (int i = 0; dead && i < m->exceptions; i++)
        n += m->exception[i].factor == 0 && !m->exception[i].wrong;
    for (int i = 0; !dead && i < m->findings; i++)
        n += !strcmp(m->finding[i].kind, "tainted") || !strcmp(m->finding[i].kind, "busy");
    judge(add_row(a, l, mem_strdup(limit_check[l->check].what)), exactly(n));
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
        judge(r, !speed            ? exactly(p->alpha_add)
                 : isfinite(p->lo) ? (struct figure){p->factor, p->lo, p->hi}
                                   : exactly(p->factor));
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

static struct figure tier_rate(const struct matrix *m, const struct tier *t)
{
    const struct curve *c = &t->curve[DIR_UNI];
    struct figure f = exactly(matrix_rate(m, (int)(t - m->tier), DIR_UNI));

    if (c->points && c->point[c->points - 1].n) {
        const struct curve_point *p = &c->point[c->points - 1];
        f.lo *= p->sec / p->hi;
        f.hi *= p->sec / p->lo;
    }
    return f;
}

static struct figure tier_latency(const struct matrix *m, const struct tier *t)
{
    const struct curve *c = &t->curve[DIR_ONEWAY];

    (void)m;
    if (!c->points)
        return exactly(NAN);
    return c->point->n ? (struct figure){c->alpha, c->point->lo, c->point->hi} : exactly(c->alpha);
}

static struct figure tier_spread(const struct matrix *m, const struct tier *t)
{
    (void)m;
    return exactly(t->pairs ? t->spread : NAN);
}

static struct figure tier_loaded(const struct matrix *m, const struct tier *t)
{
    (void)m;
    return exactly(t->loaded);
}

typedef struct figure tier_figure(const struct matrix *m, const struct tier *t);
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
    double whole = tier_value[r->limit->check](in->reference, like).value;
    if (!isfinite(whole))
        return mem_printf("%s does not tell", in->reference_name);
    bound_of(r, whole, in->reference_name);
    return NULL;
}

static void judge_tier(struct accept *a, const struct accept_input *in, const struct limit *l,
                       const struct tier *t)
{
    struct accept_row *r =
        add_row(a, l, mem_printf("tier %s, %s", t->rule.name, limit_check[l->check].what));
    char *why = l->of == LIMIT_ITSELF ? NULL : tier_bound(r, in, t);

    judge(r, tier_value[l->check](in->measured, t));
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
static struct figure busbw(const struct collective *c, double bytes)
{
    double rate = bytes * op_bus_factor(c->op, c->shape.ranks), lo, hi;

    curve_interval(&c->curve, bytes, &lo, &hi);
    return (struct figure){rate / curve_time(&c->curve, bytes), rate / hi, rate / lo};
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
    judge(r, busbw(c, bytes));
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

bool accept_lacks(const struct accept_row *r)
{
    bool there = r->limit->check == CHECK_SEEN && isfinite(r->value);

    return r->is == ACCEPT_UNKNOWN && (!r->limit->optional || there);
}

void accept_judge(struct accept *a, const struct accept_input *in)
{
    int counts = 0;

    *a = (struct accept){0};
    for (int i = 0; i < in->limits->count; i++)
        judges[in->limits->limit[i].check](a, in, &in->limits->limit[i]);
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
