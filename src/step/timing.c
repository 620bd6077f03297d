/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/timing.h"

#include <math.h>
#include <string.h>

#include "base/units.h"

void coefficients_of(struct coefficients *c, const struct rate *rate, const struct constants *k,
                     double stretch)
{
    double bytes = constants_get(k, CONSTANT_OPTIMIZER_BYTES_PER_PARAM)->value;
    double share = constants_get(k, CONSTANT_OPTIMIZER_HBM_SHARE)->value;

    for (int i = 0; i < WORK_PARTS; i++)
        c->unit[i] = 1 / rate->of[i];
    c->stretch = stretch;
    for (int i = 0; i < EXPOSE_COUNT; i++)
        c->exposed[i] = constants_get(k, exposure_constant[i])->value;
    c->overlap = constants_get(k, CONSTANT_OVERLAP_DP)->value;
    c->beside = constants_get(k, CONSTANT_OVERLAP_LAYER)->value;
    c->optimizer = rate->hbm_Bps > 0 ? bytes / (rate->hbm_Bps * share) : 0;
    c->fixed = constants_get(k, CONSTANT_FIXED_SECONDS)->value;
    c->host = rate->host;
    c->links = rate->links;
    c->domain = rate->domain;
}

/* Parts `from` up to `to`: what grows with tokens comes before WORK_WEIGHTS. */
static double seconds_of(const double *amount, const struct coefficients *c, int from, int to)
{
    double sum = 0;

    for (int i = from; i < to; i++)
        sum += amount[i] * c->unit[i];
    return sum;
}

static struct stage_pace stage_pace(const struct stage_work *s, const struct coefficients *c)
{
    return (struct stage_pace){
        .forward = seconds_of(s->forward, c, 0, WORK_WEIGHTS),
        .backward = seconds_of(s->backward, c, 0, WORK_WEIGHTS),
        .still_forward = seconds_of(s->forward, c, WORK_WEIGHTS, WORK_PARTS),
        .still_backward = seconds_of(s->backward, c, WORK_WEIGHTS, WORK_PARTS),
        .host = (s->forward[WORK_LAUNCH] + s->backward[WORK_LAUNCH]) * c->host};
}

/* Weights' gradients of a microbatch on the mean stage: as much as the forward products. */
static double weight_seconds(const struct work *w, const struct coefficients *c)
{
    const double *f = w->mean.forward;

    return w->weights * (f[WORK_LINEAR] * c->unit[WORK_LINEAR] +
                         f[WORK_EXPERT] * c->unit[WORK_EXPERT] + f[WORK_HEAD] * c->unit[WORK_HEAD]);
}

void pace_of(struct pace *p, const struct work *w, const struct coefficients *c)
{
    *p = (struct pace){stage_pace(&w->mean, c), stage_pace(&w->other, c), stage_pace(&w->last, c),
                       weight_seconds(w, c)};
}

/* Seconds of one microbatch with `times` the tokens. */
static double forward(const struct stage_pace *p, double times, const struct coefficients *c)
{
    return (p->forward * times + p->still_forward) * c->stretch;
}

static double backward(const struct stage_pace *p, double times, const struct coefficients *c)
{
    return (p->backward * times + p->still_backward) * c->stretch;
}

/* What the GPU waits for the host beyond its own seconds of a microbatch. */
static double waiting(double gpu, const struct stage_pace *p, const struct coefficients *c)
{
    return fmax(0, p->host * c->stretch - gpu);
}

/* Of one microbatch, `messages` seconds of messages inside layers beside it. */
static double both(const struct stage_pace *p, double times, double messages,
                   const struct coefficients *c)
{
    double gpu = forward(p, times, c) + backward(p, times, c);

    return gpu + waiting(gpu + messages, p, c);
}

/* The slowest stage sets the pace. */
static void compute(struct timing *t, const struct pace *p, double times, double messages,
                    const struct coefficients *c, double microbatches)
{
    t->last = both(&p->last, times, messages, c) >= both(&p->other, times, messages, c);
    const struct stage_pace *s = t->last ? &p->last : &p->other;
    double f = forward(s, times, c), b = backward(s, times, c);

    t->waits = waiting(f + b + messages, s, c);
    t->forward = f + t->waits * f / (f + b);
    t->backward = b + t->waits * b / (f + b);
    t->compute = (t->forward + t->backward) * microbatches;
}

static void parts(struct timing *t, const struct work *w, const struct coefficients *c,
                  double microbatches)
{
    const struct stage_work *s = t->last ? &w->last : &w->other;

    for (int i = 0; i < WORK_PARTS; i++)
        t->part[i] = (s->forward[i] + s->backward[i]) * c->unit[i] * c->stretch * microbatches;
    t->part[WORK_LAUNCH] += t->waits * microbatches;
}

static bool is_window(const struct message *m)
{
    return m->exposure == EXPOSE_WINDOW;
}

/* What it takes of its price: groups of ranks in a row, from a domain's first on. */
static double links(const struct message *m, const struct coefficients *c)
{
    return m->span.size * m->span.stride > c->domain ? c->links : 1;
}

/* Weights and gradients. */
static bool is_state(const struct message *m)
{
    return m->phase == PHASE_FORWARD || m->phase == PHASE_BACKWARD;
}

/* Seconds of messages that are seen, but of weights and gradients. */
struct timing_seen {
    double all;    /* of the step */
    double inside; /* of those inside layers, in one pass of each kind together */
};

/* What has a share of its own that stays: inside layers, between stages, and what runs beside
 * nothing. */
static struct timing_seen shares(struct timing *t, const struct traffic *tr, const double *one,
                                 const struct coefficients *c)
{
    struct timing_seen s = {0, 0};

    for (int i = 0; i < tr->messages; i++) {
        const struct message *m = &tr->message[i];
        t->raw[i] = one[i] * m->count * links(m, c);
        t->seen[i] = is_window(m) ? 0 : t->raw[i] * c->exposed[m->exposure];
        s.all += is_state(m) ? 0 : t->seen[i];
        s.inside += m->phase == PHASE_LAYER ? t->seen[i] / m->rounds : 0;
    }
    return s;
}

/* Neither of these has compute beside it: the first gather of a forward pass, the last reduction.
 */
static bool has_edge(const struct message *m)
{
    return m->phase == PHASE_FORWARD || m->op != OP_ALL_GATHER;
}

/* The messages of one pass, and what they may hide behind. */
struct timing_window {
    int at[TRAFFIC_MAX], n;
    double each[TRAFFIC_MAX]; /* s of what one pass has of it, nothing hidden */
    double compute, inside;   /* s of a pass */
};

/* What is seen in `passes` equal passes of the messages whose `rounds` is at least `rounds`.  Layers
 * are alike, so the sum over layers of max(exposed c, c - overlap w) is the same over the whole
 * pass. */
static void window(struct timing *t, const struct traffic *tr, const struct timing_window *w,
                   const double *one, const struct coefficients *c, double rounds, double passes)
{
    double comm = 0;

    for (int k = 0; k < w->n && passes > 0; k++)
        if (tr->message[w->at[k]].rounds >= rounds)
            comm += w->each[k];
    if (!(comm > 0))
        return;
    double hides = c->overlap * w->compute + c->beside * w->inside;
    double seen = fmax(c->exposed[EXPOSE_WINDOW] * comm, comm - hides) / comm;
    for (int k = 0; k < w->n; k++) {
        int i = w->at[k];
        const struct message *m = &tr->message[i];
        if (m->rounds < rounds)
            continue;
        double edge = has_edge(m) ? one[i] * links(m, c) * (1 - seen) : 0;
        t->seen[i] += passes * (edge + w->each[k] * seen);
    }
}

/* A layer that is not gathered ahead waits for its weights, with nothing beside. */
static bool waits(const struct message *m, const struct recipe *r)
{
    return !r->prefetch && recipe_gathers_weights(r) && m->op == OP_ALL_GATHER && is_window(m);
}

/* m-1 microbatches have the messages of every round, the last one has all.  What is seen inside
 * layers is shared out over the passes as the compute is. */
static void windows(struct timing *t, const struct traffic *tr, const double *one,
                    const struct coefficients *c, double layers, double microbatches,
                    const struct recipe *r)
{
    double share = t->forward / (t->forward + t->backward);
    struct timing_window w;

    for (int phase = PHASE_FORWARD; phase <= PHASE_BACKWARD; phase++) {
        bool forward = phase == PHASE_FORWARD;
        w.n = 0;
        w.compute = forward ? t->forward : t->backward;
        w.inside = layers * (forward ? share : 1 - share);
        for (int i = 0; i < tr->messages; i++)
            if ((int)tr->message[i].phase == phase && is_window(&tr->message[i])) {
                w.each[w.n] = t->raw[i] / tr->message[i].rounds;
                w.at[w.n++] = i;
            }
        window(t, tr, &w, one, c, 1, 1);
        window(t, tr, &w, one, c, 2, microbatches - 1);
    }
    for (int i = 0; i < tr->messages; i++)
        if (is_window(&tr->message[i]))
            t->seen[i] = waits(&tr->message[i], r) ? t->raw[i] : fmin(t->seen[i], t->raw[i]);
}

/* Idle time while the pipeline fills and drains.  Zero-bubble schedules fill it with weights'
 * gradients W: of (p-1)(F+B+W), h1 leaves (p-1)(F+B-W) and h2 (p-1)(F+B-2W) (Qi et al. 2023, table
 * 2); DualPipe (p/2-1)(F + B+W + B - 2W) (DeepSeek-V3, 2024, table 2). */
static double bubble(const struct timing *t, double mean, double weights, double messages,
                     int stages, const struct recipe *r)
{
    double slow = t->forward + t->backward + messages;
    double idle = (stages * (mean + messages) - slow) / r->stages;

    if (stages < 2)
        return 0;
    switch (r->schedule) {
    case SCHEDULE_ZB_H1:
        return fmax(0, idle - 2 * (stages - 1) * weights);
    case SCHEDULE_ZB_H2:
        return fmax(0, idle - 3 * (stages - 1) * weights);
    case SCHEDULE_DUALPIPE:
        return fmax(0, (stages / 2.0 - 1) * (mean + messages + t->backward - 3 * weights));
    default:
        return idle;
    }
}

/* All but the messages that are seen, which make the host's waiting shorter and the bubble longer. */
static void without_messages(struct timing *t, const struct timing_seen *seen, const struct pace *p,
                             double times, double updated, const struct coefficients *c,
                             const struct layout *l, const struct recipe *r)
{
    double m = layout_microbatches(l, r);

    compute(t, p, times, seen->inside, c, m);
    t->weights = p->weights * times * c->stretch;
    t->bubble = bubble(t, both(&p->mean, times, seen->inside, c), t->weights, seen->all / m,
                       l->size[AXIS_PP], r);
    t->optimizer = updated * c->optimizer;
    t->fixed = c->fixed;
    t->eval = r->eval_seconds;
    t->checkpoint = r->checkpoint_seconds;
    t->other = r->fixed_seconds;
    t->sec = t->bubble + t->optimizer + t->fixed + t->eval + t->checkpoint + t->other + t->compute;
}

double timing_least(const struct pace *p, double times, double updated,
                    const struct coefficients *c, const struct layout *l, const struct recipe *r)
{
    struct timing t;

    without_messages(&t, &(struct timing_seen){0, 0}, p, times, updated, c, l, r);
    return t.sec - (r->schedule == SCHEDULE_DUALPIPE ? t.bubble : 0);
}

void timing_at(struct timing *t, const struct traffic *tr, const double *one, const struct pace *p,
               double times, const struct coefficients *c, const struct layout *l,
               const struct recipe *r)
{
    struct timing_seen seen = shares(t, tr, one, c);

    without_messages(t, &seen, p, times, tr->updated, c, l, r);
    windows(t, tr, one, c, seen.inside, layout_microbatches(l, r), r);
    for (int i = 0; i < tr->messages; i++)
        t->sec += t->seen[i];
}

void timing_of(struct timing *t, const struct traffic *tr, const double *one, const struct work *w,
               const struct coefficients *c, const struct layout *l, const struct recipe *r)
{
    struct pace p;

    pace_of(&p, w, c);
    timing_at(t, tr, one, &p, 1, c, l, r);
    parts(t, w, c, layout_microbatches(l, r));
}

/* --- the stretch of compute that a measured step asks for --- */

enum { ROUNDS = 200 };

int timing_stretch(double *stretch, double (*seconds)(void *ctx, double stretch), void *ctx,
                   double measured, struct err *err)
{
    double a = STRETCH_MIN, b = STRETCH_MAX;
    double fa = seconds(ctx, a) - measured, fb = seconds(ctx, b) - measured;
    char got[UNITS_TEXT], want[UNITS_TEXT];

    if (!isfinite(fa) || !isfinite(fb))
        return err_set(err, "the anchor cannot be predicted");
    if (fa > 0 || fb < 0)
        return err_set(err, "with compute %s the anchor is predicted at %s, and %s were measured",
                       fa > 0 ? "all but left out" : "taking 50 times as long",
                       units_seconds_text(got, (fa > 0 ? fa : fb) + measured),
                       units_seconds_text(want, measured));
    /* False position with the Illinois rule (Dowell and Jarratt 1971): a step is nearly linear in
     * the stretch, so this takes a handful of rounds; halving bounds it where a kink does not. */
    for (int i = 0, side = 0; i < ROUNDS; i++) {
        double s = i % 8 == 7 ? (a + b) / 2 : (a * fb - b * fa) / (fb - fa);
        double f = seconds(ctx, s) - measured;
        *stretch = s;
        if (fabs(f) <= 1e-9 * measured || b - a <= 1e-12 * b)
            break;
        if (f > 0) {
            b = s;
            fb = f;
            fa = side > 0 ? fa / 2 : fa;
            side = 1;
        } else {
            a = s;
            fa = f;
            fb = side < 0 ? fb / 2 : fb;
            side = -1;
        }
    }
    return 0;
}
