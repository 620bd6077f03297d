/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/plan_cost.h"

#include <math.h>

#include "base/mem.h"
#include "base/units.h"
#include "probe/schedule.h"

#define GUESS_ALPHA 1e-5 /* s */
#define GUESS_BPS_CPU 1e10
#define GUESS_BPS_GPU 1e11
#define MAX_RUN_CPU 0.1 /* s */
#define MAX_RUN_GPU 1.0
#define TURN_OVERHEAD 2e-3 /* s: gathering and agreeing after each size */

/* Turns of a round: sizes times epochs; its groups run at the same time. */
static double turns(const struct round *r)
{
    return (double)plan_steps(r) * __builtin_popcount(r->epochs);
}

double plan_points(const struct plan *p)
{
    double points = 0;

    for (int i = 0; i < p->rounds; i++)
        points += turns(&p->round[i]) * p->round[i].groups;
    return points;
}

double plan_time_cap(const struct plan *p, double asked)
{
    double all = 0;

    if (asked > 0)
        return asked;
    for (int i = 0; i < p->rounds; i++)
        all += turns(&p->round[i]);
    return fmin(0.1, fmax(0.02, 40 / all));
}

double plan_max_run(const struct topo *t, double asked)
{
    if (asked > 0)
        return asked;
    return t->endpoint[0].kind == ENDPOINT_GPU ? MAX_RUN_GPU : MAX_RUN_CPU;
}

/* seconds: if nothing disturbs; at_most: every size until its time cap, as on a busy machine. */
static void guess(const struct plan *p, const struct topo *t, const struct measure_opts *o,
                  double *seconds, double *at_most, double *bytes)
{
    double cap = plan_time_cap(p, o->time_cap), most = plan_max_run(t, o->max_run);
    double rate = t->endpoint[0].kind == ENDPOINT_GPU ? GUESS_BPS_GPU : GUESS_BPS_CPU;

    *seconds = *at_most = *bytes = 0;
    for (int i = 0; i < p->rounds; i++) {
        const struct round *r = &p->round[i];
        int n = plan_steps(r), epochs = __builtin_popcount(r->epochs), ranks = r->group[0].size;
        for (int k = 0; k < n; k++) {
            double size = (double)plan_size(r, ranks, k), one = GUESS_ALPHA * ranks + size / rate;
            double runs = o->iters ? o->iters : fmin(fmax(cap / one, 3), 32);
            if (one > most)
                break;
            *seconds += epochs * ((runs + fmin(o->warmup, cap / 4 / one)) * one + TURN_OVERHEAD);
            *at_most += epochs * (1.25 * fmax(cap, runs * one) + TURN_OVERHEAD);
            *bytes += epochs * runs * size * r->groups * ranks;
        }
    }
}

void plan_cost_print(FILE *out, const struct plan *p, const struct topo *t,
                     const struct measure_opts *o)
{
    char moved[UNITS_TEXT], took[UNITS_TEXT], most[UNITS_TEXT];
    double sec, at_most, bytes;

    guess(p, t, o, &sec, &at_most, &bytes);
    fprintf(out,
            "%d endpoints, %d rounds, about %.0f points, %s moved, about %s to %s of measuring\n",
            t->endpoints, p->rounds, plan_points(p), units_bytes_text(moved, bytes),
            units_seconds_text(took, sec), units_seconds_text(most, fmax(sec, at_most)));
}

double plan_exact_seconds(const struct topo *t, size_t bytes)
{
    static const enum op ops[] = {OP_PAIR_LATENCY, OP_PAIR_BW, OP_PAIR_BW};
    const int rounds = schedule_circle_rounds(t->endpoints);
    struct measure_opts o;
    struct plan one = {NULL, 0};
    double sec, at_most, moved;

    for (int i = 0; i < 3; i++) {
        struct round *r = plan_add(&one, STAGE_TOURNAMENT, ops[i], 1);
        r->first = r->last = i ? bytes : 8;
        r->factor = 2;
        r->epochs = 1;
        r->group[0].members = mem_calloc(2, sizeof(int));
        r->group[0].size = 2;
    }
    measure_defaults(&o);
    o.time_cap = fmin(0.1, fmax(0.02, 40 / (3.0 * rounds))); /* that of the whole plan */
    guess(&one, t, &o, &sec, &at_most, &moved);
    plan_free(&one);
    return sec * rounds;
}
