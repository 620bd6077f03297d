/* SPDX-License-Identifier: BSD-3-Clause */
/* case_reason.c - why a claim has its verdict, in words that are computed. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "step/score/case_value.h"

enum { BISECTIONS = 60, FIGURE = 48 };

char *case_figure(char *buf, int size, const struct case_unit *u, double value)
{
    value = fabs(value) < (u->points ? 0.05 : 5e-4) ? 0 : value; /* no "-0" */
    if (u->fits)
        snprintf(buf, (size_t)size, "%s", value <= 1 ? "fits" : "does not fit");
    else if (u->points)
        snprintf(buf, (size_t)size, "%.1f%s", value, u->suffix);
    else
        snprintf(buf, (size_t)size, fabs(value) >= 1e4 ? "%.0f%s" : "%.4g%s", value, u->suffix);
    return buf;
}

static void say(struct case_claim *k, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void say(struct case_claim *k, const char *fmt, ...)
{
    size_t used = strlen(k->reason);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(k->reason + used, CASE_REASON - used, fmt, ap);
    va_end(ap);
}

/* How many times as long the messages of this job must take to make the claim true; NAN: none.
 * *timed: does the claim depend on that time at all? */
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

/* For each job of the claim: how its step splits, and the message time that the claim needs. */
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

/* What fills the memory of each job of the claim. */
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

/* "whatever seq and batch are" */
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

static void say_verdict(struct case_claim *k, const struct casefile *c, int combinations)
{
    char ours[FIGURE], lo[FIGURE], hi[FIGURE], with[CASE_COMBINATION];
    const char *unit = k->unit->points ? "points" : "%";
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
    if (combinations > 1 && k->verdict == CASE_CONSISTENT)
        say(k, ", nearest with %s", case_combination(with, c, k->best));
    if (!plain && fabs(k->off) >= 0.05)
        say(k, ", %+.1f %s", k->off, unit);
}

/* The sentence of a claim whose figures and verdict are known; s: the first combination. */
int case_reason(struct case_claim *k, struct case_values *s, int combinations, struct err *err)
{
    const struct casefile *c = s->file;

    say_verdict(k, c, combinations);
    if (k->verdict == CASE_EXCLUDED && !names_jobs(k, c))
        say(k, ": the published figures contradict each other");
    else if (k->unit->fits)
        say_memory(k, s);
    else if (k->verdict == CASE_EXCLUDED)
        say_needs(k, s);
    return say_readings(k, s, err);
}
