/* SPDX-License-Identifier: BSD-3-Clause */
#include "fit/observe.h"

#include <math.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/stats.h"

enum { FEW = 64 }; /* limit for insertion sort, points */

static int order(long a, long b)
{
    return (a > b) - (a < b);
}

static bool alone(const struct point *p)
{
    return p->flows <= 1;
}

/* Order points by pair or collective: collectives by round and group, pairs by endpoints. */
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

/* Key: operation, then endpoints, or round and group (at most 2^30 each).  With by_size() this gives the order of
 * compare(). */
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

/* True if p is later than the other bad point: the note of the last bad point is kept. */
static bool is_later(const struct point *p, const struct point *than)
{
    int c = than ? order(p->round, than->round) : 1;

    return c ? c > 0 : p->epoch >= than->epoch;
}

static bool is_bad(const struct point *p)
{
    return p->stop == STOP_FAILED || p->wrong || !(p->sec.median > 0);
}

/* Combine the points that succeeded into medians. */
static void combine(struct obs *o, struct obs_more *m, const struct point *const *p, int n)
{
    double small[3][64], *v[3];
    const struct point *worst = NULL;

    o->sec = m->lo = m->hi = NAN;
    for (int k = 0; k < 3; k++)
        v[k] = n <= 64 ? &small[k][0] : mem_calloc((size_t)n, sizeof(double));
    for (int i = 0; i < n; i++) {
        if (is_bad(p[i])) {
            worst = is_later(p[i], worst) ? p[i] : worst;
            continue;
        }
        v[0][o->n] = p[i]->sec.median;
        v[1][o->n] = point_sec(p[i]->sec.lo);
        v[2][o->n++] = point_sec(p[i]->sec.hi);
        m->n += p[i]->n;
    }
    m->note = worst ? worst->note : NULL;
    if (o->n) {
        o->sec = stats_median(v[0], o->n); /* sorts */
        m->lo = stats_median(v[1], o->n);
        m->hi = stats_median(v[2], o->n);
        m->range = (v[0][o->n - 1] - v[0][0]) / o->sec;
    }
    for (int k = 0; k < 3 && n > 64; k++)
        free(v[k]);
}

static bool is_one(const struct point *const *p, int n)
{
    return n == 1 && !is_bad(p[0]);
}

/* Fill one observation.  *more: free space for several points or a bad point; advanced if used. */
static void fill(struct obs *o, struct obs_more **more, const struct point *const *p, int n)
{
    bool pair = op_is_pair(p[0]->op);

    *o = (struct obs){.bytes = (double)p[0]->bytes,
                      .src = pair ? p[0]->src : p[0]->round,
                      .dst = pair ? p[0]->dst : p[0]->group,
                      .op = p[0]->op,
                      .by_nic = stage_by_nic(p[0]->stage),
                      .alone = alone(p[0]),
                      .one = is_one(p, n)};
    for (int i = 0; i < n; i++) {
        o->stages |= 1u << p[i]->stage;
        o->wrong |= p[i]->wrong;
        o->failed |= is_bad(p[i]) && !p[i]->wrong;
    }
    if (o->one) {
        o->sec = p[0]->sec.median;
        o->of.point.lo = p[0]->sec.lo;
        o->of.point.hi = p[0]->sec.hi;
        o->n = p[0]->n;
    } else {
        o->of.more = *more;
        combine(o, (*more)++, p, n);
    }
}

/* Number of points at the front of a sorted list that belong to the same observation. */
static int of_one_thing(const struct point *const *p, int n)
{
    int i = 1;

    while (i < n && compare(p[0], p[i]) == 0)
        i++;
    return i;
}

/* Observations in one block, with the spill area behind them.  Pages never written use no memory. */
struct folded {
    struct obs *obs;
    struct obs_more *more;
    int count;
};

static void fold_open(struct folded *f, int n)
{
    size_t head = (size_t)n * sizeof(struct obs);

    f->obs = mem_calloc(1, head + (size_t)n * sizeof(struct obs_more) + 1);
    f->more = (struct obs_more *)(void *)((char *)f->obs + head);
    f->count = 0;
}

/* Add the observations of a sorted list. */
static void fold(struct folded *f, const struct point *const *v, int n)
{
    for (int i = 0, same; i < n; i += same) {
        same = of_one_thing(v + i, n - i);
        fill(&f->obs[f->count++], &f->more, v + i, same);
    }
}

/* True if the next observation is the same pair alone: the order of observe() makes them adjacent. */
static bool has_alone(const struct obs *o, const struct obs *end)
{
    return !o->alone && o + 1 < end && o[1].alone && o[1].op == o->op && o[1].src == o->src &&
           o[1].dst == o->dst && o[1].by_nic == o->by_nic && o[1].bytes == o->bytes && o[1].sec > 0;
}

/* Index of the first observation of this operation or of a later one; they are sorted by it. */
static int first_of(const struct obs *o, int count, int op)
{
    int from = 0, to = count;

    while (from < to) {
        int mid = from + (to - from) / 2;
        if ((int)o[mid].op < op)
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

/* Mark superseded latencies if most pairs ran alone.  With few pairs alone (ladders, retests) all count, so that
 * like is compared with like. */
static void find_outdone(struct obs *o, int count)
{
    double bytes = observe_size(o, count, OP_PAIR_LATENCY);
    const int from = first_of(o, count, OP_PAIR_LATENCY),
              to = first_of(o, count, OP_PAIR_LATENCY + 1);
    int alone = 0, beside = 0;

    for (int i = from; i < to; i++)
        if (o[i].bytes == bytes) {
            alone += o[i].alone;
            beside += !o[i].alone && !has_alone(&o[i], o + count);
        }
    for (int i = from; i < to && alone > beside; i++)
        o[i].outdone = o[i].bytes == bytes && has_alone(&o[i], o + count);
}

/* A point and its keys, because the points of a list are far apart in memory. */
struct keyed_point {
    uint64_t thing, size;
    const struct point *p;
};

static bool precedes(const struct keyed_point *x, const struct keyed_point *y)
{
    return x->thing != y->thing ? x->thing < y->thing : x->size < y->size;
}

/* Stable insertion sort. */
static void sort_few(const struct point **v, int n)
{
    struct keyed_point at[FEW];

    for (int i = 0; i < n; i++)
        at[i] = (struct keyed_point){by_thing(&v[i]), by_size(&v[i]), v[i]};
    for (int i = 1, k; i < n; i++) {
        const struct keyed_point x = at[i];
        for (k = i; k > 0 && precedes(&x, &at[k - 1]); k--)
            at[k] = at[k - 1];
        at[k] = x;
    }
    for (int i = 0; i < n; i++)
        v[i] = at[i].p;
}

static void sort(const struct point **v, int n)
{
    if (n <= FEW) {
        sort_few(v, n);
        return;
    }
    stats_sort_keys(v, n, sizeof(*v), by_size);
    stats_sort_keys(v, n, sizeof(*v), by_thing);
}

/* List points: pairs by operation and source, in their order; collectives in one list.  Returns the number of lists. */
static int list_points(struct lists *l, const struct points *p, bool pairs)
{
    int *key = mem_calloc((size_t)p->count + 1, sizeof(*key)), ends = 1;

    for (int i = 0; i < p->count && pairs; i++)
        ends = p->point[i].src >= ends ? p->point[i].src + 1 : ends;
    for (int i = 0; i < p->count; i++) {
        const struct point *q = &p->point[i];
        key[i] = op_is_pair(q->op) != pairs ? -1 : pairs ? (int)q->op * ends + q->src : 0;
    }
    int lists = pairs ? OP_COUNT * ends : 1;
    lists_make(l, key, NULL, p->count, lists);
    free(key);
    return lists;
}

int observe(struct obs **out, const struct points *p, bool pairs)
{
    struct lists by;
    struct folded f;
    int lists = list_points(&by, p, pairs), most = 0;

    for (int l = 0; l < lists; l++)
        most = by.start[l + 1] - by.start[l] > most ? by.start[l + 1] - by.start[l] : most;
    const struct point **v = mem_calloc((size_t)most + 1, sizeof(*v));

    fold_open(&f, by.start[lists]);
    for (int l = 0; l < lists; l++) { /* folded while the list is in the cache */
        const int n = by.start[l + 1] - by.start[l];

        for (int i = 0; i < n; i++)
            v[i] = &p->point[by.at[by.start[l] + i]];
        sort(v, n);
        fold(&f, v, n);
    }
    lists_free(&by);
    free(v);
    if (pairs)
        find_outdone(f.obs, f.count);
    *out = f.obs;
    return f.count;
}

double observe_size(const struct obs *o, int count, enum op op)
{
    struct size {
        double bytes;
        int n;
    } *size = NULL; /* few sizes */
    int sizes = 0, at = 0, best = 0;

    for (int i = first_of(o, count, (int)op), to = first_of(o, count, (int)op + 1); i < to; i++) {
        if (at == sizes || size[at].bytes != o[i].bytes)
            for (at = 0; at < sizes && size[at].bytes != o[i].bytes; at++)
                ;
        if (at == sizes)
            MEM_PUSH(size, sizes) = (struct size){o[i].bytes, 0};
        size[at].n++;
    }
    for (int i = 1; i < sizes; i++)
        if (size[i].n > size[best].n ||
            (size[i].n == size[best].n && size[i].bytes > size[best].bytes))
            best = i;
    double bytes = sizes ? size[best].bytes : 0;
    free(size);
    return bytes;
}

double observe_noise(const struct obs *o)
{
    /* expected range of 2 .. 5 normal values in standard deviations (Tippett 1925) */
    static const double range[] = {1, 1, 1.13, 1.69, 2.06, 2.33};
    int epochs = obs_epochs(o), n = epochs < 5 ? epochs : 5;
    double within = (obs_hi(o) - obs_lo(o)) / (2 * 1.96 * o->sec), median = n > 2 ? 1.25 : 1;

    return median * fmax(within, n > 1 ? obs_range(o) / range[n] : 0) /
           sqrt(epochs > 0 ? epochs : 1);
}
