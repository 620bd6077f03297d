/* SPDX-License-Identifier: BSD-3-Clause */
/* measure_clock.c - where the seconds of a campaign go, and the estimate of its duration. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/stats.h"
#include "measure/measure_impl.h"

/* Turns of the same kind and size take the same time; if only the first LIKE words of the kind are
 * equal, nearly the same. */
enum { KIND = 5, LIKE = 3, TRIED_ROUNDS = 5, FEW_ROUNDS = 20, TRIED_OF_FEW = 3 };

struct tried_turn {
    double kind[KIND], bytes;
    double sec, once; /* of the turn; once: its part for opening and checking */
};

static void kind_of(double kind[KIND], const struct measure_clock *k, const struct round *r)
{
    const int *m = r->group[0].members;

    kind[0] = r->op;
    kind[1] = r->group[0].size;
    kind[2] = r->groups > 1;
    kind[3] = r->stage;
    kind[4] = op_is_pair(r->op) ? topo_tier_by(k->topo, m[0], m[1], stage_by_nic(r->stage)) : 0;
}

/* --- record of turns --- */

/* A turn waits for its slowest group. */
static void note_turn(struct measure_clock *k, double sec)
{
    const struct measure_turn *s = &k->slowest;

    k->time.warmup += s->warmup;
    k->time.spent[SPENT_SAMPLES] += s->messages;
    k->time.spent[SPENT_OPENING] += s->group - s->messages;
    k->time.spent[SPENT_EXCHANGES] += fmax(sec - s->group, 0);
    k->slowest = (struct measure_turn){0};
}

void measure_clock_turn(struct measure_clock *k, const struct round *r, size_t bytes, double sec)
{
    if (!k->opts->time)
        return;
    if (k->tries) {
        struct tried_turn *t = &MEM_PUSH(k->tried, k->count);
        *t = (struct tried_turn){.bytes = (double)bytes, .sec = sec, .once = k->slowest.once};
        kind_of(t->kind, k, r);
    }
    note_turn(k, sec);
}

/* --- choice of the trial turns --- */

/* Rounds of the pair matrix cannot be moved to another epoch, because an epoch is a block of
 * time. */
static bool may_come_first(const struct round *r, int epoch)
{
    return plan_steps(r) > 1 || r->epochs >> epoch & 1;
}

/* True if round i is tried: few rounds of each kind are, spread over the plan. */
static bool is_tried(const struct plan *p, const double (*kind)[KIND], int epoch, int i)
{
    int all = 0, before = 0, wanted = 1;

    for (int j = 0; j < p->rounds; j++) {
        bool same = may_come_first(&p->round[j], epoch) && !memcmp(kind[i], kind[j], sizeof(*kind));
        all += same;
        before += same && j < i;
    }
    if (plan_steps(&p->round[i]) == 1)
        wanted = all < FEW_ROUNDS ? TRIED_OF_FEW : TRIED_ROUNDS;
    return !before || before * wanted / all != (before - 1) * wanted / all;
}

int *measure_clock_choose(const struct measure_clock *k, const struct plan *plan, int epoch,
                          int *count)
{
    double(*kind)[KIND] = mem_calloc((size_t)plan->rounds + 1, sizeof(*kind));
    int *all = NULL;

    for (int i = 0; i < plan->rounds; i++)
        kind_of(kind[i], k, &plan->round[i]);
    for (int i = 0; i < plan->rounds; i++)
        if (stage_by_nic(plan->round[i].stage) == k->opts->nics &&
            may_come_first(&plan->round[i], epoch) && is_tried(plan, kind, epoch, i))
            MEM_PUSH(all, *count) = i;
    free(kind);
    return all;
}

static bool has_many(const struct plan *plan)
{
    enum { MANY = 500 };
    int turns = 0;

    for (int i = 0; i < plan->rounds && turns <= MANY; i++)
        turns += plan_steps(&plan->round[i]) * __builtin_popcount(plan->round[i].epochs);
    return turns > MANY;
}

struct plan measure_clock_some(const struct plan *plan, const int *at, int n)
{
    struct plan some = {mem_calloc((size_t)n + 1, sizeof(*some.round)), n};
    const bool many = has_many(plan);

    for (int i = 0; i < n; i++) {
        struct round *r = &some.round[i];
        *r = plan->round[at[i]];
        if (many && plan_steps(r) % 2 == 0)
            r->first *= (size_t)r->factor;
        if (many)
            r->factor *= r->factor;
    }
    return some;
}

/* --- expected time of other turns --- */

/* Trial turns of equal size: the mean time, and the median time for opening, because the first turn
 * includes initialisation of the ranks. */
struct at_size {
    double bytes, sec, once[TRIED_ROUNDS];
    int count;
};

static void add(struct at_size *a, const struct tried_turn *t)
{
    if (a->bytes != t->bytes)
        *a = (struct at_size){.bytes = t->bytes};
    if (a->count == TRIED_ROUNDS)
        return;
    a->once[a->count++] = t->once;
    a->sec += (t->sec - t->once - a->sec) / a->count;
}

static double sec_of(struct at_size *a, bool checks)
{
    return a->sec + (checks ? stats_median(a->once, a->count) : 0);
}

/* Expected time, from the tried turns whose first `words` words of the kind are equal. */
static double expect(const struct measure_clock *k, const double kind[KIND], int words,
                     const struct round *r, double bytes, bool checks)
{
    struct at_size below = {.bytes = 0}, above = {.bytes = INFINITY};

    for (int i = 0; i < k->count; i++) {
        const struct tried_turn *t = &k->tried[i];
        if (memcmp(kind, t->kind, (size_t)words * sizeof(*kind)) != 0)
            continue;
        if (t->bytes <= bytes && t->bytes >= below.bytes)
            add(&below, t);
        if (t->bytes >= bytes && t->bytes <= above.bytes)
            add(&above, t);
    }
    if (!above.count && below.count && plan_steps(r) == 1)
        return sec_of(&below, checks);
    if (!above.count)
        return words > LIKE ? expect(k, kind, LIKE, r, bytes, checks) : 0;
    if (!below.count || below.bytes == above.bytes)
        return sec_of(&above, checks);
    double w = log(bytes / below.bytes) / log(above.bytes / below.bytes);
    return (1 - w) * sec_of(&below, checks) + w * sec_of(&above, checks);
}

double measure_clock_expect(const struct measure_clock *k, const struct round *r, size_t bytes,
                            bool checks)
{
    double kind[KIND];

    kind_of(kind, k, r);
    return expect(k, kind, KIND, r, (double)bytes, checks);
}
