/* SPDX-License-Identifier: BSD-3-Clause */
#include "cost/fit/layers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"
#include "topo/host/nic.h"

enum { UNITS_MIN = 3 };

/* The fastest port that is sold, 800 Gb/s; for hosts whose NICs are not visible. */
static const double fastest_nic = 100e9;
static const double beyond_nic = 1.5; /* times a NIC's rate: more than it carries by any counting */
static const double nvlink_jump = 2;  /* near / far at least */

/* One observation between two units. */
struct meet {
    int a, b; /* a < b */
    const struct obs *o;
};

struct finder {
    const struct topo *t;
    const struct obs *o;
    int count;
    bool rest, rails; /* rails: endpoints of one host are on several leaves */
    double bw_bytes, lat_bytes;
    const int *unit; /* of each host */
    int units;
};

static int by_units(const void *a, const void *b)
{
    const struct meet *x = a, *y = b;

    return stats_order((double[]){x->a, x->b}, (double[]){y->a, y->b}, 2);
}

static bool same_number(const struct finder *f, const struct obs *o)
{
    return f->t->endpoint[o->src].local == f->t->endpoint[o->dst].local;
}

/* Those of v that have the same number on their hosts come first; how many count. */
static int prefer_rails(struct meet *v, int n, const struct finder *f)
{
    int same = 0;

    for (int i = 0; i < n; i++)
        if (same_number(f, v[i].o)) {
            struct meet swap = v[same];
            v[same++] = v[i];
            v[i] = swap;
        }
    return same ? same : n;
}

/* The best bandwidth that was seen between two units, and the usual latency.  Where leaves are of
 * rails, two hosts that met across rails alone are no farther than others for that. */
static struct edge fold(struct meet *v, int n, const struct finder *f)
{
    struct edge e = {v[0].a, v[0].b, NAN, NAN, NAN, 0};
    double alone = 0, parallel = 0, *sec = mem_calloc(2 * (size_t)n, sizeof(*sec));
    int latencies = 0;

    n = prefer_rails(v, n, f);
    bool across = f->rails && !same_number(f, v[0].o);
    for (int i = 0; i < n; i++) {
        const struct obs *o = v[i].o;
        if (!(o->sec > 0))
            continue;
        if (o->op == OP_PAIR_BW && o->bytes == f->bw_bytes) {
            double *best = o->alone ? &alone : &parallel;
            *best = fmax(*best, o->bytes / o->sec);
        } else if (o->op == OP_PAIR_LATENCY && o->bytes == f->lat_bytes && !across) {
            sec[n + latencies] = observe_noise(o);
            sec[latencies++] = o->sec;
        }
    }
    if (latencies) {
        e.sec = stats_median(sec, latencies);
        e.noise = stats_median(sec + n, latencies) / sqrt(latencies);
    }
    if (alone > 0 || parallel > 0)
        e.Bps = alone > 0 ? alone : parallel;
    if (alone > 0 && parallel > 0)
        e.shared = parallel / alone;
    free(sec);
    return e;
}

static bool counts(const struct finder *f, const struct obs *o, int *a, int *b)
{
    *a = f->unit[topo_at(f->t, o->src, LEVEL_HOST)];
    *b = f->unit[topo_at(f->t, o->dst, LEVEL_HOST)];
    return *a != *b && *a >= 0 && *b >= 0 &&
           (!f->rest || topo_tier(f->t, o->src, o->dst) == f->t->tiers - 1);
}

static int make_edges(struct edge **out, const struct finder *f)
{
    struct meet *v = NULL;
    int n = 0, count = 0, a, b;

    for (int i = 0; i < f->count; i++)
        if (counts(f, &f->o[i], &a, &b))
            MEM_PUSH(v, n) = (struct meet){a < b ? a : b, a < b ? b : a, &f->o[i]};
    *out = NULL;
    if (n)
        qsort(v, (size_t)n, sizeof(*v), by_units);
    for (int i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && by_units(&v[i], &v[j]) == 0; j++)
            ;
        struct edge e = fold(v + i, j - i, f);
        MEM_PUSH(*out, count) = e;
    }
    free(v);
    return count;
}

/* More than any NIC here could carry, and a clear step above what is outside. */
static bool is_nvlink(const struct topo *t, const struct clusters *c)
{
    double nic = 0;

    for (int i = 0; i < t->nics; i++)
        nic = fmax(nic, t->nic[i].rate_Bps);
    return t->endpoints && t->endpoint[0].kind == ENDPOINT_GPU && c->clue == CLUE_BANDWIDTH &&
           c->near > beyond_nic * (nic > 0 ? nic : fastest_nic) && c->near > nvlink_jump * c->far;
}

/* Two groups with several units each. */
static bool is_fabric(const struct clusters *c, int units)
{
    int *size = mem_calloc((size_t)c->groups + 1, sizeof(*size)), several = 0;

    for (int i = 0; i < units; i++)
        several += c->of[i] >= 0 && ++size[c->of[i]] == 2;
    free(size);
    return several > 1;
}

static void keep(struct layers *l, const struct finder *f, const struct clusters *c)
{
    struct host_layer *out = &l->layer[l->count++];

    *out = (struct host_layer){.groups = c->groups,
                               .clue = c->clue,
                               .near = c->near,
                               .far = c->far,
                               .nvlink = is_nvlink(f->t, c)};
    out->of = mem_calloc((size_t)f->t->hosts + 1, sizeof(*out->of));
    for (int h = 0; h < f->t->hosts; h++) {
        out->of[h] = f->unit[h] < 0 ? -1 : c->of[f->unit[h]];
        out->unresolved += out->of[h] < 0;
    }
}

/* One layer above f->unit; false: there is none. */
static bool find(struct layers *l, struct finder *f, bool hosts)
{
    struct clusters c;
    struct edge *edge;
    int edges = make_edges(&edge, f);

    cluster_units(&c, f->units, edge, edges);
    bool found = c.groups > 1 && (hosts || is_fabric(&c, f->units));
    if (found)
        keep(l, f, &c);
    else if (hosts)
        l->contradictions = c.contradictions;
    cluster_free(&c);
    free(edge);
    return found;
}

/* Is a host known whose endpoints are on several leaves? */
static bool leaves_of_rails(const struct topo *t)
{
    int *leaf = mem_calloc((size_t)t->hosts + 1, sizeof(*leaf));
    bool several = false;

    for (int i = 0; i < t->endpoints && !several; i++) {
        const struct place *p = &t->endpoint[i].place;
        int *of = &leaf[p->at[LEVEL_HOST]], own = p->at[LEVEL_LEAF] + 1;
        several = own && *of && *of != own;
        *of = own ? own : *of;
    }
    free(leaf);
    return several;
}

/* --- rails: do endpoints with the same number on their hosts stand nearer to each other than
 * others do?  So it is where NIC k of every host hangs on leaf k.
 *
 * Latencies between two hosts are set against what endpoints of equal number have there, which
 * leaves out where the hosts stand; the median over hosts for each two numbers, against what those
 * two have with their own kind, tells which numbers share a rail.  Each region is asked by itself:
 * region i are the pairs of hosts that layer i joins and none before, region layers.count the rest.
 * --- */

enum { L = RAIL_NUMBERS_MAX, MET_MIN = 8 };

static const double step = 0.03;     /* of latency, to be another rail */
static const double errors = 4;      /* standard errors of the same */
static const double wider = 1.15;    /* bandwidth of one region against the next: another tier */
static const double torn_most = 0.1; /* pairs of numbers on one rail that say they are not */
static const unsigned quiet =
    1u << STAGE_TOURNAMENT | 1u << STAGE_ISOLATED | 1u << STAGE_SHIFT; /* alike for all numbers */

/* One observation between hosts a < b, by endpoints of numbers x <= y there. */
struct met {
    int a, b, x, y;
    double log_sec, noise;
};

/* What the two numbers have above what equal numbers have between the same hosts. */
struct above {
    int x, y;
    double d, noise;
};

struct region {
    struct above *v;
    int n;
    double d[L][L], err[L][L]; /* medians and their standard errors; NAN: not met */
};

static int by_hosts(const void *a, const void *b)
{
    const struct met *x = a, *y = b;

    return stats_order((double[]){x->a, x->b}, (double[]){y->a, y->b}, 2);
}

static int by_numbers(const void *a, const void *b)
{
    const struct above *x = a, *y = b;

    return stats_order((double[]){x->x, x->y}, (double[]){y->x, y->y}, 2);
}

static int host_of(const struct topo *t, int id)
{
    return topo_at(t, id, LEVEL_HOST);
}

/* The region of two hosts; -1: a layer cannot tell. */
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

/* Latencies of a region, by hosts; the caller frees. */
static struct met *meetings(const struct layers *l, int region, const struct topo *t,
                            const struct obs *o, int count, int *n)
{
    double bytes = observe_size(o, count, OP_PAIR_LATENCY);
    struct met *v = NULL;

    *n = 0;
    for (int i = 0; i < count; i++) {
        struct met m = {
            host_of(t, o[i].src),        host_of(t, o[i].dst), t->endpoint[o[i].src].local,
            t->endpoint[o[i].dst].local, log(o[i].sec),        observe_noise(&o[i])};
        if (o[i].op != OP_PAIR_LATENCY || o[i].bytes != bytes || !(o[i].sec > 0) ||
            !(o[i].stages & quiet) || m.a == m.b || region_of(l, m.a, m.b) != region)
            continue;
        swap_up(&m.a, &m.b);
        swap_up(&m.x, &m.y);
        if (m.y < L)
            MEM_PUSH(v, *n) = m;
    }
    if (*n)
        qsort(v, (size_t)*n, sizeof(*v), by_hosts);
    return v;
}

/* Each meeting against those of equal numbers between the same two hosts. */
static void set_against(struct region *r, const struct met *v, int n)
{
    double *equal = mem_calloc((size_t)n + 1, sizeof(*equal));

    for (int i = 0, j; i < n; i = j) {
        int k = 0;
        for (j = i; j < n && by_hosts(&v[i], &v[j]) == 0; j++)
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
    if (r->n)
        qsort(r->v, (size_t)r->n, sizeof(*r->v), by_numbers);
    for (int i = 0, j; i < r->n; i = j) {
        for (j = i; j < r->n && by_numbers(&r->v[i], &r->v[j]) == 0; j++)
            v[j - i] = r->v[j].d;
        int n = j - i, x = r->v[i].x, y = r->v[i].y;
        r->d[x][y] = stats_median(v, n);
        double sigma = n > 3 ? 1.4826 * stats_mad(v, n, r->d[x][y]) : 0; /* few values tell none */
        for (int k = i; k < j; k++)
            v[k - i] = r->v[k].noise;
        r->err[x][y] = 1.25 * fmax(sigma, stats_median(v, n)) / sqrt(n);
    }
    free(v);
}

/* What x has with y above what each has with its own kind. */
static double between(const struct region *r, int x, int y)
{
    double own_x = isnan(r->d[x][x]) ? 0 : r->d[x][x], own_y = isnan(r->d[y][y]) ? 0 : r->d[y][y];

    return r->d[x][y] - (own_x + own_y) / 2;
}

/* How far other rails are, in logarithms; 0: there are none. */
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

/* Numbers that share a rail; false where they do not fall into such groups. */
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

int layers_rail(const struct host_rails *r, const struct topo *t, int endpoint)
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
        int a = host_of(t, o[i].src), b = host_of(t, o[i].dst);
        if (o[i].op == op && o[i].bytes == bytes && o[i].sec > 0 && a != b &&
            layers_rail(&l->rails, t, o[i].src) != layers_rail(&l->rails, t, o[i].dst) &&
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

/* Are pairs across rails as far inside of this layer as they are beyond it?  Then the layer is
 * nothing but how far its leaves reach. */
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

/* A rail is told by 3 % of latency that are 4 standard errors. */
static void find_rails(struct layers *l, const struct topo *t, const struct obs *o, int count)
{
    struct host_rails *r = &l->rails;

    r->region = -1;
    for (int i = 0; i <= l->count && r->region < 0; i++)
        if (find_in(r, l, i, t, o, count))
            r->region = i;
    if (r->region >= 0 && r->region < l->count)
        l->layer[r->region].only_leaves = only_leaves(l, r->region, t, o, count);
}

/* --- all of it --- */

void layers_find(struct layers *l, const struct topo *t, const struct obs *o, int count,
                 const int *unit, bool rest)
{
    struct finder f = {.t = t, .o = o, .count = count, .rest = rest, .rails = leaves_of_rails(t)};
    int *self = mem_calloc((size_t)t->hosts + 1, sizeof(*self));

    memset(l, 0, sizeof(*l));
    f.bw_bytes = observe_size(o, count, OP_PAIR_BW);
    f.lat_bytes = observe_size(o, count, OP_PAIR_LATENCY);
    f.unit = unit ? unit : self;
    for (int h = 0; h < t->hosts; h++) {
        self[h] = h;
        if (f.unit[h] >= f.units)
            f.units = f.unit[h] + 1;
    }
    for (bool hosts = !unit; l->count < LAYERS_MAX && f.units >= UNITS_MIN; hosts = false) {
        if (!find(l, &f, hosts))
            break;
        f.unit = l->layer[l->count - 1].of;
        f.units = l->layer[l->count - 1].groups;
    }
    l->rails.region = -1;
    if (!unit)
        find_rails(l, t, o, count);
    if (l->rails.region >= 0) /* rails are why some hosts looked far */
        l->contradictions = 0;
    free(self);
}

void layers_free(struct layers *l)
{
    for (int i = 0; i < l->count; i++)
        free(l->layer[i].of);
    memset(l, 0, sizeof(*l));
}

enum level layers_level(const struct layers *l, int i)
{
    if (l->layer[i].only_leaves)
        return LEVEL_LEAF;
    if (l->count == 3 && i < 2)
        return l->layer[0].nvlink == (i == 0) ? LEVEL_RACK : LEVEL_LEAF;
    return i == 0 ? LEVEL_RACK : LEVEL_SPINE;
}
