/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/timing.h"

#include <math.h>

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
    c->optimizer = rate->adam_Bps > 0  ? bytes / rate->adam_Bps
                   : rate->hbm_Bps > 0 ? bytes / (rate->hbm_Bps * share)
                                       : 0;
    c->fixed = constants_get(k, CONSTANT_FIXED_SECONDS)->value;
    c->host = rate->host;
    c->links = rate->links;
    c->domain = rate->domain;
}

/* Returns the seconds of parts `from` up to `to`.  Parts that grow with tokens come before
 * WORK_WEIGHTS. */
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

/* Returns the seconds of weights' gradients of a microbatch on the mean stage: equal to the forward
 * products. */
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

/* Neither argument is NAN, so this replaces fmax() and fmin(), which check for it and are function
 * calls. */
static double larger(double a, double b)
{
    return a > b ? a : b;
}

static double smaller(double a, double b)
{
    return a < b ? a : b;
}

/* Returns the GPU's wait for the host beyond its own seconds of a microbatch.  messages: exposed
 * messages inside layers. */
static double waiting(const struct stage_seconds *s, double messages)
{
    return larger(0, s->host - (s->forward + s->backward + messages));
}

/* Returns forward and backward of one microbatch, including the wait for the host. */
static double both(const struct stage_seconds *s, double messages)
{
    return s->forward + s->backward + waiting(s, messages);
}

/* The slowest stage determines the pace. */
static void compute(struct timing *t, const struct pace_seconds *p, double messages,
                    double microbatches)
{
    t->last = both(&p->last, messages) >= both(&p->other, messages);
    const struct stage_seconds *s = t->last ? &p->last : &p->other;

    t->waits = waiting(s, messages);
    t->forward = s->forward;
    t->backward = s->backward;
    if (t->waits > 0) {
        t->forward += t->waits * s->forward / (s->forward + s->backward);
        t->backward += t->waits * s->backward / (s->forward + s->backward);
    }
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

/* Returns the factor on a message's price: not 1 if its group leaves a domain, which assumes
 * consecutive ranks from a domain's first one on. */
static double links(const struct message *m, const struct coefficients *c)
{
    return m->span.size * m->span.stride > c->domain ? c->links : 1;
}

/* True for messages of weights and gradients. */
static bool is_state(const struct message *m)
{
    return m->phase == PHASE_FORWARD || m->phase == PHASE_BACKWARD;
}

/* True if one of the messages has no compute beside it: the first gather of a forward pass, the
 * last reduction of a backward pass. */
static bool has_edge(const struct message *m)
{
    return m->phase == PHASE_FORWARD || m->op != OP_ALL_GATHER;
}

/* A layer that is not gathered ahead waits for its weights, with no compute beside. */
static bool waits(const struct message *m, const struct recipe *r)
{
    return !r->prefetch && recipe_gathers_weights(r) && m->op == OP_ALL_GATHER && is_window(m);
}

/* Add a message of weights or gradients, which may hide behind compute. */
static void add_state(struct timing_list *list, const struct message *m, int i,
                      const struct recipe *r)
{
    uint64_t bit = (uint64_t)1 << i;

    list->window[m->phase == PHASE_BACKWARD] |= is_window(m) ? bit : 0;
    list->edge |= has_edge(m) ? bit : 0;
    list->waits |= waits(m, r) ? bit : 0;
    list->repeats |= m->rounds > 1 || m->per_microbatch ? bit : 0;
}

void timing_list_of(struct timing_list *list, const struct traffic *tr,
                    const struct coefficients *c, const struct recipe *r)
{
    list->messages = tr->messages;
    list->layers = list->apart = 0;
    list->edge = list->waits = list->repeats = list->window[0] = list->window[1] = 0;
    for (int i = 0; i < tr->messages; i++) {
        const struct message *m = &tr->message[i];
        list->count[i] = m->count;
        list->links[i] = links(m, c);
        list->share[i] = is_window(m) ? 0 : c->exposed[m->exposure];
        if (is_state(m))
            add_state(list, m, i, r);
        else
            list->apart = i + 1;
        if (m->phase == PHASE_LAYER)
            list->layers = i + 1;
    }
}

/* Loop over the messages of a set, in the order of the list. */
#define EACH(i, set)                                                                               \
    for (uint64_t left_ = (set), i; left_ && (i = (uint64_t)__builtin_ctzll(left_), true);         \
         left_ &= left_ - 1)

/* Exposed seconds, without messages of weights and gradients. */
struct timing_seen {
    double all;    /* whole step */
    double inside; /* inside layers, one forward and one backward pass together */
};

/* Set and return the exposed time of a message with a fixed share. */
static double share_of(struct timing *t, const struct timing_list *list, const double *one, int i)
{
    double raw = one[i] * list->count[i] * list->links[i];

    t->raw[i] = raw;
    return t->seen[i] = raw * list->share[i];
}

/* Sum the exposed time of messages inside layers and between stages; set that of the others. */
static struct timing_seen shares(struct timing *t, const struct timing_list *list,
                                 const double *one, double microbatches)
{
    struct timing_seen s = {0, 0};
    int i = 0;

    for (; i < list->layers; i++) {
        double seen = share_of(t, list, one, i);
        s.all += seen;
        s.inside += seen / microbatches;
    }
    for (; i < list->apart; i++)
        s.all += share_of(t, list, one, i);
    for (; i < list->messages; i++)
        share_of(t, list, one, i);
    return s;
}

/* What all passes have in common. */
struct windows {
    const struct timing_list *list;
    const double *one;
    double exposed; /* share that no compute hides */
    double microbatches;
};

/* Add the exposed time of `passes` passes of a set of messages that may hide behind `hides` seconds
 * each.  Layers are alike, so the sum over layers of max(exposed c, c - overlap w) is the same over
 * the whole pass. */
static void window(struct timing *t, const struct windows *w, uint64_t set, double hides,
                   double passes)
{
    const struct timing_list *list = w->list;
    double comm = 0, each[TRAFFIC_MAX];

    EACH(i, set)
    {
        each[i] = list->repeats >> i & 1 ? t->raw[i] / w->microbatches : t->raw[i];
        comm += each[i];
    }
    if (!(comm > 0))
        return;
    double seen = larger(w->exposed * comm, comm - hides) / comm;
    EACH(i, set)
    {
        double edge = list->edge >> i & 1 ? w->one[i] * list->links[i] * (1 - seen) : 0;
        t->seen[i] += passes * (edge + each[i] * seen);
    }
}

/* m-1 microbatches have the messages of every round, the last one has all.  Exposed time inside
 * layers is divided over the passes like the compute. */
static void windows(struct timing *t, const struct timing_list *list, const double *one,
                    const struct coefficients *c, double layers, double microbatches)
{
    const struct windows w = {list, one, c->exposed[EXPOSE_WINDOW], microbatches};
    double share = t->forward / (t->forward + t->backward);

    for (int backward = 0; backward < 2; backward++) {
        uint64_t set = list->window[backward], again = microbatches > 1 ? set & list->repeats : 0;
        double inside = layers * (backward ? 1 - share : share);
        double hides = c->overlap * (backward ? t->backward : t->forward) + c->beside * inside;
        if (!set)
            continue;
        window(t, &w, set, hides, 1);
        if (again != set)
            window(t, &w, again, hides, microbatches - 1);
        else
            EACH(i, set) /* every round equals the last one */
            {
                t->seen[i] += (microbatches - 1) * t->seen[i];
            }
    }
    EACH(i, list->window[0] | list->window[1])
    {
        t->seen[i] = list->waits >> i & 1 ? t->raw[i] : smaller(t->seen[i], t->raw[i]);
    }
}

/* Idle time while the pipeline fills and drains.  Zero-bubble schedules fill it with weights'
 * gradients W: of (p-1)(F+B+W), h1 leaves (p-1)(F+B-W) and h2 (p-1)(F+B-2W) (Qi et al. 2023, table
 * 2); DualPipe (p/2-1)(F + B+W + B - 2W) (DeepSeek-V3, 2024, table 2). */
static double bubble(const struct timing *t, double mean, double weights, double messages,
                     int stages, const struct recipe *r)
{
    double slow = t->forward + t->backward + messages;
    double idle = stages * (mean + messages) - slow;

    if (r->stages > 1) /* division that most callers avoid */
        idle /= r->stages;
    switch (r->schedule) {
    case SCHEDULE_ZB_H1:
        return larger(0, idle - 2 * (stages - 1) * weights);
    case SCHEDULE_ZB_H2:
        return larger(0, idle - 3 * (stages - 1) * weights);
    case SCHEDULE_DUALPIPE:
        return larger(0, (stages / 2.0 - 1) * (mean + messages + t->backward - 3 * weights));
    default:
        return idle;
    }
}

/* Set all times except exposed messages, which shorten the wait for the host and lengthen the
 * bubble. */
static void without_messages(struct timing *t, const struct timing_seen *seen,
                             const struct timing_step *s)
{
    const struct recipe *r = s->recipe;

    compute(t, s->pace, seen->inside, s->microbatches);
    t->weights = s->pace->weights;
    t->bubble = s->stages < 2 ? 0
                              : bubble(t, both(&s->pace->mean, seen->inside), t->weights,
                                       seen->all / s->microbatches, s->stages, r);
    t->optimizer = s->updated * s->coefficients->optimizer;
    t->fixed = s->coefficients->fixed;
    t->eval = r->eval_seconds;
    t->checkpoint = r->checkpoint_seconds;
    t->other = r->fixed_seconds;
    t->sec = t->bubble + t->optimizer + t->fixed + t->eval + t->checkpoint + t->other + t->compute;
}

double timing_least(const struct timing_step *s)
{
    struct timing t;

    without_messages(&t, &(struct timing_seen){0, 0}, s);
    return t.sec - (s->recipe->schedule == SCHEDULE_DUALPIPE ? t.bubble : 0);
}

void timing_at(struct timing *t, const struct timing_step *s, const struct timing_list *list,
               const double *one)
{
    struct timing_seen seen = shares(t, list, one, s->microbatches);

    without_messages(t, &seen, s);
    windows(t, list, one, s->coefficients, seen.inside, s->microbatches);
    for (int i = 0; i < list->messages; i++)
        t->sec += t->seen[i];
}

void timing_of(struct timing *t, const struct traffic *tr, const double *one, const struct work *w,
               const struct coefficients *c, const struct layout *l, const struct recipe *r)
{
    struct timing_list list;
    struct pace_seconds seconds;
    struct pace p;
    struct timing_step s = {&seconds,         tr->updated, layout_microbatches(l, r),
                            l->size[AXIS_PP], c,           r};

    pace_of(&p, w, c);
    pace_at(&seconds, &p, 1, c->stretch);
    timing_list_of(&list, tr, c, r);
    timing_at(t, &s, &list, one);
    parts(t, w, c, s.microbatches);
}

/* --- the stretch of compute for a measured step --- */

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
     * the stretch, so this needs few rounds.  Halving bounds their number at a kink. */
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
