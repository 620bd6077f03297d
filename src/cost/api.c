/* SPDX-License-Identifier: BSD-3-Clause */
/* librailgauge: a matrix compiled for queries.  Curves become grids of 16 cells an octave, indexed
 * by the exponent and upper mantissa bits of the size; exceptions become lists per endpoint and per
 * rack, empty for almost all. */
#include "railgauge.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "cost/matrix.h"

enum {
    OCTAVES = 50, /* 1 B .. 2^50 B; beyond, the last cell's line goes on */
    CELLS = OCTAVES * 16,
    MANTISSA_SHIFT = 52 - 4,
};

struct cell {
    double sec, slope; /* at the cell's lower end; s/B inside */
};

/* All that a query needs of an endpoint, in one cache line. */
struct spot {
    struct place place;
    int odd; /* an exception may concern it */
};

struct railgauge {
    struct matrix m;
    struct spot *spot;
    struct cell *grid;                 /* [tier][CELLS] of healthy pairs */
    struct lists by_endpoint, by_rack; /* exceptions that concern it */
    struct lists by_host;              /* its endpoints by index */
};

static double cell_bytes(int i)
{
    return ldexp(1 + (i % 16) / 16.0, i / 16);
}

static void compile_tier(struct cell *grid, const struct tier *t)
{
    for (int i = 0; i < CELLS; i++) {
        double a = matrix_tier_time(t, cell_bytes(i), 1),
               b = matrix_tier_time(t, cell_bytes(i + 1), 1);
        grid[i].sec = a;
        grid[i].slope = (b - a) / (cell_bytes(i + 1) - cell_bytes(i));
    }
}

static double look_up(const struct cell *grid, double bytes)
{
    union {
        double d;
        uint64_t u;
    } x = {bytes};
    int64_t i = (int64_t)(x.u >> MANTISSA_SHIFT) - (1023 << 4);

    i = i < CELLS ? i : CELLS - 1;
    x.u = (uint64_t)(i + (1023 << 4)) << MANTISSA_SHIFT; /* the cell's lower end */
    return grid[i].sec + (bytes - x.d) * grid[i].slope;
}

/* --- exceptions by what they concern --- */

/* The endpoints or racks that an exception hangs on; count of keys written. */
static int keys_of(const struct railgauge *r, const struct exception *e, int *key)
{
    int n = 0;

    if (e->part == PART_LEAF || e->part == PART_RACK) {
        for (int k = 0; k < r->m.topo.endpoints; k++)
            if (matrix_touches(&r->m, e, k))
                key[n++] = k;
        return n;
    }
    if (e->part == PART_HOST) {
        for (int k = r->by_host.start[e->a]; k < r->by_host.start[e->a + 1]; k++)
            key[n++] = r->by_host.at[k];
        return n;
    }
    key[n++] = e->a;
    if (e->part == PART_PAIR || e->part == PART_RACK_PAIR)
        key[n++] = e->b;
    return n;
}

static void compile_lists(struct railgauge *r, struct lists *l, int items, bool racks)
{
    const struct matrix *m = &r->m;
    int *one = mem_calloc((size_t)m->topo.endpoints + 2, sizeof(*one));
    int *key = NULL, *which = NULL, keys = 0, n = 0;

    for (int i = 0; i < m->exceptions; i++) {
        enum part part = m->exception[i].part;
        if ((part == PART_RACK_PAIR || part == PART_RACK_UPLINKS) != racks)
            continue;
        for (int k = keys_of(r, &m->exception[i], one); k-- > 0;) {
            MEM_PUSH(key, keys) = one[k];
            MEM_PUSH(which, n) = i;
        }
    }
    lists_make(l, key, which, n, items);
    free(one);
    free(key);
    free(which);
}

static bool concerned(const struct lists *l, int item)
{
    return item >= 0 && l->start[item + 1] > l->start[item];
}

static void mark_odd(struct railgauge *r)
{
    for (int i = 0; i < r->m.topo.endpoints; i++)
        r->spot[i].odd = concerned(&r->by_endpoint, i) ||
                         concerned(&r->by_rack, r->spot[i].place.at[LEVEL_RACK]);
}

static void compile_hosts(struct railgauge *r)
{
    const struct topo *t = &r->m.topo;
    int *host = mem_calloc((size_t)t->endpoints + 1, sizeof(*host));

    for (int i = 0; i < t->endpoints; i++) /* ids ascend, so does the index on the host */
        host[i] = topo_at(t, i, LEVEL_HOST);
    lists_make(&r->by_host, host, NULL, t->endpoints, t->hosts);
    free(host);
}

static void compile(struct railgauge *r)
{
    const struct topo *t = &r->m.topo;

    r->spot = mem_calloc((size_t)t->endpoints, sizeof(*r->spot));
    r->grid = mem_calloc((size_t)r->m.tiers * CELLS, sizeof(*r->grid));
    for (int i = 0; i < t->endpoints; i++)
        r->spot[i].place = t->endpoint[i].place;
    for (int i = 0; i < r->m.tiers; i++)
        compile_tier(r->grid + (size_t)i * CELLS, &r->m.tier[i]);
    compile_hosts(r);
    compile_lists(r, &r->by_endpoint, t->endpoints, false);
    compile_lists(r, &r->by_rack, t->group[LEVEL_RACK].count, true);
    mark_odd(r);
}

const struct matrix *api_matrix(const struct railgauge *r)
{
    return &r->m;
}

struct opening {
    struct railgauge *r;
    const char *path;
    struct err *err;
};

static int open_matrix(void *opening)
{
    struct opening *o = opening;
    struct railgauge *r = mem_calloc(1, sizeof(*r));

    if (matrix_load(&r->m, o->path, o->err) < 0) {
        free(r);
        return -1;
    }
    compile(r);
    o->r = r;
    return 0;
}

int railgauge_open(struct railgauge **out, const char *path, char text[256])
{
    struct err err = {0, ""};
    struct opening o = {NULL, path, &err};
    int rc = mem_guarded(open_matrix, &o, &err);

    if (rc < 0 && text)
        snprintf(text, 256, "%.255s", err.text);
    *out = o.r;
    return rc;
}

void railgauge_close(struct railgauge *r)
{
    if (!r)
        return;
    matrix_free(&r->m);
    free(r->spot);
    free(r->grid);
    lists_free(&r->by_endpoint);
    lists_free(&r->by_rack);
    lists_free(&r->by_host);
    free(r);
}

int railgauge_count(const struct railgauge *r)
{
    return r->m.topo.endpoints;
}

int railgauge_find(const struct railgauge *r, const char *host, int gpu)
{
    int h = topo_find_host(&r->m.topo, host);
    const int *start = r->by_host.start;

    return h < 0 || gpu < 0 || gpu >= start[h + 1] - start[h] ? -1 : r->by_host.at[start[h] + gpu];
}

int railgauge_host_count(const struct railgauge *r)
{
    return r->m.topo.hosts;
}

const char *railgauge_host_name(const struct railgauge *r, int host)
{
    return host >= 0 && host < r->m.topo.hosts ? r->m.topo.host[host].name : NULL;
}

int railgauge_host_find(const struct railgauge *r, const char *name)
{
    return name ? topo_find_host(&r->m.topo, name) : -1;
}

const char *railgauge_level(const struct railgauge *r, int id, const char *level)
{
    const struct topo *t = &r->m.topo;
    int l = level ? level_find(level) : -1;

    if (l < 0 || id < 0 || id >= t->endpoints)
        return NULL;
    int at = topo_at(t, id, l);
    if (at < 0)
        return NULL;
    return l == LEVEL_HOST ? t->host[at].name : t->group[l].name[at];
}

static void slow_down(const struct railgauge *r, const struct lists *l, int item, int src, int dst,
                      int tier, double *factor, double *add)
{
    if (item < 0)
        return;
    for (int k = l->start[item]; k < l->start[item + 1]; k++) {
        const struct exception *e = &r->m.exception[l->at[k]];
        if (matrix_crosses(&r->m, e, src, dst, tier)) {
            *factor = fmin(*factor, e->factor);
            *add = fmax(*add, e->alpha_add);
        }
    }
}

/* topo_tier() in line, without branches inside a rule: levels of two endpoints are compared at
 * once. */
static inline int tier_of(const struct railgauge *r, const struct place *a, const struct place *b)
{
    unsigned shared = 0;

    for (int l = 0; l < LEVEL_COUNT; l++)
        shared |= (unsigned)((a->at[l] == b->at[l]) & (a->at[l] >= 0)) << l;
    for (int i = 0; i < r->m.topo.tiers; i++)
        if (!(r->m.topo.tier[i].same & ~shared))
            return i;
    return r->m.topo.tiers - 1;
}

double railgauge_pair(const struct railgauge *r, int src, int dst, size_t bytes)
{
    double factor = 1, add = 0, size = bytes ? (double)bytes : 1;
    unsigned count = (unsigned)r->m.topo.endpoints;

    if ((unsigned)src >= count || (unsigned)dst >= count)
        return NAN;
    if (src == dst)
        return 0;
    const struct spot *a = &r->spot[src], *b = &r->spot[dst];
    int tier = tier_of(r, &a->place, &b->place);
    if (!(a->odd | b->odd))
        return look_up(r->grid + (size_t)tier * CELLS, size);
    slow_down(r, &r->by_endpoint, src, src, dst, tier, &factor, &add);
    slow_down(r, &r->by_endpoint, dst, src, dst, tier, &factor, &add);
    slow_down(r, &r->by_rack, a->place.at[LEVEL_RACK], src, dst, tier, &factor, &add);
    slow_down(r, &r->by_rack, b->place.at[LEVEL_RACK], src, dst, tier, &factor, &add);
    if (factor >= 1)
        return look_up(r->grid + (size_t)tier * CELLS, size) + add;
    return matrix_tier_time(&r->m.tier[tier], size, factor) + add;
}

double railgauge_collective(const struct railgauge *r, const char *op, const int *ids, int n,
                            size_t bytes)
{
    struct cost cost;
    int which = op_find(op);

    if (which < 0 || n < 2)
        return NAN;
    matrix_collective(&r->m, (enum op)which, ids, n, (double)bytes, &cost);
    return cost.sec;
}
