/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "calibrate/case_impl.h"

enum { BISECTIONS = 60, FIGURE = 48 };

static const double never = 10; /* miss() of an impossible value; above any logarithm */

/* Returns the value index of unknown u in a combination: mixed radix, the first changes fastest. */
static int digit(const struct casefile *c, int combination, int u)
{
    for (int i = 0; i < u; i++)
        combination /= c->unknown[i].values;
    return combination % c->unknown[u].values;
}

/* Write "seq 2048, prefetch off" for the unknowns in `which`. */
static char *combination_text(char buf[CASE_COMBINATION], const struct casefile *c, int combination,
                              unsigned which)
{
    size_t used = 0;

    buf[0] = '\0';
    for (int u = 0; u < c->unknowns; u++)
        if (which & 1U << u) {
            const struct case_unknown *x = &c->unknown[u];
            int n = snprintf(buf + used, CASE_COMBINATION - used, "%s%s %s", used ? ", " : "",
                             x->key, x->value[digit(c, combination, u)]);
            used = n > 0 && used + (size_t)n < CASE_COMBINATION ? used + (size_t)n
                                                                : CASE_COMBINATION - 1;
        }
    return buf;
}

/* --- which values of the unknowns the other rows choose --- */

/* Positive: ours is higher.  Exceeding a figure that must only be reached is no deviation. */
static double off(const struct case_claim *k, double ours)
{
    if (k->unit->fits)
        return (ours <= 1) == (k->published > 0) ? 0 : 100;
    double d = k->unit->points ? ours - k->published : 100 * (ours / k->published - 1);
    return k->at_least && d > 0 ? 0 : d;
}

static bool inside(const struct case_claim *k, const struct case_at *at)
{
    if (k->unit->fits)
        return k->published > 0 ? at->lo <= 1 : at->hi > 1;
    return (at->lo <= k->published || k->at_least) && at->hi >= k->published;
}

static bool reproduces(const struct case_claim *k, const struct case_at *at)
{
    return fabs(off(k, at->ours)) <= k->within;
}

static bool holds(const struct case_claim *k, int combination)
{
    const struct case_at *at = &k->at[combination];

    return at->possible && (inside(k, at) || reproduces(k, at));
}

static int holding(const struct case_claim *k, int combinations)
{
    int n = 0;

    for (int x = 0; x < combinations; x++)
        n += holds(k, x);
    return n;
}

/* Returns the distance from the published figure: logarithm, or points / 100; 1: it does not
 * fit. */
static double miss(const struct case_claim *k, const struct case_at *at)
{
    double d = off(k, at->ours);

    if (k->unit->fits || k->unit->points || d == 0)
        return fabs(d) / 100;
    return d > -100 ? fmin(never, fabs(log1p(d / 100))) : never;
}

/* True if two claims use the same measurement, such as a figure of one job's step and a quotient
 * with it. */
static bool same_row(const struct case_claim *a, const struct case_claim *b, int jobs)
{
    bool shared = a == b;

    for (int i = 0; i < jobs; i++)
        shared = shared || (a->kind == b->kind && a->row[i] && b->row[i]);
    return shared;
}

/* True if row r may choose values for judging k.  Excluded: a row that no value holds, because it
 * contains an error, and a row that no unknown of k moves. */
static bool chooses(const struct case_claim *r, const struct case_claim *k, int jobs,
                    int combinations)
{
    return (r->free & k->free) && !same_row(r, k, jobs) && holding(r, combinations) > 0;
}

/* Set kept[]: combinations that the other rows of the case cannot separate from their best. */
static void choose(struct case_claim *k, bool *kept, const struct casefile *c, int combinations)
{
    double far[CASE_COMBINATIONS_MAX] = {0}, best = INFINITY;

    k->choosers = 0;
    for (int i = 0; i < c->claims; i++) {
        const struct case_claim *r = &c->claim[i];
        if (!chooses(r, k, c->jobs, combinations))
            continue;
        k->choosers++;
        for (int x = 0; x < combinations; x++)
            far[x] += r->at[x].possible ? miss(r, &r->at[x]) : 0;
    }
    for (int x = 0; x < combinations; x++)
        best = k->at[x].possible ? fmin(best, far[x]) : best;
    k->chosen = -1;
    for (int x = 0; x < combinations; x++) {
        kept[x] = k->at[x].possible && far[x] <= best + CASE_APART * k->choosers;
        k->chosen = kept[x] && k->chosen < 0 ? x : k->chosen;
    }
}

/* --- kinds and verdicts --- */

/* Find the jobs and kinds of quantities in an expression. */
static void name(bool *jobs, bool kinds[CASE_KINDS], const char *expression,
                 const struct casefile *c)
{
    struct case_values s = {.file = c, .mentioned = jobs, .asked = kinds, .scaled = -1};
    double value;

    expression_value(&value, expression, &(struct expression_names){case_value_find, &s}, NULL);
}

static bool moves(const struct case_claim *k, int combinations)
{
    bool any = false;

    for (int x = 0; x < combinations; x++)
        any = any || (k->at[x].possible && k->at[x].hi - k->at[x].lo > 1e-6 * fabs(k->at[x].ours));
    return any;
}

/* Returns the unknowns that move the figure from its value at their first value. */
static unsigned moved_by(const struct case_claim *k, const struct casefile *c, int combination)
{
    unsigned moved = 0;

    for (int u = 0, stride = 1; u < c->unknowns; stride *= c->unknown[u++].values) {
        const struct case_at *at = &k->at[combination],
                             *first = &k->at[combination - digit(c, combination, u) * stride];
        if (at->possible && first->possible &&
            fabs(at->ours - first->ours) > 1e-6 * fabs(first->ours))
            moved |= 1U << u;
    }
    return moved;
}

/* What was known of the jobs of a time; k->row still has all of them. */
static enum case_basis basis_of(const struct case_claim *k, const struct casefile *c)
{
    enum case_basis basis = CASE_PREDICTED;

    for (int i = 0; i < c->jobs; i++) {
        bool anchored = c->job[i].stretch > 0;
        for (int s = 0; s < c->solves; s++)
            anchored = anchored || c->solve[s].job[i];
        if (k->row[i] && anchored && basis < CASE_ANCHORED)
            basis = CASE_ANCHORED;
        if (k->row[i] && c->job[i].fitted)
            basis = CASE_FITTED;
    }
    return basis;
}

static void classify(struct case_claim *k, const struct casefile *c, int combinations)
{
    bool named[CASE_KINDS] = {false}, any = false;

    name(k->row, named, k->expression, c);
    k->kind = named[CASE_TIME] && moves(k, combinations) ? CASE_TIME
              : named[CASE_MEMORY] || k->unit->fits      ? CASE_MEMORY
                                                         : CASE_ARITHMETIC;
    k->basis = basis_of(k, c);
    for (int i = 0; i < c->jobs; i++)
        any = any || (k->row[i] && !c->job[i].held);
    for (int i = 0; any && k->kind == CASE_TIME && i < c->jobs; i++)
        k->row[i] = k->row[i] && !c->job[i].held;
    k->free = 0;
    for (int x = 0; x < combinations; x++)
        k->free |= moved_by(k, c, x);
}

/* True if the interval is so wide that nearly any figure would lie in it.  Not wide: a percentage
 * known to within the points that count as reproduced, even near 0; a figure that is exceeded for
 * certain. */
static bool wide(const struct case_claim *k)
{
    if (k->kind == CASE_MEMORY || (k->at_least && k->lo >= k->published) ||
        (k->unit->points && k->hi - k->lo <= 2 * k->within))
        return false;
    return k->factor > CASE_FACTOR;
}

static bool may_fit(const struct case_claim *k)
{
    return k->unit->fits && k->lo <= 1 && k->hi > 1; /* capacity inside the interval */
}

static void judge(struct case_claim *k, const bool *kept, int combinations)
{
    int all = 0, held = 0, near = 0;

    k->lo = INFINITY;
    k->hi = -INFINITY;
    for (int x = 0; x < combinations; x++)
        if (kept[x]) {
            k->lo = fmin(k->lo, k->at[x].lo);
            k->hi = fmax(k->hi, k->at[x].hi);
            all++;
            held += holds(k, x);
            near += reproduces(k, &k->at[x]);
        }
    k->ours = k->at[k->chosen].ours;
    k->off = off(k, k->ours);
    k->factor = k->lo == k->hi ? 1 : k->lo > 0 ? sqrt(k->hi / k->lo) : INFINITY;
    k->verdict = holding(k, combinations) == 0         ? CASE_EXCLUDED
                 : held < all || wide(k) || may_fit(k) ? CASE_UNDECIDED
                 : near == all                         ? CASE_REPRODUCED
                                                       : CASE_CONSISTENT;
}

/* True if our figure moves the other way than the published one does from the claim before.
 * Differences within `within` have no direction. */
static bool turns(const struct case_claim *k, const struct case_claim *before)
{
    double theirs = k->published - before->published, mine = k->ours - before->ours;
    double least = k->within / 100 * (k->unit->points ? 100 : fabs(before->published));

    return fabs(theirs) > least && theirs * mine < 0;
}

/* --- sentences --- */

static void say(struct case_claim *k, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void say(struct case_claim *k, const char *fmt, ...)
{
    size_t used = strlen(k->reason);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(k->reason + used, CASE_REASON - used, fmt, ap);
    va_end(ap);
}

/* Returns the factor on this job's message time that makes the claim true; NAN: none.  *timed: the
 * claim depends on that time. */
static double needed_scale(const struct case_claim *k, struct case_values *s, int job, bool *timed)
{
    double lo = 1e-3, hi = 1e5, at_lo, at_hi, at;

    s->scaled = job;
    s->scale = lo;
    bool known = case_value_in(&at_lo, k->expression, k->unit, s, NULL) == 0;
    s->scale = hi;
    known = known && case_value_in(&at_hi, k->expression, k->unit, s, NULL) == 0;
    *timed = known && at_lo != at_hi;
    known = known && (at_lo - k->published) * (at_hi - k->published) <= 0;
    for (int i = 0; known && i < BISECTIONS; i++) {
        s->scale = sqrt(lo * hi);
        case_value_in(&at, k->expression, k->unit, s, NULL);
        if ((at_lo - k->published) * (at - k->published) <= 0)
            hi = s->scale;
        else
            lo = s->scale;
    }
    s->scaled = -1;
    return known ? lo : NAN;
}

/* Write, for each job of the claim, the split of its step and the message time that the claim
 * needs. */
static void say_needs(struct case_claim *k, struct case_values *s)
{
    const struct casefile *c = s->file;
    char rest[UNITS_TEXT], seen[UNITS_TEXT], want[UNITS_TEXT];
    bool named[CASE_JOBS_MAX] = {false};
    double value;
    bool any = false, any_timed = false;

    s->mentioned = named;
    case_value_in(&value, k->expression, k->unit, s, NULL);
    s->mentioned = NULL;
    for (int i = 0; i < c->jobs; i++) {
        const struct case_value *v = &s->value[i];
        bool timed = false;
        double scale = named[i] ? needed_scale(k, s, i, &timed) : NAN;
        if (!timed)
            continue;
        say(k, "; %s: %s of compute and the like, %s of messages", c->job[i].name,
            units_seconds_text(rest, v->sec - v->exposed), units_seconds_text(seen, v->exposed));
        any_timed = true;
        any = any || isfinite(scale);
        if (isfinite(scale))
            say(k, " (the claim needs %s, %.3g times that)",
                units_seconds_text(want, v->exposed * scale), scale);
    }
    if (any_timed && !any)
        say(k, "; no time of one job's messages makes the claim true");
}

static int say_readings(struct case_claim *k, struct case_values *s, struct err *err)
{
    char text[FIGURE];

    for (int i = 0; i < k->readings; i++) {
        struct case_reading *r = &k->reading[i];
        if (case_value_in(&r->value, r->expression, k->unit, s, err) < 0)
            return -1;
        double d = k->unit->points ? r->value - k->published : 100 * (r->value / k->published - 1);
        say(k, "; %s: %s (%+.1f%s)", r->text, case_figure(text, sizeof(text), k->unit, r->value), d,
            k->unit->points ? " points" : " %");
    }
    return 0;
}

/* Write the memory use of each job of the claim. */
static void say_memory(struct case_claim *k, struct case_values *s)
{
    const struct casefile *c = s->file;
    bool named[CASE_JOBS_MAX] = {false};
    double value;

    s->mentioned = named;
    case_value_in(&value, k->expression, k->unit, s, NULL);
    s->mentioned = NULL;
    for (int i = 0; i < c->jobs; i++) {
        const struct memory *m = &s->value[i].memory;
        bool first = true;
        if (!named[i])
            continue;
        say(k, "; %s: %.0f GB of %.0f:", c->job[i].name, m->total / 1e9, m->capacity / 1e9);
        for (int p = 0; p < MEMORY_PARTS; p++) {
            double bytes;
            memcpy(&bytes, (const char *)m + memory_part[p].at, sizeof(bytes));
            if (bytes >= 1e9) {
                say(k, "%s %s %.0f", first ? "" : ",", memory_part[p].name, bytes / 1e9);
                first = false;
            }
        }
    }
}

/* Write "whatever seq and batch are". */
static void say_keys(struct case_claim *k, const struct casefile *c)
{
    for (int u = 0; u < c->unknowns; u++)
        say(k, "%s%s",
            u == 0                ? " whatever "
            : u + 1 < c->unknowns ? ", "
                                  : " and ",
            c->unknown[u].key);
    say(k, c->unknowns == 1 ? " is" : " are");
}

static bool names_jobs(const struct case_claim *k, const struct casefile *c)
{
    bool named[CASE_JOBS_MAX] = {false};
    struct case_values s = {.file = c, .mentioned = named, .scaled = -1};
    double value;

    case_value_in(&value, k->expression, k->unit, &s, NULL);
    for (int i = 0; i < c->jobs; i++)
        if (named[i])
            return true;
    return false;
}

/* Returns the unknowns that move the claim and have the same value in all kept combinations. */
static unsigned settled(const struct case_claim *k, const struct casefile *c, const bool *kept,
                        int combinations)
{
    unsigned one = k->free;

    for (int u = 0; u < c->unknowns; u++)
        for (int x = 0; x < combinations; x++)
            if (kept[x] && digit(c, x, u) != digit(c, k->chosen, u))
                one &= ~(1U << u);
    return one;
}

/* Write the values that the other rows chose, and those left open. */
static void say_choice(struct case_claim *k, const struct casefile *c, const bool *kept,
                       int combinations)
{
    char with[CASE_COMBINATION];
    unsigned one = settled(k, c, kept, combinations), open = k->free & ~one;

    if (k->verdict == CASE_EXCLUDED)
        return;
    if (one)
        say(k, ", with %s as %d other row%s choose%s", combination_text(with, c, k->chosen, one),
            k->choosers, k->choosers > 1 ? "s" : "", k->choosers > 1 ? "" : "s");
    for (int u = 0; u < c->unknowns; u++)
        if (open & 1U << u)
            say(k, "%s%s", open & ((1U << u) - 1) ? ", " : ", open: ", c->unknown[u].key);
}

/* Returns the first combination that holds, or the first kept one that does not. */
static int first_that(const struct case_claim *k, bool held, const bool *kept, int combinations)
{
    for (int x = 0; x < combinations; x++)
        if (k->at[x].possible && holds(k, x) == held && (!kept || kept[x]))
            return x;
    return -1;
}

static void say_undecided(struct case_claim *k, const struct casefile *c, const bool *kept,
                          int combinations)
{
    char with[CASE_COMBINATION], without[CASE_COMBINATION];
    int yes = first_that(k, true, kept, combinations),
        no = first_that(k, false, kept, combinations);

    if (yes < 0)
        say(k, "; it needs %s, which the other rows do not choose",
            combination_text(with, c, first_that(k, true, NULL, combinations), k->free));
    else if (no >= 0)
        say(k, "; so with %s, not with %s", combination_text(with, c, yes, k->free),
            combination_text(without, c, no, k->free));
    if (may_fit(k) && no < 0)
        say(k, "; it may fit and may not: the interval reaches across the capacity");
    else if (wide(k) && isfinite(k->factor))
        say(k, "; the interval is a factor of %.3g to either side", k->factor);
    else if (wide(k))
        say(k, "; the interval reaches 0");
}

static void say_figure(struct case_claim *k, const struct casefile *c, int combinations)
{
    char ours[FIGURE], lo[FIGURE], hi[FIGURE];
    bool plain = k->unit->fits;

    k->reason[0] = '\0';
    say(k, "%s", plain ? "" : case_figure(ours, sizeof(ours), k->unit, k->ours));
    if (plain)
        say(k, "%.2f of the memory", k->ours);
    if (k->hi > k->lo && plain)
        say(k, " (%.2f .. %.2f)", k->lo, k->hi);
    else if (k->hi > k->lo)
        say(k, " (%s .. %s)", case_figure(lo, sizeof(lo), k->unit, k->lo),
            case_figure(hi, sizeof(hi), k->unit, k->hi));
    if (combinations > 1 && k->verdict == CASE_EXCLUDED && names_jobs(k, c))
        say_keys(k, c);
    if (!plain && fabs(k->off) >= 0.05)
        say(k, ", %+.1f %s", k->off, k->unit->points ? "points" : "%");
}

static void say_direction(struct case_claim *k, const struct case_claim *before)
{
    char text[2][FIGURE];

    say(k, "; %s from %s where the published figure %s from %s",
        k->ours < before->ours ? "falls" : "rises",
        case_figure(text[0], FIGURE, k->unit, before->ours),
        k->published < before->published ? "falls" : "rises",
        case_figure(text[1], FIGURE, k->unit, before->published));
}

/* Write the sentence of a claim whose figures and verdict are known; s: the chosen combination. */
static int case_reason(struct case_claim *k, struct case_values *s, const bool *kept,
                       int combinations, struct err *err)
{
    const struct casefile *c = s->file;

    say_figure(k, c, combinations);
    say_choice(k, c, kept, combinations);
    if (k->verdict == CASE_UNDECIDED)
        say_undecided(k, c, kept, combinations);
    if (k->verdict == CASE_EXCLUDED && !names_jobs(k, c))
        say(k, ": the published figures contradict each other");
    else if (k->unit->fits)
        say_memory(k, s);
    else if (k->verdict == CASE_EXCLUDED)
        say_needs(k, s);
    return say_readings(k, s, err);
}

/* Find the combination at which most of the possible claims hold. */
static void hold_together(struct casefile *c, int combinations)
{
    int by = 0;

    c->held = c->held_of = 0;
    for (int i = 0; i < c->claims; i++)
        c->held_of += c->claim[i].verdict != CASE_EXCLUDED;
    for (int x = 0; x < combinations; x++) {
        int held = 0;
        for (int i = 0; i < c->claims; i++)
            held += holds(&c->claim[i], x);
        by = held > c->held ? x : by;
        c->held = held > c->held ? held : c->held;
    }
    combination_text(c->held_by, c, by, ~0U);
}

int case_judge(struct casefile *c, struct case_values *s, int combinations, struct err *err)
{
    int rc = 0;

    for (int i = 0; i < c->claims; i++)
        classify(&c->claim[i], c, combinations);
    for (int i = 0; rc == 0 && i < c->claims; i++) {
        struct case_claim *k = &c->claim[i];
        bool kept[CASE_COMBINATIONS_MAX];
        choose(k, kept, c, combinations);
        judge(k, kept, combinations);
        bool turned =
            k->follows >= 0 && k->verdict != CASE_EXCLUDED && turns(k, &c->claim[k->follows]);
        rc = case_reason(k, &s[k->chosen], kept, combinations, err);
        if (turned) {
            k->verdict = CASE_DIRECTION;
            say_direction(k, &c->claim[k->follows]);
        }
    }
    hold_together(c, combinations);
    return rc;
}

struct case_counts cases_count(const struct casefile *c, int n)
{
    struct case_counts counts = {.unexpected = 0};

    for (int i = 0; i < n; i++)
        for (int k = 0; k < c[i].claims; k++) {
            const struct case_claim *one = &c[i].claim[k];
            counts.of[one->kind][one->verdict]++;
            if (one->kind == CASE_TIME)
                counts.times[one->basis][one->verdict]++;
            counts.unexpected += case_unexpected(&c[i].claim[k]);
        }
    return counts;
}
