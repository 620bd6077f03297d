/* SPDX-License-Identifier: BSD-3-Clause */
/* host_rails.c - find rails: endpoints with the same number on their hosts are nearer to each other than other
 * endpoints are, which holds if NIC k of every host is attached to leaf k.
 *
 * Each latency between two hosts is compared with endpoints of equal number on the same hosts, so that the location
 * of the hosts cancels.  For each two numbers, the median over hosts is compared with the pairs of equal number.
 * Numbers are on different rails from 3 % of latency and 4 standard errors.  Each region is checked separately:
 * region i holds the pairs of hosts that layer i joins but no layer before; region layers.count holds the rest. */
#include "fit/fit.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/stats.h"

enum { L = RAIL_NUMBERS_MAX, MET_MIN = 8 };

static const double step = 0.03;     /* share of latency that separates rails */
static const double errors = 4;      /* standard errors that separate rails */
static const double wider = 1.15;    /* bandwidth ratio of two regions: another tier */
static const double torn_most = 0.1; /* share of pairs that contradict their rail */
static const unsigned quiet =
    1u << STAGE_TOURNAMENT | 1u << STAGE_ISOLATED | 1u << STAGE_SHIFT; /* same for all numbers */

/* One observation between hosts a < b, by numbers x <= y of its endpoints. */
struct met {
    int a, b, x, y;
    double log_sec, noise;
};

/* Log latency between two numbers, relative to equal numbers between the same hosts. */
struct above {
    int x, y;
    double d, noise;
};

struct region {
    struct above *v;
    int n;
    double d[L][L], err[L][L]; /* medians and their standard errors; NAN: not measured */
};

/* Region of two hosts; -1: unresolved in a layer. */
static int region_of(const struct layers *l, int a, int b)
{
    for (int i = 0; i < l->count; i++) {
        const int *of = l->layer[i].of;
        if (of[a] < 0 || of[b] < 0)
            return -1;
        if (of[a] == of[b])
            return i;
    }
    return l->count;
}

static void swap_up(int *x, int *y)
{
    int swap = *x;

    if (*x > *y) {
        *x = *y;
        *y = swap;
    }
}

/* List the latencies of a region, by hosts.  The caller frees the list. */
static struct met *meetings(const struct layers *l, int region, const struct topo *t,
                            const struct obs *o, int count, int *n)
{
    double bytes = observe_size(o, count, OP_PAIR_LATENCY);
    struct met *v = NULL;

    *n = 0;
    for (int i = 0; i < count; i++) {
        int a = topo_at(t, o[i].src, LEVEL_HOST), b = topo_at(t, o[i].dst, LEVEL_HOST);
        if (!obs_is_latency(&o[i], bytes) || !(o[i].stages & quiet) || a == b ||
            region_of(l, a, b) != region)
            continue;
        struct met m = {a,
                        b,
                        t->endpoint[o[i].src].local,
                        t->endpoint[o[i].dst].local,
                        log(o[i].sec),
                        observe_noise(&o[i])};
        swap_up(&m.a, &m.b);
        swap_up(&m.x, &m.y);
        if (m.y < L)
            MEM_PUSH(v, *n) = m;
    }
    stats_sort_keys(v, *n, sizeof(*v), stats_2ints);
    return v;
}

/* Compare each latency with equal numbers between the same two hosts. */
static void set_against(struct region *r, const struct met *v, int n)
{
    double *equal = mem_calloc((size_t)n + 1, sizeof(*equal));

    for (int i = 0, j; i < n; i = j) {
        int k = 0;
        for (j = i; j < n && stats_by_2ints(&v[i], &v[j]) == 0; j++)
            if (v[j].x == v[j].y)
                equal[k++] = v[j].log_sec;
        double usual = k ? stats_median(equal, k) : NAN;
        for (int m = i; m < j && k; m++)
            MEM_PUSH(r->v, r->n) =
                (struct above){v[m].x, v[m].y, v[m].log_sec - usual, M_SQRT2 * v[m].noise};
    }
    free(equal);
}

static void find_medians(struct region *r)
{
    double *v = mem_calloc((size_t)r->n + 1, sizeof(*v));

    for (int x = 0; x < L; x++)
        for (int y = 0; y < L; y++)
            r->d[x][y] = r->err[x][y] = NAN;
    stats_sort_keys(r->v, r->n, sizeof(*r->v), stats_2ints);
    for (int i = 0, j; i < r->n; i = j) {
        for (j = i; j < r->n && stats_by_2ints(&r->v[i], &r->v[j]) == 0; j++)
            v[j - i] = r->v[j].d;
        int n = j - i, x = r->v[i].x, y = r->v[i].y;
        r->d[x][y] = stats_median(v, n);
        double sigma = n > 3 ? 1.4826 * stats_mad(v, n, r->d[x][y]) : 0; /* few have no MAD */
        for (int k = i; k < j; k++)
            v[k - i] = r->v[k].noise;
        r->err[x][y] = 1.25 * fmax(sigma, stats_median(v, n)) / sqrt(n);
    }
    free(v);
}

/* Log latency between x and y, relative to the mean of x-x and y-y. */
static double between(const struct region *r, int x, int y)
{
    double own_x = isnan(r->d[x][x]) ? 0 : r->d[x][x], own_y = isnan(r->d[y][y]) ? 0 : r->d[y][y];

    return r->d[x][y] - (own_x + own_y) / 2;
}

/* Distance to other rails, in logarithms; 0: there are none. */
static double other_rail(const struct region *r)
{
    double v[L * L], err[L * L];
    int n = 0;

    for (int x = 0; x < L; x++)
        for (int y = x + 1; y < L; y++)
            if (!isnan(r->d[x][y])) {
                v[n] = between(r, x, y);
                err[n++] = r->err[x][y];
            }
    if (!n || r->n < MET_MIN)
        return 0;
    stats_sort(v, n);
    double far = stats_quantile(v, n, 0.75);
    return far > fmax(step, errors * stats_median(err, n)) ? far : 0;
}

/* Group numbers into rails; false if the numbers do not form consistent groups. */
static bool share_rails(struct host_rails *out, const struct region *r, int numbers, double far)
{
    int torn = 0, joined = 0;

    out->count = 0;
    for (int x = 0; x < L; x++) {
        out->of[x] = -1;
        if (x >= numbers)
            continue;
        for (int y = 0; y < x && out->of[x] < 0; y++)
            if (between(r, y, x) < far / 2)
                out->of[x] = out->of[y];
        if (out->of[x] < 0)
            out->of[x] = out->count++;
    }
    for (int x = 0; x < numbers; x++)
        for (int y = x + 1; y < numbers; y++)
            if (out->of[x] == out->of[y] && !isnan(r->d[x][y])) {
                joined++;
                torn += between(r, x, y) >= far / 2;
            }
    return torn <= torn_most * joined;
}

static int numbers_of(const struct topo *t)
{
    int most = 0;

    for (int i = 0; i < t->endpoints; i++)
        most = t->endpoint[i].local >= most ? t->endpoint[i].local + 1 : most;
    return most < L ? most : L;
}

static bool find_in(struct host_rails *out, const struct layers *l, int region,
                    const struct topo *t, const struct obs *o, int count)
{
    struct region r = {0};
    int n;
    struct met *v = meetings(l, region, t, o, count, &n);

    set_against(&r, v, n);
    find_medians(&r);
    double far = other_rail(&r);
    bool found = far > 0 && share_rails(out, &r, numbers_of(t), far);
    free(v);
    free(r.v);
    return found;
}

int host_rails_of(const struct host_rails *r, const struct topo *t, int endpoint)
{
    int local = t->endpoint[endpoint].local;

    return local < L ? r->of[local] : -1;
}

/* Median over pairs of a region whose ends are on different rails; NAN: none. */
static double crossed(const struct layers *l, int region, const struct topo *t, const struct obs *o,
                      int count, enum op op, double *err)
{
    double *v = mem_calloc((size_t)count + 1, sizeof(*v)), median = NAN;
    double bytes = observe_size(o, count, op);
    int n = 0;

    for (int i = 0; i < count; i++) {
        int a = topo_at(t, o[i].src, LEVEL_HOST), b = topo_at(t, o[i].dst, LEVEL_HOST);
        if (o[i].op == op && o[i].bytes == bytes && o[i].sec > 0 && !o[i].outdone && a != b &&
            host_rails_of(&l->rails, t, o[i].src) != host_rails_of(&l->rails, t, o[i].dst) &&
            region_of(l, a, b) == region)
            v[n++] = log(o[i].sec);
    }
    *err = NAN;
    if (n) {
        median = stats_median(v, n);
        *err = n > 3 ? 1.25 * 1.4826 * stats_mad(v, n, median) / sqrt(n) : INFINITY;
    }
    free(v);
    return median;
}

/* True if pairs across rails are as far apart inside this layer as beyond: the layer is then only the reach of its
 * leaves. */
static bool only_leaves(const struct layers *l, int region, const struct topo *t,
                        const struct obs *o, int count)
{
    double e1, e2;
    double in = crossed(l, region, t, o, count, OP_PAIR_LATENCY, &e1);
    double out = crossed(l, region + 1, t, o, count, OP_PAIR_LATENCY, &e2);
    double slow = crossed(l, region, t, o, count, OP_PAIR_BW, &e2);
    double slower = crossed(l, region + 1, t, o, count, OP_PAIR_BW, &e2);

    return !(fabs(out - in) > fmax(step, errors * hypot(e1, e2))) && !(slower - slow > log(wider));
}

void host_rails_find(struct layers *l, const struct topo *t, const struct obs *o, int count)
{
    struct host_rails *r = &l->rails;

    r->region = -1;
    for (int i = 0; i <= l->count && r->region < 0; i++)
        if (find_in(r, l, i, t, o, count))
            r->region = i;
    if (r->region >= 0 && r->region < l->count)
        l->layer[r->region].only_leaves = only_leaves(l, r->region, t, o, count);
}
