/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/replay/pipeline.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

static int units_of(const struct pipeline *p)
{
    return p->microbatches * p->chunks;
}

/* The k-th forward or backward unit of a stage: p microbatches through the first chunk, the same
 * through the next one, ... */
static struct unit unit_at(const struct pipeline *p, int k, bool backward)
{
    int round = p->stages * p->chunks, chunk = k % round / p->stages;

    if (p->chunks == 1)
        return (struct unit){k, 0, backward};
    return (struct unit){k / round * p->stages + k % p->stages,
                         backward ? p->chunks - 1 - chunk : chunk, backward};
}

/* Forward units before the first backward one. */
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

/* When the output of each unit is where it is needed; NAN: not done yet. */
struct clock {
    const struct pipeline *p;
    double *there; /* [backward][microbatch][part] */
    double *busy;  /* [stage][backward]: until when its way out is taken */
};

static double *there_at(struct clock *c, const struct unit *u, int stage)
{
    int parts = c->p->stages * c->p->chunks, part = u->chunk * c->p->stages + stage;

    return &c->there[((u->backward ? c->p->microbatches : 0) + u->microbatch) * parts + part];
}

/* When a unit can begin as far as its input goes: NAN, not yet known. */
static double ready(struct clock *c, const struct unit *u, int stage)
{
    struct unit from = *u;
    int peer = pipeline_peer(c->p, stage, u, false, &from.chunk);

    if (peer >= 0)
        return *there_at(c, &from, peer);
    if (!u->backward)
        return 0;
    from.backward = false; /* the last part of the model turns round by itself */
    from.chunk = u->chunk;
    return *there_at(c, &from, stage);
}

/* Let a stage work as far as its inputs are known. */
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
