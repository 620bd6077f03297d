/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/stats.h"
#include "probe/plan.h"
#include "probe/sim/sim.h"

extern const struct transport transport_sim;

struct sim_ctx {
    const struct sim *sim;
    struct group group;
    double share;   /* of the uplinks */
    unsigned calls; /* run()s so far: each draws its own numbers */
};

static int host_of(const struct sim *s, int id)
{
    return s->truth->endpoint[id].place.at[LEVEL_HOST];
}

/* A dead host answers nobody. */
static int answer(const struct sim *s, const struct group *g, struct err *err)
{
    for (int f = 0; f < s->faults; f++)
        for (int i = 0; s->fault[f].kind == FAULT_DEAD_HOST && i < g->size; i++)
            if (host_of(s, g->members[i]) == s->fault[f].a)
                return err_set(err, "no answer from host %s", s->truth->host[s->fault[f].a].name);
    return 0;
}

static int sim_open(void **out, const struct group *g, size_t max_bytes, struct err *err)
{
    struct sim *s = g->comm;

    (void)max_bytes;
    if (answer(s, g, err) < 0)
        return -1;
    struct sim_ctx *ctx = mem_calloc(1, sizeof(*ctx));
    ctx->sim = s;
    ctx->group = *g;
    ctx->share = sim_share(s, g->round, g->index, g->round->op);
    *out = ctx;
    return 0;
}

static unsigned long long mix(unsigned long long h, unsigned long long v)
{
    h ^= v + 0x9e3779b97f4a7c15ULL + (h << 6) + (h >> 2);
    return h * 0xff51afd7ed558ccdULL;
}

static int sim_run(void *p, enum op op, size_t bytes, int n, double *sec, struct err *err)
{
    struct sim_ctx *ctx = p;
    const struct group *g = &ctx->group;
    const struct sim *s = ctx->sim;
    double exact = op_is_pair(op)
                       ? sim_pair(s, op, g->members[0], g->members[1], (double)bytes, ctx->share)
                       : sim_collective(s, op, g->members, g->size, (double)bytes, ctx->share);
    unsigned long long seed = s->seed;
    struct rng rng;

    (void)err;
    seed = mix(seed, (unsigned)g->round->id);
    seed = mix(seed, (unsigned)g->index);
    seed = mix(seed, (unsigned)g->epoch);
    seed = mix(seed, bytes * OP_COUNT + op);
    seed = mix(seed, ctx->calls++);
    rng_seed(&rng, seed);
    for (int i = 0; i < n; i++)
        sec[i] = s->noise > 0 ? exact * exp(s->noise * rng_normal(&rng)) : exact;
    return 0;
}

static int sim_check(void *p, enum op op, size_t bytes, struct err *err)
{
    const struct sim_ctx *ctx = p;
    const struct sim *s = ctx->sim;

    for (int f = 0; f < s->faults; f++)
        for (int i = 0; s->fault[f].kind == FAULT_CORRUPT && i < ctx->group.size; i++)
            if (ctx->group.members[i] == s->fault[f].a &&
                !(op_is_pair(op) && i == 0 && op == OP_PAIR_BW))
                return err_data(err, "%s: endpoint %d: byte %zu is wrong", op_name(op),
                                s->fault[f].a, bytes / 2);
    return 0;
}

static void sim_close(void *p)
{
    free(p);
}

const struct transport transport_sim = {
    .name = "sim",
    .help = "a preset's fabric as a formula, with noise and faults of your choice",
    .open = sim_open,
    .run = sim_run,
    .check = sim_check,
    .close = sim_close,
};
