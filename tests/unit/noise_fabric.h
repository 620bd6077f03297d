/* noise_fabric.h - small fabrics that are measured with noise of several kinds, one part of them made slow. */
#ifndef RG_NOISE_FABRIC_H
#define RG_NOISE_FABRIC_H

#include "noise/noise.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/stats.h"

enum { TIER_NVLINK, TIER_RAIL, TIER_FABRIC, BLOCKS = 8 };
static const unsigned long long seed = 20241;

/* --- a fabric: hosts of 4 NICs, 4 hosts a rack, one leaf a rail of 4 racks --- */

static void make_topo(struct topo *t, int hosts)
{
    *t = (struct topo){.endpoints = hosts * 4};
    t->endpoint = mem_calloc((size_t)t->endpoints, sizeof(*t->endpoint));
    for (int i = 0; i < t->endpoints; i++) {
        int *at = t->endpoint[i].place.at;

        for (int l = 0; l < LEVEL_COUNT; l++)
            at[l] = -1;
        at[LEVEL_HOST] = i / 4;
        at[LEVEL_RACK] = i / 16;
        at[LEVEL_LEAF] = i / 64 * 4 + i % 4;
    }
}

struct fault {
    enum part part;
    int a, b;
    enum side side;
    enum part_state state;
    double factor, time; /* share of the time; latency: factor of it */
    bool uplinks;
};

struct noise_kind {
    const char *name;
    double point, stray, host, drift, jobs; /* log; shares of looks, of (leaf, turn) */
};

struct fabric {
    struct topo topo;
    struct rng rng;
    struct look *look;
    int looks, turn;
    const struct noise_kind *noise;
    const struct fault *fault;
    double host[64][2 * BLOCKS];
};

static int group_of(const struct fabric *f, int endpoint, enum part part)
{
    return part_level[part] < 0 ? endpoint : topo_at(&f->topo, endpoint, part_level[part]);
}

static bool passes(const struct fabric *f, int src, int dst)
{
    const struct fault *x = f->fault;
    int a = group_of(f, src, x->part), b = group_of(f, dst, x->part);
    bool tx = a == x->a, rx = b == x->a;

    if (part_is_two(x->part)) {
        tx = tx && b == x->b;
        rx = rx && a == x->b;
    }
    if (x->uplinks && a == b)
        return false;
    return x->side == SIDE_BOTH ? tx || rx : x->side == SIDE_TX ? tx : rx;
}

/* True if the fault shows in such a look now. */
static bool shows(struct fabric *f, const struct look *k)
{
    const struct fault *x = f->fault;
    struct rng r;

    if (!x || !passes(f, k->src, k->dst))
        return false;
    rng_seed(&r, (unsigned long long)k->turn / 4 * 7919 + seed);
    switch (x->state) {
    case STATE_INTERMITTENT:
        return k->kind != LOOK_LATENCY && rng_uniform(&r) < x->time;
    case STATE_LOADED:
        return k->kind != LOOK_LATENCY && !k->alone;
    case STATE_BOTH_WAYS:
        return k->kind == LOOK_BOTH_WAYS;
    case STATE_SMALL:
        return k->kind == LOOK_SMALL;
    case STATE_LARGE:
        return k->kind == LOOK_LARGE;
    case STATE_LATE:
        return k->kind == LOOK_LATENCY;
    case STATE_SAMPLES:
        return false;
    default:
        return k->kind != LOOK_LATENCY;
    }
}

static void add_look(struct fabric *f, struct look k)
{
    const struct noise_kind *n = f->noise;
    struct rng jobs;

    k.tier = topo_at(&f->topo, k.src, LEVEL_LEAF) == topo_at(&f->topo, k.dst, LEVEL_LEAF)
                 ? TIER_RAIL
                 : TIER_FABRIC;
    k.y = (float)(n->point * rng_normal(&f->rng) - n->drift * k.block / BLOCKS +
                  f->host[k.src / 4][k.block] + f->host[k.dst / 4][k.block]);
    if (rng_uniform(&f->rng) < n->stray)
        k.y += (float)log(0.8);
    rng_seed(&jobs, (unsigned long long)(k.turn / 8 * 64 + topo_at(&f->topo, k.src, LEVEL_LEAF)));
    if (k.tier == TIER_FABRIC && k.kind != LOOK_LATENCY && rng_uniform(&jobs) < n->jobs)
        k.y += (float)log(0.6 + 0.4 * rng_uniform(&f->rng));
    if (shows(f, &k))
        k.y += (float)log(f->fault->factor);
    k.tail = (float)(0.01 + 0.01 * fabs(rng_normal(&f->rng)));
    if (f->fault && f->fault->state == STATE_SAMPLES && k.kind == LOOK_RATE &&
        passes(f, k.src, k.dst))
        k.tail -= (float)log(f->fault->factor);
    if (f->fault && f->fault->state == STATE_DEAD && passes(f, k.src, k.dst))
        k.y = -INFINITY;
    MEM_PUSH(f->look, f->looks) = k;
}

/* Everybody with a random partner, in both directions. */
static void add_round(struct fabric *f, enum look_kind kind, int block)
{
    int n = f->topo.endpoints, *v = mem_ints(n, 0);

    for (int i = 0; i < n; i++)
        v[i] = i;
    rng_shuffle(&f->rng, v, n);
    for (int way = 0; way < 2; way++, f->turn++)
        for (int i = 0; i + 1 < n; i += 2)
            if (v[i] / 4 != v[i + 1] / 4)
                add_look(f, (struct look){.turn = f->turn,
                                          .block = block,
                                          .src = v[i + way],
                                          .dst = v[i + 1 - way],
                                          .kind = kind,
                                          .looks_at = -1});
    free(v);
}

static void measure(struct fabric *f)
{
    for (int b = 0; b < BLOCKS; b++) {
        for (int i = 0; i < 2; i++)
            add_round(f, LOOK_RATE, b);
        add_round(f, LOOK_LATENCY, b);
        add_round(f, (enum look_kind)(LOOK_BOTH_WAYS + b % 3), b);
        add_round(f, (enum look_kind)(LOOK_BOTH_WAYS + (b + 1) % 3), b);
        for (int i = 0; i < 8; i++) {
            int a = (int)rng_below(&f->rng, (unsigned)f->topo.endpoints),
                c = (a + 4 + (int)rng_below(&f->rng, 40)) % f->topo.endpoints;

            add_look(f, (struct look){.turn = f->turn++,
                                      .block = b,
                                      .src = a,
                                      .dst = c,
                                      .alone = true,
                                      .unselected = true,
                                      .looks_at = -1});
        }
    }
}

static void add_fresh(struct fabric *f, int own, enum look_kind kind, int block, bool alone)
{
    int n = f->topo.endpoints, other;
    bool rx = rng_below(&f->rng, 2);

    do
        other = (int)rng_below(&f->rng, (unsigned)n);
    while (other / 4 == own / 4);
    add_look(f, (struct look){.turn = f->turn,
                              .block = block,
                              .src = rx ? other : own,
                              .dst = rx ? own : other,
                              .kind = kind,
                              .looks_at = rx,
                              .alone = alone,
                              .fresh = true});
    f->turn += alone;
}

/* Suspects, 4 endpoints of a group, and as many controls: 6 looks a block, half of them alone. */
static void measure_again(struct fabric *f, const struct noise *n)
{
    for (int b = BLOCKS; b < 2 * BLOCKS; b++)
        for (int i = 0; i < n->suspects; i++)
            for (int e = 0, many = 0; e < f->topo.endpoints && many < 4; e++) {
                const struct found *s = &n->suspect[i];
                int g = group_of(f, e, s->part);

                if (g != s->a && !(s->b >= 0 && g == s->b))
                    continue;
                many++;
                for (int k = 0; k < 6; k++) {
                    add_fresh(f, e, s->kind, b, k & 1);
                    add_fresh(f, (int)rng_below(&f->rng, (unsigned)f->topo.endpoints), s->kind, b,
                              k & 1);
                }
                f->turn++;
            }
}

static inline void open_fabric(struct fabric *f, int hosts, const struct noise_kind *noise,
                               const struct fault *fault, unsigned long long with)
{
    *f = (struct fabric){.noise = noise, .fault = fault};
    make_topo(&f->topo, hosts);
    rng_seed(&f->rng, with);
    for (int h = 0; h < 64; h++)
        for (int b = 0; b < 2 * BLOCKS; b++)
            f->host[h][b] = noise->host * rng_normal(&f->rng);
    measure(f);
}

static void judge(struct noise *n, const struct fabric *f, bool decide)
{
    struct noise_input in = {
        &f->topo, f->look, f->looks, {[TIER_RAIL] = true, [TIER_FABRIC] = true}};

    if (decide)
        noise_judge(n, &in, NULL);
    else
        noise_court_free(noise_suspects(n, &in));
}

static void close_fabric(struct fabric *f)
{
    free(f->topo.endpoint);
    free(f->look);
}

static inline void both_stages(struct noise *n, struct fabric *f)
{
    struct noise first;

    judge(&first, f, false);
    measure_again(f, &first);
    noise_free(&first);
    judge(n, f, true);
}

static const struct noise_kind kinds[] = {
    {"quiet", 0.003, 0, 0, 0, 0},
    {"strays", 0.01, 0.05, 0, 0, 0},
    {"hosts have minutes", 0.01, 0, 0.02, 0, 0},
    {"drift", 0.01, 0, 0, 0.1, 0},
    {"other jobs", 0.01, 0, 0, 0, 0.1},
    {"a bit of all", 0.01, 0.02, 0.01, 0.05, 0.05},
    {"rare strays", 0.003, 0.008, 0, 0, 0},
};
enum { KINDS = sizeof(kinds) / sizeof(*kinds) };

/* --- few endpoints: all pairs in each block --- */

static inline void few(struct noise *n, int hosts, const struct fault *x)
{
    struct fabric f = {.noise = &kinds[1], .fault = x};

    make_topo(&f.topo, hosts);
    for (int i = 0; i < f.topo.endpoints; i++)
        f.topo.endpoint[i].place.at[LEVEL_HOST] = i;
    rng_seed(&f.rng, seed);
    for (int b = 0; b < BLOCKS; b++)
        for (int i = 0; i < f.topo.endpoints; i++)
            for (int k = 0; k < f.topo.endpoints; k++)
                if (i != k)
                    add_look(&f,
                             (struct look){
                                 .turn = f.turn++, .block = b, .src = i, .dst = k, .looks_at = -1});
    judge(n, &f, true);
    close_fabric(&f);
}

#endif
