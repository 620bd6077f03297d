/* SPDX-License-Identifier: BSD-3-Clause */
#include "fit/fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/stats.h"
#include "topo/groups.h"
#include "topo/nic.h"

enum { UNITS_MIN = 3 };

/* The fastest port that is sold, 800 Gb/s; for hosts whose NICs are not visible. */
static const double fastest_nic = 100e9;
static const double beyond_nic = 1.5; /* times the rate of a NIC: above any way of counting */
static const double nvlink_jump = 2;  /* smallest ratio near / far */

struct finder {
    const struct topo *t;
    const struct obs *o;
    int count;
    bool rest, rails; /* rails: endpoints of one host are on several leaves */
    double bw_bytes, lat_bytes;
    const int *unit; /* unit of each host */
    int units;
    int *of;    /* unit of each endpoint, in one array because access is random */
    int *local; /* number of each endpoint on its host */
};

static bool same_number(const struct finder *f, const struct obs *o)
{
    return f->local[o->src] == f->local[o->dst];
}

/* Move pairs with the same number on their hosts to the front of v.  Returns how many count (all, if none has the
 * same number). */
static int prefer_rails(const struct obs **v, int n, const struct finder *f)
{
    int same = 0;

    for (int i = 0; i < n; i++)
        if (same_number(f, v[i])) {
            const struct obs *swap = v[same];
            v[same++] = v[i];
            v[i] = swap;
        }
    return same ? same : n;
}

/* Observations between two units: grouped by the lower unit, sorted by the higher unit.  Linear time, because there
 * are millions. */
struct meets {
    int *low, *high;      /* unit of each observation; -1: not used */
    struct lists by;      /* observations of each lower unit */
    const struct obs **v; /* scratch for one unit: observations */
    double *sec, *noise;  /* latencies and their noise */
};

/* Best bandwidth measured between two units, and median latency.  If each rail has its own leaves, latencies across
 * rails are ignored: they do not show that the hosts are far apart. */
static struct edge fold(int a, int b, const struct obs **v, int n, const struct finder *f,
                        const struct meets *m)
{
    struct edge e = {a, b, NAN, NAN, NAN, 0};
    double alone = 0, parallel = 0;
    int latencies = 0;

    n = prefer_rails(v, n, f);
    bool across = f->rails && !same_number(f, v[0]);
    for (int i = 0; i < n; i++) {
        const struct obs *o = v[i];
        if (!(o->sec > 0))
            continue;
        if (o->op == OP_PAIR_BW && o->bytes == f->bw_bytes) {
            double *best = o->alone ? &alone : &parallel;
            *best = fmax(*best, o->bytes / o->sec);
        } else if (obs_is_latency(o, f->lat_bytes) && !across) {
            m->noise[latencies] = observe_noise(o);
            m->sec[latencies++] = o->sec;
        }
    }
    if (latencies) {
        e.sec = stats_median(m->sec, latencies);
        e.noise = stats_median(m->noise, latencies) / sqrt(latencies);
    }
    if (alone > 0 || parallel > 0)
        e.Bps = alone > 0 ? alone : parallel;
    if (alone > 0 && parallel > 0)
        e.shared = parallel / alone;
    return e;
}

static bool counts(const struct finder *f, const struct obs *o, int *a, int *b)
{
    *a = f->of[o->src];
    *b = f->of[o->dst];
    return !o->by_nic && *a != *b && *a >= 0 && *b >= 0 &&
           (!f->rest || topo_tier(f->t, o->src, o->dst) == f->t->tiers - 1);
}

static void meets_open(struct meets *m, const struct finder *f)
{
    int n = 0, a, b;
    struct lists by_high;

    for (int i = 0; i < f->t->endpoints; i++) {
        f->of[i] = f->unit[topo_at(f->t, i, LEVEL_HOST)];
        f->local[i] = f->t->endpoint[i].local;
    }
    m->low = mem_calloc((size_t)f->count + 1, sizeof(int));
    m->high = mem_calloc((size_t)f->count + 1, sizeof(int));
    for (int i = 0; i < f->count; i++) {
        const struct obs *o = &f->o[i];
        bool is = counts(f, o, &a, &b);
        m->low[i] = is ? (a < b ? a : b) : -1;
        m->high[i] = is ? (a < b ? b : a) : -1;
        n += is;
    }
    lists_make(&by_high, m->high, NULL, f->count, f->units);
    int *low = mem_calloc((size_t)n + 1, sizeof(*low));
    for (int i = 0; i < n; i++)
        low[i] = m->low[by_high.at[i]];
    lists_make(&m->by, low, by_high.at, n, f->units);
    free(low);
    lists_free(&by_high);
    for (int i = n = 0; i < f->units; i++)
        n = m->by.start[i + 1] - m->by.start[i] > n ? m->by.start[i + 1] - m->by.start[i] : n;
    m->v = mem_calloc((size_t)n + 1, sizeof(*m->v));
    m->sec = mem_calloc((size_t)n + 1, sizeof(*m->sec));
    m->noise = mem_calloc((size_t)n + 1, sizeof(*m->noise));
}

static void meets_close(struct meets *m)
{
    free(m->low);
    free(m->high);
    lists_free(&m->by);
    free(m->v);
    free(m->sec);
    free(m->noise);
}

/* Add the edges of one lower unit. */
static void add_edges(struct edge **out, int *count, const struct finder *f, const struct meets *m,
                      int low)
{
    const int *at = m->by.at + m->by.start[low];
    int n = m->by.start[low + 1] - m->by.start[low];

    for (int i = 0; i < n; i++)
        m->v[i] = &f->o[at[i]];
    for (int i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && m->high[at[j]] == m->high[at[i]]; j++)
            ;
        struct edge e = fold(low, m->high[at[i]], m->v + i, j - i, f, m);
        MEM_PUSH(*out, *count) = e;
    }
}

static int make_edges(struct edge **out, const struct finder *f)
{
    struct meets m;
    int count = 0;

    *out = NULL;
    meets_open(&m, f);
    for (int low = 0; low < f->units; low++)
        add_edges(out, &count, f, &m, low);
    meets_close(&m);
    return count;
}

/* True if near pairs are faster than any NIC here, and clearly faster than far pairs. */
static bool is_nvlink(const struct topo *t, const struct clusters *c)
{
    double nic = 0;

    for (int i = 0; i < t->nics; i++)
        nic = fmax(nic, t->nic[i].rate_Bps);
    return t->endpoints && t->endpoint[0].kind == ENDPOINT_GPU && c->clue == CLUE_BANDWIDTH &&
           c->near > beyond_nic * (nic > 0 ? nic : fastest_nic) && c->near > nvlink_jump * c->far;
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

/* Find one layer above f->unit; false: there is none. */
static bool find(struct layers *l, struct finder *f, bool hosts)
{
    struct clusters c;
    struct edge *edge;
    int edges = make_edges(&edge, f);

    cluster_units(&c, f->units, edge, edges);
    bool found = c.groups > 1 && (hosts || groups_shared(c.of, f->units, c.groups) > 1);
    if (found)
        keep(l, f, &c);
    else if (hosts)
        l->contradictions = c.contradictions;
    cluster_free(&c);
    free(edge);
    return found;
}

/* True if a host has endpoints on several leaves. */
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

/* --- all of it --- */

void layers_find(struct layers *l, const struct topo *t, const struct obs *o, int count,
                 const int *unit, bool rest)
{
    struct finder f = {.t = t, .o = o, .count = count, .rest = rest, .rails = leaves_of_rails(t)};
    f.of = mem_calloc(2 * (size_t)t->endpoints + 1, sizeof(*f.of));
    f.local = f.of + t->endpoints;
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
        host_rails_find(l, t, o, count);
    if (l->rails.region >= 0) /* rails explain why some hosts looked far */
        l->contradictions = 0;
    free(self);
    free(f.of);
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
