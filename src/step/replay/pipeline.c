/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/replay/pipeline.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

static int units_of(const struct pipeline *p)
{
    return p->microbatches * p->chunks;
}

/* Returns the k-th forward or backward unit of a stage: p microbatches through the first chunk, the
 * same through the next one, ... */
static struct unit unit_at(const struct pipeline *p, int k, bool backward)
{
    int round = p->stages * p->chunks, chunk = k % round / p->stages;

    if (p->chunks == 1)
        return (struct unit){k, 0, backward};
    return (struct unit){k / round * p->stages + k % p->stages,
                         backward ? p->chunks - 1 - chunk : chunk, backward};
}

/* Returns the number of forward units before the first backward one. */
static int warmup(const struct pipeline *p, int stage)
{
    int all = units_of(p), w = p->stages - stage - 1;

    if (p->chunks > 1)
        w = p->microbatches == p->stages ? all : 2 * w + (p->chunks - 1) * p->stages;
    return w < all ? w : all;
}

struct unit *pipeline_units(const struct pipeline *p, int stage)
{
    int all = units_of(p), ahead = warmup(p, stage), n = 0;
    struct unit *u = mem_calloc(2 * (size_t)all, sizeof(*u));

    for (int k = 0; k < ahead; k++)
        u[n++] = unit_at(p, k, false);
    for (int k = 0; k < all; k++) {
        if (k + ahead < all)
            u[n++] = unit_at(p, k + ahead, false);
        u[n++] = unit_at(p, k, true);
    }
    return u;
}

int pipeline_peer(const struct pipeline *p, int stage, const struct unit *u, bool to, int *chunk)
{
    int parts = p->stages * p->chunks, part = u->chunk * p->stages + stage;

    part += to != u->backward ? 1 : -1;
    if (part < 0 || part >= parts)
        return -1;
    if (chunk)
        *chunk = part / p->stages;
    return part % p->stages;
}

/* Times at which each unit's output has arrived; NAN: not done yet. */
struct clock {
    const struct pipeline *p;
    double *there; /* [backward][microbatch][part] */
    double *busy;  /* [stage][backward]: time until which the link of the stage is in use */
};

static double *there_at(struct clock *c, const struct unit *u, int stage)
{
    int parts = c->p->stages * c->p->chunks, part = u->chunk * c->p->stages + stage;

    return &c->there[((u->backward ? c->p->microbatches : 0) + u->microbatch) * parts + part];
}

/* Returns the time at which a unit's input is available; NAN: not yet known. */
static double ready(struct clock *c, const struct unit *u, int stage)
{
    struct unit from = *u;
    int peer = pipeline_peer(c->p, stage, u, false, &from.chunk);

    if (peer >= 0)
        return *there_at(c, &from, peer);
    if (!u->backward)
        return 0;
    from.backward = false; /* the last part of the model starts its own backward */
    from.chunk = u->chunk;
    return *there_at(c, &from, stage);
}

/* Advance a stage as far as its inputs are known. */
static bool advance(struct clock *c, const struct unit *unit, int *next, double *now, int stage,
                    const double *sec, double message)
{
    int n = 2 * units_of(c->p), from = *next;

    while (*next < n) {
        const struct unit *u = &unit[*next];
        double at = ready(c, u, stage);
        if (isnan(at))
            break;
        *now = fmax(*now, at) + sec[u->backward];
        double *out = there_at(c, u, stage), *busy = &c->busy[2 * stage + u->backward];
        *out = *now;
        if (pipeline_peer(c->p, stage, u, true, NULL) >= 0)
            *out = *busy = fmax(*now, *busy) + message;
        (*next)++;
    }
    return *next > from;
}

double pipeline_time(const struct pipeline *p, double forward, double backward, double message)
{
    size_t cells = 2 * (size_t)units_of(p) * (size_t)p->stages;
    struct clock c = {p, mem_calloc(cells, sizeof(double)),
                      mem_calloc(2 * (size_t)p->stages, sizeof(double))};
    struct unit **unit = mem_calloc((size_t)p->stages, sizeof(struct unit *));
    int *next = mem_calloc((size_t)p->stages, sizeof(*next));
    double *now = mem_calloc((size_t)p->stages, sizeof(*now)), last = 0;
    const double sec[] = {forward, backward};

    for (size_t i = 0; i < cells; i++)
        c.there[i] = NAN;
    for (int s = 0; s < p->stages; s++)
        unit[s] = pipeline_units(p, s);
    for (bool moved = true; moved;) {
        moved = false;
        for (int s = 0; s < p->stages; s++)
            moved |= advance(&c, unit[s], &next[s], &now[s], s, sec, message);
    }
    for (int s = 0; s < p->stages; s++) {
        last = fmax(last, now[s]);
        free(unit[s]);
    }
    free(unit);
    free(next);
    free(now);
    free(c.there);
    free(c.busy);
    return last;
}

/* --- all schedules, without messages --- */

static void push(struct pipe_played *s, enum piece_kind kind, int microbatch, int part)
{
    MEM_PUSH(s->piece, s->pieces) = (struct piece){kind, microbatch, part, false, 0};
}

static void order_1f1b(struct pipe_played *s, const struct pipeline *p, int at)
{
    struct unit *u = pipeline_units(p, at);

    for (int i = 0; i < 2 * units_of(p); i++)
        push(s, u[i].backward ? PIECE_BACKWARD : PIECE_FORWARD, u[i].microbatch,
             u[i].chunk * p->stages + at);
    free(u);
}

/* wide: zb-h2, else zb-h1. */
static void order_zero_bubble(struct pipe_played *s, const struct pipeline *p, int at, bool wide)
{
    int m = p->microbatches, times = wide ? 2 : 1, f = 0, w = 0;

    while (f < m && f < times * (p->stages - 1 - at))
        push(s, PIECE_FORWARD, f++, at);
    for (int b = 0; b < m; b++) {
        if (f < m)
            push(s, PIECE_FORWARD, f++, at);
        push(s, PIECE_INPUTS, b, at);
        if (b + 1 - w > times * at)
            push(s, PIECE_WEIGHTS, w++, at);
    }
    while (w < m)
        push(s, PIECE_WEIGHTS, w++, at);
}

/* Both ends of the model feed the pipeline; way 0 starts at the nearer end. */
struct dual {
    struct pipe_played *s;
    int stages, at, half; /* half: microbatches per way */
    bool far;             /* the stage is in the second half of the pipeline */
    int forwards[2], backwards[2];
    int owed; /* first piece with weights' gradients still to be pushed */
};

static void dual_push(struct dual *d, enum piece_kind kind, int way)
{
    int *count = kind == PIECE_FORWARD ? d->forwards : d->backwards;
    bool reverse = (way == 1) != d->far;

    push(d->s, kind, count[way]++ + (reverse ? d->half : 0),
         reverse ? d->stages - 1 - d->at : d->at);
}

static void dual_both(struct dual *d, int forward, int backward)
{
    dual_push(d, PIECE_FORWARD, forward);
    d->s->piece[d->s->pieces - 1].joined = true;
    dual_push(d, PIECE_BACKWARD, backward);
}

static void dual_weights(struct dual *d)
{
    while (d->s->piece[d->owed].kind != PIECE_INPUTS)
        d->owed++;
    push(d->s, PIECE_WEIGHTS, d->s->piece[d->owed].microbatch, d->s->piece[d->owed].part);
    d->owed++;
}

static void order_dualpipe(struct pipe_played *s, const struct pipeline *pipe, int at)
{
    int p = pipe->stages, near = at < p - 1 - at ? at : p - 1 - at, away = p / 2 - near - 1;
    struct dual d = {
        .s = s, .stages = p, .at = at, .half = pipe->microbatches / 2, .far = at >= p / 2};

    for (int i = 0; i < 2 * away; i++)
        dual_push(&d, PIECE_FORWARD, 0);
    for (int i = 0; i <= near; i++) {
        dual_push(&d, PIECE_FORWARD, 0);
        dual_push(&d, PIECE_FORWARD, 1);
    }
    for (int i = 0; i < away; i++) {
        dual_push(&d, PIECE_INPUTS, 1);
        dual_weights(&d);
        dual_push(&d, PIECE_FORWARD, 1);
    }
    for (int i = 0; i < d.half - p + near + 1; i++) {
        dual_both(&d, 0, 1);
        s->piece[s->pieces - 2].joined = i > 0 || away > 0; /* middle pieces begin separately */
        dual_both(&d, 1, 0);
    }
    for (int i = 0; i < away; i++) {
        dual_push(&d, PIECE_BACKWARD, 1);
        dual_both(&d, 1, 0);
    }
    for (int i = 0, split = 0; i <= near; i++) {
        split |= i == (near + 1) / 2 && near % 2 == 1;
        dual_push(&d, split ? PIECE_INPUTS : PIECE_BACKWARD, 1);
        split |= i == (near + 1) / 2;
        dual_push(&d, split ? PIECE_INPUTS : PIECE_BACKWARD, 0);
    }
    for (int i = 0; i < away; i++) {
        dual_weights(&d);
        dual_push(&d, PIECE_INPUTS, 0);
    }
    for (int i = 0; i <= near; i++)
        dual_weights(&d);
}

void pipeline_order(struct pipe_played *s, const struct pipeline *p, enum schedule schedule,
                    int stage)
{
    if (schedule == SCHEDULE_DUALPIPE)
        order_dualpipe(s, p, stage);
    else if (schedule == SCHEDULE_ZB_H1 || schedule == SCHEDULE_ZB_H2)
        order_zero_bubble(s, p, stage, schedule == SCHEDULE_ZB_H2);
    else
        order_1f1b(s, p, stage);
}

/* Times at which the output of each piece has arrived, [backward][microbatch][part]; NAN: not
 * yet. */
struct outputs {
    const struct pipeline *p;
    double *at;
};

static double *output(const struct outputs *o, const struct piece *u, bool backward, int part)
{
    int row = (backward ? o->p->microbatches : 0) + u->microbatch;

    return &o->at[(size_t)row * (size_t)(o->p->stages * o->p->chunks) + (size_t)part];
}

/* Returns the arrival time of a piece's input. */
static double input(const struct outputs *o, const struct piece *u)
{
    bool turns = u->part == o->p->stages * o->p->chunks - 1;

    if (u->kind == PIECE_WEIGHTS || (u->kind == PIECE_FORWARD && u->part == 0))
        return 0;
    if (u->kind == PIECE_FORWARD)
        return *output(o, u, false, u->part - 1);
    return turns ? *output(o, u, false, u->part) : *output(o, u, true, u->part + 1);
}

/* Play one piece, or two that are joined.  False: an input has not arrived yet. */
static bool go_on(struct pipe_played *s, const struct outputs *o, const double *sec)
{
    struct piece *u = &s->piece[s->next];
    int n = u->joined ? 2 : 1;
    double at = s->end;

    for (int i = 0; i < n; i++) {
        double there = input(o, &u[i]);
        if (isnan(there))
            return false;
        at = fmax(at, there);
    }
    if (s->next == 0)
        s->begin = at;
    s->end = at;
    for (int i = 0; i < n; i++) {
        u[i].start = s->end;
        s->end += sec[u[i].kind] * s->pace;
    }
    for (int i = 0; i < n; i++)
        if (u[i].kind != PIECE_WEIGHTS)
            *output(o, &u[i], u[i].kind != PIECE_FORWARD, u[i].part) = s->end;
    s->next += n;
    return true;
}

void pipeline_play(struct pipe_played *stage, const struct pipeline *p, const double *sec)
{
    size_t cells = 2 * (size_t)units_of(p) * (size_t)p->stages;
    struct outputs o = {p, mem_calloc(cells, sizeof(*o.at))};

    for (size_t i = 0; i < cells; i++)
        o.at[i] = NAN;
    for (bool moved = true; moved;) {
        moved = false;
        for (int i = 0; i < p->stages; i++)
            while (stage[i].next < stage[i].pieces && go_on(&stage[i], &o, sec))
                moved = true;
    }
    free(o.at);
}
