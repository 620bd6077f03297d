/* SPDX-License-Identifier: BSD-3-Clause */
#include "cost/fit/observe.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/stats.h"

static int order(long a, long b)
{
    return (a > b) - (a < b);
}

static bool alone(const struct point *p)
{
    return p->flows <= 1;
}

/* Same thing?  Collectives are told apart by round and group, pairs by their endpoints. */
static int compare(const struct point *x, const struct point *y)
{
    bool pair = op_is_pair(x->op);
    int c = order(x->op, y->op);

    if (!c)
        c = pair ? order(x->src, y->src) : order(x->round, y->round);
    if (!c)
        c = pair ? order(x->dst, y->dst) : order(x->group, y->group);
    if (!c)
        c = order(stage_by_nic(x->stage), stage_by_nic(y->stage));
    if (!c)
        c = (x->bytes > y->bytes) - (x->bytes < y->bytes);
    if (!c && pair)
        c = order(alone(x), alone(y));
    return c;
}

/* What compare() asks of a point, as one number for who and one for what they did: ten operations by
 * rounds and groups, or endpoints, of which there are fewer. */
static uint64_t by_thing(const void *a)
{
    const struct point *p = *(const struct point *const *)a;
    const uint64_t most = (1 << 30) + 1;
    bool pair = op_is_pair(p->op);

    return ((uint64_t)p->op * most + (uint64_t)(pair ? p->src : p->round)) * most +
           (uint64_t)(pair ? p->dst : p->group);
}

_Static_assert(OP_COUNT <= 15, "by_thing() has no room for more");

static uint64_t by_size(const void *a)
{
    const struct point *p = *(const struct point *const *)a;

    return (uint64_t)stage_by_nic(p->stage) << 60 | (uint64_t)p->bytes << 1 |
           (op_is_pair(p->op) && alone(p));
}

/* Of the points that were no good the last one's words count. */
static bool is_later(const struct point *p, const struct point *than)
{
    int c = than ? order(p->round, than->round) : 1;

    return c ? c > 0 : p->epoch >= than->epoch;
}

static void combine(struct obs *o, const struct point *const *p, int n)
{
    bool pair = op_is_pair(p[0]->op);
    double small[3][64], *v[3];
    const struct point *worst = NULL;

    *o = (struct obs){.op = p[0]->op,
                      .bytes = (double)p[0]->bytes,
                      .by_nic = stage_by_nic(p[0]->stage),
                      .alone = alone(p[0])};
    o->src = pair ? p[0]->src : p[0]->round;
    o->dst = pair ? p[0]->dst : p[0]->group;
    o->sec = o->best = o->lo = o->hi = NAN;
    for (int k = 0; k < 3; k++)
        v[k] = n <= 64 ? small[k] : mem_calloc((size_t)n, sizeof(double));
    for (int i = 0; i < n; i++) {
        bool bad = p[i]->stop == STOP_FAILED || p[i]->wrong || !(p[i]->sec.median > 0);
        o->stages |= 1u << p[i]->stage;
        o->wrong |= p[i]->wrong;
        o->failed |= bad && !p[i]->wrong;
        if (bad) {
            worst = is_later(p[i], worst) ? p[i] : worst;
            continue;
        }
        v[0][o->epochs] = p[i]->sec.median;
        v[1][o->epochs] = p[i]->sec.lo;
        v[2][o->epochs++] = p[i]->sec.hi;
        o->n += p[i]->sec.n;
    }
    o->note = worst ? worst->note : NULL;
    if (o->epochs) {
        o->sec = stats_median(v[0], o->epochs); /* sorts */
        o->best = v[0][0];
        o->lo = stats_median(v[1], o->epochs);
        o->hi = stats_median(v[2], o->epochs);
        o->range = (v[0][o->epochs - 1] - v[0][0]) / o->sec;
    }
    for (int k = 0; k < 3 && n > 64; k++)
        free(v[k]);
}

/* Neighbours in the order of observe(): a pair in parallel, and the same alone. */
static bool has_alone(const struct obs *o, const struct obs *end)
{
    return !o->alone && o + 1 < end && o[1].alone && o[1].op == o->op && o[1].src == o->src &&
           o[1].dst == o->dst && o[1].by_nic == o->by_nic && o[1].bytes == o->bytes && o[1].sec > 0;
}

/* Where few pairs ran alone (ladders, retests) all count as before: like is compared with like. */
static void find_outdone(struct obs *o, int count)
{
    double bytes = observe_size(o, count, OP_PAIR_LATENCY);
    int alone = 0, beside = 0;

    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < count; i++) {
            bool is = o[i].op == OP_PAIR_LATENCY && o[i].bytes == bytes;
            bool both = is && has_alone(&o[i], o + count);
            alone += !pass && is && o[i].alone;
            beside += !pass && is && !o[i].alone && !both;
            o[i].outdone = pass && both && alone > beside;
        }
}

int observe(struct obs **out, const struct points *p, bool pairs)
{
    const struct point **v = mem_calloc((size_t)p->count, sizeof(*v));
    int n = 0, count = 0;

    *out = NULL;
    for (int i = 0; i < p->count; i++)
        if (op_is_pair(p->point[i].op) == pairs)
            v[n++] = &p->point[i];
    stats_sort_keys(v, n, sizeof(*v), by_size);
    stats_sort_keys(v, n, sizeof(*v), by_thing);
    for (int i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && compare(v[i], v[j]) == 0; j++)
            ;
        struct obs o;
        combine(&o, v + i, j - i);
        MEM_PUSH(*out, count) = o;
    }
    free(v);
    find_outdone(*out, count);
    return count;
}

double observe_size(const struct obs *o, int count, enum op op)
{
    double *v = mem_calloc((size_t)count + 1, sizeof(*v)), best = 0;
    int n = 0, most = 0;

    for (int i = 0; i < count; i++)
        if (o[i].op == op)
            v[n++] = o[i].bytes;
    stats_sort(v, n);
    for (int i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && v[j] == v[i]; j++)
            ;
        if (j - i >= most) {
            most = j - i;
            best = v[i];
        }
    }
    free(v);
    return best;
}

double observe_noise(const struct obs *o)
{
    /* the range of 2 .. 5 normal values in standard deviations (Tippett 1925) */
    static const double range[] = {1, 1, 1.13, 1.69, 2.06, 2.33};
    int n = o->epochs < 5 ? o->epochs : 5;
    double within = (o->hi - o->lo) / (2 * 1.96 * o->sec), median = n > 2 ? 1.25 : 1;

    return median * fmax(within, n > 1 ? o->range / range[n] : 0) /
           sqrt(o->epochs > 0 ? o->epochs : 1);
}
