/* SPDX-License-Identifier: BSD-3-Clause */
/* Leaves that lost uplinks: slow while many of their NICs send at once, or receive, and not else.
 *
 * A sight is the speed of a leaf's flows in a turn, one way: their fast quartile less the quartile of all flows of the
 * turn, because flows that collide and stray points are slow by themselves, and lost uplinks slow all.  Blocks are
 * medians of the sights of busy turns, and are judged like blocks of every part (steady_cells()).  A flow passes two
 * leaves: the slowest is tested first, alone, and is then no evidence for other leaves.  Two leaves alone cannot
 * be told apart. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"
#include "noise/noise_impl.h"

enum { TRIES = 4, BUSY = 2, LEAVES = 3 };
/* Leaves tested in vain before the search ends, for speed; sorts of busy turns; leaves of which one may be odd. */

struct flow {           /* a look that leaves a leaf; millions are held */
    int look, flows[2]; /* flows at once: up from the sender's leaf, down to the receiver's */
};

struct sight {
    int leaf, block, flows, way;
    float z;       /* log rate above the other flows */
    float carried; /* flows */
};

struct seas {
    const struct view *v;
    enum rung rung;
    const int *of;
    int leaves, blocks, turns;
    int *most, *members; /* flows of the busiest turn, NICs; by leaf */
    bool *out;           /* leaves whose flows are no evidence for other leaves */
    struct flow *flow;
    int flows;
    struct lists by; /* flows by turn */
    double *buffer;
};

/* --- flows --- */

static const struct look *look_of(const struct seas *s, const struct flow *f)
{
    return &s->v->in->look[f->look];
}

static int leaf_of(const struct seas *s, const struct flow *f, int end)
{
    return s->of[end_of(look_of(s, f), end)];
}

/* True for a rate that stage 1 measured. */
static bool is_told(const struct seas *s, const struct flow *f)
{
    const struct look *k = look_of(s, f);

    return k->kind == LOOK_RATE && !k->fresh && isfinite(k->y);
}

static void list_flows(struct seas *s)
{
    const struct noise_input *in = s->v->in;
    int *turn = NULL, n = 0;

    for (int i = 0; i < in->looks; i++) {
        const struct look *k = &in->look[i];
        int a = s->of[k->src], b = s->of[k->dst];

        if (k->alone || k->kind == LOOK_LATENCY || !in->crosses[k->tier] || a < 0 || b < 0 ||
            a == b)
            continue;
        MEM_PUSH(s->flow, s->flows) = (struct flow){.look = i};
        MEM_PUSH(turn, n) = k->turn;
        s->turns = k->turn >= s->turns ? k->turn + 1 : s->turns;
    }
    lists_make(&s->by, turn, NULL, s->flows, s->turns);
    free(turn);
}

/* Pairs sending in two directions load each leaf in two directions. */
static void count_turn(struct seas *s, int *load, const int *at, int n)
{
    for (int pass = 0; pass < 3; pass++)
        for (int i = 0; i < 2 * n; i++) {
            struct flow *f = &s->flow[at[i / 2]];
            bool both = look_of(s, f)->kind == LOOK_BOTH_WAYS;
            int end = i % 2, leaf = leaf_of(s, f, end);

            if (pass == 1) {
                f->flows[end] = load[2 * leaf + end];
                if (f->flows[end] > s->most[leaf] && is_told(s, f))
                    s->most[leaf] = f->flows[end];
                continue;
            }
            for (int way = 0; way < 2; way++)
                if (way == end || both)
                    load[2 * leaf + way] = pass ? 0 : load[2 * leaf + way] + 1;
        }
}

static void count_flows(struct seas *s)
{
    int *load = mem_ints(2 * s->leaves, 0);

    for (int t = 0; t < s->turns; t++)
        count_turn(s, load, s->by.at + s->by.start[t], s->by.start[t + 1] - s->by.start[t]);
    free(load);
}

static void seas_open(struct seas *s, const struct view *v, enum rung rung)
{
    *s = (struct seas){.v = v,
                       .rung = rung,
                       .of = v->places->of[rung],
                       .leaves = v->places->count[rung],
                       .blocks = v->blocks};
    s->most = mem_ints(s->leaves, 0);
    s->members = mem_ints(s->leaves, 0);
    s->out = mem_calloc((size_t)s->leaves + 1, sizeof(bool));
    for (int i = 0; i < v->places->n; i++)
        if (s->of[i] >= 0)
            s->members[s->of[i]]++;
    list_flows(s);
    count_flows(s);
    s->buffer = mem_calloc((size_t)(v->in->looks + s->leaves) + 1, sizeof(double));
}

static void seas_close(struct seas *s)
{
    free(s->most);
    free(s->members);
    free(s->out);
    free(s->flow);
    free(s->buffer);
    lists_free(&s->by);
}

/* --- sights --- */

struct sights {
    struct sight *at;
    int count;
};

/* The fast quartile (where flows are hashed, tenth) of the flows' speeds, above the usual speed beside others or (of_one) alone; NAN: too few. */
static double fast_of(const struct seas *s, const int *at, int n, bool of_one, double least)
{
    bool hashed = false; /* collisions that last all campaign long slow more than a quarter */
    int got = 0;

    for (int i = 0; i < n; i++) {
        const struct flow *f = &s->flow[at[i]];
        const struct look *k = look_of(s, f);

        if (!is_told(s, f))
            continue;
        s->buffer[got++] = k->y - (float)s->v->class[class_of(k) | of_one].m;
        hashed |= s->v->hashed[LOOK_RATE * TIER_MAX + k->tier];
    }
    return got >= least ? usual_quantile(s->buffer, got,
                                         hashed ? noise_constants.clear : noise_constants.fast)
                        : NAN;
}

/* Sort flows of a turn by leaf, one way, without flows through another leaf that is out. */
static void sort_way(struct lists *by, int *key, const struct seas *s, const int *at, int n,
                     int way)
{
    for (int i = 0; i < n; i++) {
        const struct flow *f = &s->flow[at[i]];

        key[i] = s->out[leaf_of(s, f, !way)] ? -1 : leaf_of(s, f, way);
    }
    lists_make(by, key, at, n, s->leaves);
}

static void see_way(struct sights *to, const struct seas *s, const struct lists *by, int way,
                    double usual)
{
    for (int g = 0; g < s->leaves; g++) {
        const int *at = by->at + by->start[g], n = by->start[g + 1] - by->start[g];
        double z = n ? fast_of(s, at, n, false, noise_constants.fine_looks) : NAN;

        if (isnan(z))
            continue;
        const struct flow *f = &s->flow[at[0]];
        MEM_PUSH(to->at, to->count) =
            (struct sight){g,
                           s->v->block[look_of(s, f)->block],
                           f->flows[way],
                           way,
                           (float)(z - usual),
                           (float)(f->flows[way] * exp(fast_of(s, at, n, true, 0)))};
    }
}

/* Fast quartile of all flows of a turn that pass no leaf that is out. */
static double usual_of(const struct seas *s, const int *at, int n, int *kept)
{
    int count = 0;

    for (int i = 0; i < n; i++) {
        const struct flow *f = &s->flow[at[i]];

        if (!s->out[leaf_of(s, f, 0)] && !s->out[leaf_of(s, f, 1)])
            kept[count++] = at[i];
    }
    return fast_of(s, kept, count, false, noise_constants.turn_looks);
}

static struct sights see(const struct seas *s)
{
    int *room = mem_ints(s->flows, 0);
    struct sights to = {0};
    struct lists by;

    for (int t = 0; t < s->turns; t++) {
        const int *at = s->by.at + s->by.start[t], n = s->by.start[t + 1] - s->by.start[t];
        double usual = n ? usual_of(s, at, n, room) : NAN;

        for (int way = 0; way < 2 && !isnan(usual); way++) {
            sort_way(&by, room, s, at, n, way);
            see_way(&to, s, &by, way, usual);
            lists_free(&by);
        }
    }
    free(room);
    return to;
}

/* --- blocks --- */

static double least_load(int busy)
{
    return busy ? noise_constants.flows_full : noise_constants.flows_many;
}

static bool is_busy(const struct seas *s, const struct sight *k, int busy)
{
    return k->flows > 1 && k->flows >= least_load(busy) * s->most[k->leaf];
}

/* Medians of the busy sights of each leaf and block. */
static float *cells_of(const struct seas *s, const struct sights *k, int busy)
{
    const int cells = s->leaves * s->blocks;
    int *key = mem_ints(k->count, -1);
    float *z = mem_calloc((size_t)cells + 1, sizeof(*z));
    struct lists by;

    for (int i = 0; i < k->count; i++)
        if (is_busy(s, &k->at[i], busy))
            key[i] = k->at[i].leaf * s->blocks + k->at[i].block;
    lists_make(&by, key, NULL, k->count, cells);
    for (int c = 0; c < cells; c++) {
        int n = 0;

        for (int i = by.start[c]; i < by.start[c + 1]; i++)
            s->buffer[n++] = k->at[by.at[i]].z;
        z[c] = n ? (float)stats_middle(s->buffer, n) : NAN;
    }
    lists_free(&by);
    free(key);
    return z;
}

static void steady_drop(struct steady *y)
{
    free(y->like.back);
    steady_free(y, 1);
}

/* Leaves are compared with the middle one: the fullest turns of each are slow where all have few uplinks. */
static void judge_cells(struct steady *y, const struct seas *s, float *z)
{
    double middle;
    int n = 0;

    steady_cells(y, z, s->leaves, s->blocks, noise_constants.pair_blocks);
    for (int g = 0; g < s->leaves; g++)
        if (!isnan(y->est[g]))
            s->buffer[n++] = y->est[g];
    middle = n ? stats_middle(s->buffer, n) : 0;
    for (int c = 0; c < s->leaves * s->blocks; c++)
        z[c] -= (float)middle;
    steady_drop(y);
    steady_cells(y, z, s->leaves, s->blocks, noise_constants.pair_blocks);
}

/* --- one leaf --- */

struct suspect {
    int leaf, busy;
    double e, sd, p;
    double flows; /* flows that its uplinks carry */
};

/* The chance of a leaf by one sort of busy turns; other leaves are judged by flows that do not pass the tested leaf. */
static void ask(struct suspect *x, const struct seas *s, const struct sights *own,
                const struct sights *rest, int busy)
{
    const size_t row = (size_t)s->blocks, at = (size_t)x->leaf * row;
    float *z = cells_of(s, own, busy), *others = cells_of(s, rest, busy);
    struct steady y;

    memcpy(others + at, z + at, row * sizeof(*z));
    judge_cells(&y, s, others);
    if (BUSY * y.p[x->leaf] < x->p) {
        x->p = BUSY * y.p[x->leaf];
        x->e = y.est[x->leaf] - y.like.centre;
        x->sd = y.sd[x->leaf];
        x->busy = busy;
    }
    steady_drop(&y);
    free(others);
    free(z);
}

static bool is_sure(struct suspect *x, struct seas *s, const struct sights *own)
{
    struct sights rest;

    s->out[x->leaf] = true;
    rest = see(s);
    s->out[x->leaf] = false;
    for (int busy = 0; busy < BUSY; busy++)
        ask(x, s, own, &rest, busy);
    free(rest.at);
    return x->p <= noise_constants.false_part / s->leaves;
}

/* Flows that the uplinks carry: the same number in all busy turns, however many NICs send. */
static double flows_carried(const struct suspect *x, const struct seas *s, const struct sights *k)
{
    int n = 0;

    for (int i = 0; i < k->count; i++)
        if (k->at[i].leaf == x->leaf && is_busy(s, &k->at[i], x->busy) &&
            k->at[i].z < noise_constants.half * x->e)
            s->buffer[n++] = k->at[i].carried;
    return n ? stats_middle(s->buffer, n) : s->most[x->leaf];
}

enum { EITHER = 2 }; /* way */

/* Sights of the leaf one way, in busy turns or while few of its NICs send, into the buffer. */
static int sights_of(const struct suspect *x, const struct seas *s, const struct sights *k, int way,
                     bool busy)
{
    int n = 0;

    for (int i = 0; i < k->count; i++) {
        const struct sight *one = &k->at[i];

        if (one->leaf == x->leaf && (way == EITHER || one->way == way) &&
            (busy ? is_busy(s, one, x->busy) : one->flows < noise_constants.flows_full * x->flows))
            s->buffer[n++] = one->z;
    }
    return n;
}

/* Looks alone that leave the leaf, or come to it, behind n values in the buffer. */
static int add_alone(const struct suspect *x, const struct seas *s, int way, int n)
{
    const struct noise_input *in = s->v->in;

    for (int i = 0; i < in->looks; i++) {
        const struct look *l = &in->look[i];
        int leaf[] = {s->of[l->src], s->of[l->dst]}, own = leaf[1] == x->leaf;

        if (l->alone && l->kind == LOOK_RATE && in->crosses[l->tier] && isfinite(l->y) &&
            leaf[0] != leaf[1] && leaf[own] == x->leaf && leaf[!own] >= 0 && !s->out[leaf[!own]] &&
            (way == EITHER || way == own))
            s->buffer[n++] = l->y - s->v->class[class_of(l)].m;
    }
    return n;
}

/* False where flows are hashed and some busy turns are not slow: uplinks that are down never carry more.  Flows that
 * collide leave some turns free, and a hash that stays makes all blocks of a turn alike. */
static bool is_always(const struct suspect *x, const struct seas *s, const struct sights *k)
{
    int n = sights_of(x, s, k, EITHER, true), slow = 0;
    bool hashed = false;

    for (int t = 0; t < TIER_MAX; t++)
        hashed |= s->v->in->crosses[t] && s->v->hashed[LOOK_RATE * TIER_MAX + t];
    for (int i = 0; i < n; i++)
        slow += s->buffer[i] < noise_constants.half * x->e;
    return !hashed || slow >= noise_constants.children * n;
}

/* True if both ways are slow, as when cables are down, and no way is slow while few NICs send, or one alone. */
static bool is_lost(const struct suspect *x, const struct seas *s, const struct sights *k)
{
    const double half = noise_constants.half * x->e;
    int quiet = 0;

    if (!is_always(x, s, k))
        return false;
    for (int way = 0; way <= EITHER; way++) {
        int n = sights_of(x, s, k, way, true);

        if (n && !(stats_middle(s->buffer, n) < half))
            return false;
        quiet = add_alone(x, s, way, sights_of(x, s, k, way, false));
        if (quiet >= noise_constants.inside_looks && !(stats_middle(s->buffer, quiet) > half))
            return false;
    }
    return quiet >= noise_constants.inside_looks;
}

/* Effects of leaves by the sort of busy turns in which they are slowest; 0: too few blocks, or out.  The caller frees. */
static float *effects(const struct seas *s, const struct sights *k)
{
    float *e = mem_calloc((size_t)s->leaves + 1, sizeof(*e));

    for (int busy = 0; busy < BUSY; busy++) {
        float *z = cells_of(s, k, busy);
        struct steady y;

        judge_cells(&y, s, z);
        for (int g = 0; g < s->leaves; g++)
            if (!s->out[g] && y.got[g] >= noise_constants.pair_blocks)
                e[g] = fminf(e[g], (float)(y.est[g] - y.like.centre));
        steady_drop(&y);
        free(z);
    }
    return e;
}

static int slowest(const float *e, int n)
{
    int at = 0;

    for (int i = 1; i < n; i++)
        at = e[i] < e[at] ? i : at;
    return at;
}

/* The next leaf that stands out; false: none does. */
static bool next(struct suspect *x, struct seas *s, bool *lost)
{
    struct sights k = see(s);
    float *e = effects(s, &k);
    bool sure = false;

    for (int i = 0; i < TRIES && !sure; i++) {
        *x = (struct suspect){.leaf = slowest(e, s->leaves), .p = 1};
        if (!(e[x->leaf] < -noise_constants.delta))
            break;
        e[x->leaf] = 0;
        sure = is_sure(x, s, &k);
    }
    if (sure) {
        x->flows = flows_carried(x, s, &k);
        *lost = is_lost(x, s, &k);
    }
    free(e);
    free(k.at);
    return sure;
}

/* --- what is found --- */

/* Mark looks through full uplinks: no evidence for their ends.  Counts the looks as evidence of f. */
static void take_out(struct found *f, const struct suspect *x, const struct seas *s, bool *full)
{
    bool *met = mem_calloc((size_t)s->v->places->n + 1, sizeof(*met)),
         *block = mem_calloc((size_t)s->blocks + 1, sizeof(*block));
    int tier[TIER_MAX] = {0};

    for (int i = 0; i < 2 * s->flows; i++) {
        const struct flow *k = &s->flow[i / 2];
        const struct look *l = look_of(s, k);
        int end = i % 2;

        if (leaf_of(s, k, end) != x->leaf || k->flows[end] < noise_constants.flows_full * x->flows)
            continue;
        full[k->look] = true;
        if (!is_told(s, k))
            continue;
        f->looks++;
        tier[l->tier]++;
        f->tier = f->tier < 0 || tier[l->tier] > tier[f->tier] ? l->tier : f->tier;
        f->partners += !met[end_of(l, !end)];
        met[end_of(l, !end)] = true;
        f->blocks += !block[s->v->block[l->block]];
        block[s->v->block[l->block]] = true;
    }
    free(met);
    free(block);
}

static struct found name(const struct suspect *x, const struct seas *s, bool *full)
{
    int rack = s->rung == RUNG_RACK ? x->leaf : rack_of_leaf(s->v->places, x->leaf);
    struct found f = {.part = rack >= 0 ? PART_RACK_UPLINKS : PART_LEAF,
                      .a = rack >= 0 ? rack : x->leaf,
                      .b = -1,
                      .tier = -1,
                      .state = STATE_LOST_UPLINKS,
                      .effect = fmin(0, log(x->flows / s->members[x->leaf])),
                      .sd = x->sd,
                      .p = x->p,
                      .share = 1,
                      .usual_s = NAN,
                      .also = PART_COUNT};

    take_out(&f, x, s, full);
    if (rack >= 0)
        f.tier = -1;
    return f;
}

struct found *uplinks_find(const struct view *v, bool *full, int *founds)
{
    enum rung rung = v->places->count[RUNG_LEAF] > 1 ? RUNG_LEAF : RUNG_RACK;
    struct found *found = NULL;
    struct suspect x;
    struct seas s;
    bool lost = false;

    *founds = 0;
    if (v->places->count[rung] < LEAVES)
        return NULL;
    seas_open(&s, v, rung);
    for (int i = 0; 2 * i < s.leaves && next(&x, &s, &lost); i++) {
        s.out[x.leaf] = true;
        if (lost)
            MEM_PUSH(found, *founds) = name(&x, &s, full);
    }
    seas_close(&s);
    return found;
}
