/* SPDX-License-Identifier: BSD-3-Clause */
/* Exceptions of the cost matrix from the parts that the noise model names (noise/noise.h). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/stats.h"
#include "base/units.h"
#include "cost/fit/fit_impl.h"

/* Factor that prices use.  A transfer that takes 1 / depth times as long in a share of the time takes
 * (1 - share) + share / depth times as long on average. */
static double price_factor(const struct found *x)
{
    double depth = exp(x->effect);

    switch (x->state) {
    case STATE_DEAD:
    case STATE_WRONG:
        return 0;
    case STATE_SLOW:
    case STATE_LOADED: /* collectives always run beside other traffic */
        return depth;
    case STATE_INTERMITTENT:
    case STATE_SAMPLES:
        return 1 / (1 - x->share + x->share / depth);
    default:
        return 1;
    }
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
        return mem_printf("no answer in %d of %d measurements", x->looks, x->looks);
    if (e->state == STATE_LATE)
        return mem_printf("%d measurements in %d block%s of time answer %s later than the %s of %s",
                          x->looks, x->blocks, units_s(x->blocks),
                          units_seconds_text(add, e->alpha_add),
                          units_seconds_text(usual, x->usual_s), tier_text(m, e->tier));
    if (x->alone)
        snprintf(alone, sizeof(alone), ", %d of them alone", x->alone);
    return mem_printf("%d measurements with %d partner%s in %d block%s of time%s: %.2f of %s%s",
                      x->looks, x->partners, units_s(x->partners), x->blocks, units_s(x->blocks),
                      alone, exp(x->effect), tier_text(m, e->tier),
                      when[e->state] ? when[e->state] : "");
}

static void add(struct fit *f, const struct found *x)
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
        e.alpha_add = x->usual_s * expm1(-x->effect);
    } else if (x->state != STATE_DEAD) {
        e.lo = exp(x->effect - STATS_Z95 * x->sd);
        e.hi = fmin(1, exp(x->effect + STATS_Z95 * x->sd));
        e.depth = x->state == STATE_SLOW ? 0 : exp(x->effect);
        e.share = x->state == STATE_SLOW ? 0 : x->share;
    }
    e.why = evidence_text(f->m, &e, x);
    MEM_PUSH(f->m->exception, f->m->exceptions) = e;
}

/* Worst first: wrong data, no answer, slow. */
static int severity(const struct exception *e)
{
    return e->wrong ? 2 : e->factor <= 0;
}

static int by_place(const void *a, const void *b)
{
    const struct exception *x = a, *y = b;

    return stats_order((double[]){-severity(x), x->part, x->a, x->b, x->tier, x->side, x->state},
                       (double[]){-severity(y), y->part, y->a, y->b, y->tier, y->side, y->state},
                       7);
}

void fit_parts(struct fit *f)
{
    struct matrix *m = f->m;

    for (int i = 0; i < f->noise.founds; i++)
        add(f, &f->noise.found[i]);
    if (m->exceptions)
        qsort(m->exception, (size_t)m->exceptions, sizeof(*m->exception), by_place);
}
