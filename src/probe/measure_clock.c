/* SPDX-License-Identifier: BSD-3-Clause */
/* measure_clock.c - where the seconds of a campaign go, and what it is estimated to take. */
#include <math.h>
#include <string.h>

#include "base/log.h"
#include "probe/measure_impl.h"
#include "probe/schedule.h"

/* What these rounds are guessed to take is ahead now. */
static void add_ahead(struct measure_clock *c, const struct plan *plan)
{
    for (int i = 0; i < plan->rounds; i++) {
        const struct round *r = &plan->round[i];
        for (int k = 0; k < plan_steps(r) && stage_by_nic(r->stage) == c->opts->nics; k++)
            c->ahead[op_is_pair(r->op)] +=
                __builtin_popcount(r->epochs) *
                plan_turn_seconds(r, c->topo, c->opts, plan_size(r, r->group[0].size, k));
        c->epochs |= r->epochs;
    }
}

void measure_clock_open(struct measure_clock *c, const struct topo *t, const struct measure_opts *o,
                        const struct plan *plan)
{
    *c = (struct measure_clock){.topo = t, .opts = o};
    if (!o->time)
        return;
    c->time = *o->time;
    c->time.spent[SPENT_START] = log_now() - c->time.began;
    add_ahead(c, plan);
}

/* By now this machine's pace is known: what turns took of what they were guessed to take.  Retests
 * will be about those that would be chosen now. */
static void estimate(struct measure_clock *c, const struct points *all)
{
    double pace = (c->seen[0] + c->seen[1]) / (c->expected[0] + c->expected[1]);
    struct plan again = {NULL, 0};

    if (c->opts->retest)
        schedule_retest(&again, c->topo, all, c->opts->nics, c->opts->quick);
    add_ahead(c, &again);
    plan_free(&again);
    c->time.estimated = log_now() - c->time.began;
    for (int kind = 0; kind < 2; kind++)
        c->time.estimated += fmax(c->ahead[kind], 0) *
                             (c->expected[kind] > 0 ? c->seen[kind] / c->expected[kind] : pace);
}

/* A turn waits for its slowest group. */
static void note_turn(struct measure_clock *c, double sec)
{
    const struct measure_turn *s = &c->slowest;

    c->time.warmup += s->warmup;
    c->time.spent[SPENT_SAMPLES] += s->messages;
    c->time.spent[SPENT_OPENING] += s->group - s->messages;
    c->time.spent[SPENT_EXCHANGES] += fmax(sec - s->group, 0);
    c->slowest = (struct measure_turn){0};
}

/* The estimate is made after the first epoch, of a single one after its fifth. */
void measure_clock_turn(struct measure_clock *c, const struct round *r, int epoch, size_t bytes,
                        double sec, const struct points *all)
{
    const bool single = !(c->epochs & (c->epochs - 1));
    const int kind = op_is_pair(r->op);

    if (!c->opts->time)
        return;
    double expected = plan_turn_seconds(r, c->topo, c->opts, bytes);
    note_turn(c, sec);
    c->seen[kind] += sec;
    c->expected[kind] += expected;
    c->ahead[kind] -= expected;
    bool knows = c->expected[0] + c->expected[1] >= (c->ahead[0] + c->ahead[1]) / 4;
    if (c->time.estimated <= 0 && (epoch > 0 || (single && knows)))
        estimate(c, all);
}
