/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/replay/replay.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

const char *const burn_name[BURN_COUNT] = {"auto", "sleep", "spin"};

/* Share of a message inside layers that runs in the forward pass if nothing is computed twice. */
static const struct {
    enum exposure exposure;
    enum op op;
    double share;
} forward_share[] = {
    {EXPOSE_TP, OP_ALL_GATHER, 2.0 / 6}, /* 2 forward, 2 backward, 2 again for weights' gradients */
    {EXPOSE_TP, OP_REDUCE_SCATTER, 0.5},
    {EXPOSE_TP_PLAIN, OP_ALL_GATHER, 2.0 / 6},
    {EXPOSE_TP_PLAIN, OP_REDUCE_SCATTER, 0.5},
    {EXPOSE_TP_PLAIN, OP_ALL_REDUCE, 0.5},
    {EXPOSE_CP, OP_SENDRECV, 1.0 / 3}, /* backward also carries gradients */
    {EXPOSE_CP, OP_ALL_TO_ALL, 0.5},
    {EXPOSE_CP, OP_ALL_GATHER, 0.5},
    {EXPOSE_CP, OP_REDUCE_SCATTER, 0}, /* gradients of the gathered keys */
    {EXPOSE_EP, OP_ALL_TO_ALL, 0.5},   /* dispatch and combine, each way */
    {EXPOSE_EP, OP_ALL_GATHER, 1},     /* token counts, known in backward */
};

struct maker {
    struct replay_plan *p;
    const struct replay_step *s;
    struct pipeline pipe;
    int stage, rank;
    int layers;               /* layers of one chunk */
    int boundary;             /* index of the message between stages; -1: none */
    int started[TRAFFIC_MAX]; /* newest ticket of each message in the side stream */
    bool ahead;               /* the next unit's first gather is already started */
};

int replay_check(const struct recipe *r, struct err *err)
{
    if (r->schedule != SCHEDULE_1F1B && r->schedule != SCHEDULE_INTERLEAVED)
        return err_usage(err, "schedule %s cannot be replayed (1f1b and interleaved can)",
                         recipe_name.schedule[r->schedule]);
    if (r->ep_overlap)
        return err_usage(err, "ep-overlap cannot be replayed: it hides all_to_all behind another "
                              "microbatch's compute");
    return 0;
}

static struct replay_action *add(struct maker *m, enum replay_kind kind, int message)
{
    MEM_PUSH(m->p->action, m->p->actions) =
        (struct replay_action){.kind = kind, .message = message, .peer = -1};
    return &m->p->action[m->p->actions - 1];
}

static const struct message *message_at(const struct maker *m, int i)
{
    return &m->s->traffic->message[i];
}

/* Returns the pieces of a pass that belong to layer `at` of `of`: before it (its inputs) or after
 * it (its outputs), spread evenly. */
static int pieces(double total, int at, int of, bool before)
{
    double from = total * at / of, to = total * (at + 1) / of, tiny = 1e-6;

    return before ? (int)(ceil(to - tiny) - ceil(from - tiny))
                  : (int)(floor(to + tiny) - floor(from + tiny));
}

/* --- side stream --- */

static void start(struct maker *m, int message, int count)
{
    for (int i = 0; i < count; i++) {
        add(m, REPLAY_START, message)->ticket = ++m->p->tickets;
        m->started[message] = m->p->tickets;
    }
}

static void await(struct maker *m, int message)
{
    if (m->started[message])
        add(m, REPLAY_WAIT, message)->ticket = m->started[message];
    m->started[message] = 0;
}

static bool in_side_stream(const struct message *msg, bool backward, bool gathers)
{
    return msg->phase == (backward ? PHASE_BACKWARD : PHASE_FORWARD) &&
           (msg->op == OP_ALL_GATHER) == gathers;
}

/* Messages once per step belong to the first microbatch forward and to the last one backward. */
static bool is_due(const struct maker *m, const struct message *msg, const struct unit *u)
{
    return msg->rounds > 1 || u->microbatch == (u->backward ? m->pipe.microbatches - 1 : 0);
}

/* Returns the index, counted through the pass, of the i-th layer in a unit. */
static int place_of(const struct maker *m, const struct unit *u, int i)
{
    int chunk = u->backward ? m->pipe.chunks - 1 - u->chunk : u->chunk;

    return chunk * m->layers + i;
}

static void each_side(struct maker *m, const struct unit *u, int i, bool gathers)
{
    for (int k = 0; k < m->s->traffic->messages; k++) {
        const struct message *msg = message_at(m, k);
        if (in_side_stream(msg, u->backward, gathers) && is_due(m, msg, u))
            start(m, k,
                  pieces(msg->count / msg->rounds, place_of(m, u, i), m->pipe.chunks * m->layers,
                         gathers));
    }
}

static void await_side(struct maker *m, const struct unit *u, bool gathers)
{
    for (int k = 0; k < m->s->traffic->messages; k++)
        if (in_side_stream(message_at(m, k), u->backward, gathers))
            await(m, k);
}

/* Wait for the weights of the i-th layer, started one layer ago, and start those of the next. */
static void gather(struct maker *m, const struct unit *u, const struct unit *next, int i)
{
    bool prefetch = m->s->recipe->prefetch || !recipe_gathers_weights(m->s->recipe);

    if ((i == 0 && !m->ahead) || !prefetch)
        each_side(m, u, i, true);
    m->ahead = false;
    await_side(m, u, true);
    if (prefetch && i + 1 < m->layers)
        each_side(m, u, i + 1, true);
    else if (prefetch && next && next->backward) {
        each_side(m, next, 0, true);
        m->ahead = true;
    }
}

/* --- main stream --- */

static double share_forward(const struct maker *m, const struct message *msg)
{
    double share = 0.5;

    for (size_t i = 0; i < sizeof(forward_share) / sizeof(*forward_share); i++)
        if (forward_share[i].exposure == msg->exposure && forward_share[i].op == msg->op)
            share = forward_share[i].share;
    /* recomputation in the backward pass repeats its messages */
    bool again = m->s->recipe->recompute == RECOMPUTE_FULL;
    double layers = (double)m->layers * m->pipe.chunks;
    return again ? share / (1 + share * recipe_recomputed_share(m->s->recipe, layers)) : share;
}

/* Set the number of calls of each message in a layer.  Returns their sum. */
static int calls_of(const struct maker *m, const struct unit *u, int i, int *calls)
{
    int sum = 0, of = m->pipe.chunks * m->layers;

    for (int k = 0; k < m->s->traffic->messages; k++) {
        const struct message *msg = message_at(m, k);
        calls[k] = 0;
        if (msg->phase != PHASE_LAYER)
            continue;
        double pass = msg->count / msg->rounds, forward = round(pass * share_forward(m, msg));
        calls[k] = pieces(u->backward ? pass - forward : forward, place_of(m, u, i), of, false);
        sum += calls[k];
    }
    return sum;
}

static void burn(struct maker *m, double sec)
{
    struct replay_action *last = m->p->actions ? &m->p->action[m->p->actions - 1] : NULL;

    if (last && last->kind == REPLAY_BURN)
        last->sec += sec;
    else
        add(m, REPLAY_BURN, -1)->sec = sec;
}

/* Run a layer's messages in order, with its compute spread between them. */
static void work(struct maker *m, const struct unit *u, int i)
{
    int calls[TRAFFIC_MAX], sum = calls_of(m, u, i, calls);
    const struct replay_compute *c = m->stage + 1 == m->pipe.stages ? &m->s->last : &m->s->rest;
    double sec = (u->backward ? c->backward : c->forward) / (m->pipe.chunks * m->layers);

    if (!sum)
        burn(m, sec);
    for (int left = sum; left > 0;)
        for (int k = 0; k < m->s->traffic->messages; k++)
            if (calls[k] > 0) {
                calls[k]--;
                left--;
                add(m, REPLAY_CALL, k);
                burn(m, sec / sum);
            }
}

static void exchange(struct maker *m, const struct unit *u, bool to)
{
    struct unit end = *u;
    int peer = pipeline_peer(&m->pipe, m->stage, u, to, &end.chunk);

    if (m->boundary < 0 || peer < 0)
        return;
    const struct unit *at = to ? &end : u; /* the unit that needs the data names the message */
    struct replay_action *a = add(m, to ? REPLAY_SEND : REPLAY_RECV, m->boundary);
    a->peer = m->rank + (peer - m->stage) * m->s->layout->stride[AXIS_PP];
    a->tag = 2 * (at->microbatch * m->pipe.chunks + at->chunk) + at->backward;
}

static void one_unit(struct maker *m, const struct unit *u, const struct unit *next)
{
    exchange(m, u, false);
    for (int i = 0; i < m->layers; i++) {
        gather(m, u, i + 1 < m->layers ? NULL : next, i);
        work(m, u, i);
        if (u->backward)
            each_side(m, u, i, false);
    }
    exchange(m, u, true);
    /* reduce the gradients before the next microbatch adds to them */
    for (int k = 0; u->backward && k < m->s->traffic->messages; k++)
        if (in_side_stream(message_at(m, k), true, false) && message_at(m, k)->rounds > 1)
            await(m, k);
}

void replay_make(struct replay_plan *p, const struct replay_step *s, int rank)
{
    const struct layout *l = s->layout;
    struct maker m = {.p = p, .s = s, .pipe = replay_pipeline(l, s->recipe), .rank = rank};
    int units = 2 * m.pipe.microbatches * m.pipe.chunks;

    memset(p, 0, sizeof(*p));
    m.stage = rank / l->stride[AXIS_PP] % l->size[AXIS_PP];
    m.layers = (int)lround((double)s->traffic->layers / m.pipe.chunks);
    m.layers = m.layers < 1 ? 1 : m.layers;
    m.boundary = -1;
    for (int k = 0; k < s->traffic->messages; k++)
        if (message_at(&m, k)->phase == PHASE_BOUNDARY)
            m.boundary = k;
    struct unit *u = pipeline_units(&m.pipe, m.stage);
    for (int i = 0; i < units; i++)
        one_unit(&m, &u[i], i + 1 < units ? &u[i + 1] : NULL);
    for (int k = 0; k < s->traffic->messages; k++)
        await(&m, k);
    free(u);
}

void replay_free(struct replay_plan *p)
{
    free(p->action);
    memset(p, 0, sizeof(*p));
}
