/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/pricer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cost/collective.h"
#include "cost/ep.h"

/* The grid is made of the first bits of a double: exponent, and STEP_BITS of the fraction. */
enum {
    STEP_BITS = 6,
    REST_BITS = 52 - STEP_BITS,
    EXPONENT_BIAS = 1023,
    FIRST_OCTAVE = 3,
    LAST_OCTAVE = 46, /* 8 B .. 64 TiB; beyond them exactly */
    GRID = ((LAST_OCTAVE - FIRST_OCTAVE) << STEP_BITS) + 1,
    GRID_FROM = (EXPONENT_BIAS + FIRST_OCTAVE) << STEP_BITS,
    TABLES = OP_COUNT + EP_COMBINE, /* ops, and kernels in place of all_to_all */
    SLOTS_FIRST = 64,
};

struct table {
    enum ep_kernel kernel;
    struct quote *quote; /* of each kind of group */
    double sec[GRID];    /* 0: not asked yet */
};

struct entry {
    struct groups groups;
    struct table *table[TABLES];
};

struct pricer {
    struct places places;
    struct entry **slot; /* by span, open addressing; NULL: free */
    size_t slots;
    int entries;
};

static int check_order(const struct matrix *m, const int *order, int ranks, struct err *err)
{
    int endpoints = m->topo.endpoints;

    if (ranks > endpoints)
        return err_usage(err, "the layout needs %d ranks and the matrix has %d endpoints", ranks,
                         endpoints);
    for (int i = 0; order && i < ranks; i++)
        if (order[i] < 0 || order[i] >= endpoints)
            return err_usage(err, "rank %d is placed on endpoint %d, and the matrix has 0..%d", i,
                             order[i], endpoints - 1);
    return 0;
}

int pricer_open(struct pricer **out, const struct matrix *m, const int *order, int ranks,
                struct err *err)
{
    *out = NULL;
    if (check_order(m, order, ranks, err) < 0)
        return -1;
    struct pricer *p = mem_calloc(1, sizeof(*p));
    places_open(&p->places, m, order, ranks);
    p->slots = SLOTS_FIRST;
    p->slot = mem_calloc(p->slots, sizeof(struct entry *));
    *out = p;
    return 0;
}

static void entry_free(struct entry *e)
{
    for (int i = 0; i < TABLES; i++) {
        if (e->table[i])
            free(e->table[i]->quote);
        free(e->table[i]);
    }
    groups_free(&e->groups);
    free(e);
}

void pricer_close(struct pricer *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->slots; i++)
        if (p->slot[i])
            entry_free(p->slot[i]);
    free(p->slot);
    places_close(&p->places);
    free(p);
}

/* Where the span is, or the free slot where it belongs. */
static struct entry **find(struct entry **slot, size_t slots, struct span span)
{
    uint64_t key = ((uint64_t)(unsigned)span.size << 32 | (unsigned)span.stride);
    size_t at = (key * 0x9e3779b97f4a7c15u) >> 40 & (slots - 1);

    while (slot[at] &&
           (slot[at]->groups.span.size != span.size || slot[at]->groups.span.stride != span.stride))
        at = (at + 1) & (slots - 1);
    return &slot[at];
}

static void grow(struct pricer *p)
{
    size_t slots = 2 * p->slots;
    struct entry **slot = mem_calloc(slots, sizeof(struct entry *));

    for (size_t i = 0; i < p->slots; i++)
        if (p->slot[i])
            *find(slot, slots, p->slot[i]->groups.span) = p->slot[i];
    free(p->slot);
    p->slot = slot;
    p->slots = slots;
}

static struct entry *entry_of(struct pricer *p, struct span span)
{
    struct entry **slot = find(p->slot, p->slots, span);
    struct entry *e = *slot;

    if (e)
        return e;
    if (2 * (size_t)++p->entries > p->slots) {
        grow(p);
        slot = find(p->slot, p->slots, span);
    }
    *slot = e = mem_calloc(1, sizeof(*e));
    groups_find(&e->groups, &p->places, span);
    return e;
}

static struct table *table_of(const struct pricer *p, struct entry *e, enum op op,
                              enum ep_kernel kernel)
{
    const struct groups *g = &e->groups;
    struct table **at = &e->table[kernel == EP_NONE ? (int)op : OP_COUNT - 1 + (int)kernel];

    if (*at)
        return *at;
    struct table *t = *at = mem_calloc(1, sizeof(*t));
    t->kernel = kernel;
    t->quote = mem_calloc((size_t)g->kinds, sizeof(*t->quote));
    for (int k = 0; k < g->kinds; k++)
        quote_of(&t->quote[k], p->places.matrix, op,
                 op == OP_ALL_TO_ALL ? &g->kind[k].across : &g->kind[k].ring);
    return t;
}

/* As matrix_ep(): where no kernel is known, the all_to_all that it replaces. */
static double quoted(const struct quote *q, const struct matrix *m, enum ep_kernel kernel,
                     double bytes)
{
    if (kernel == EP_NONE)
        return quote_time(q, m, bytes);
    double inside = ep_inside(&q->ways.shape, bytes);
    double sec = ep_time(m, &q->ways, inside, bytes - inside, kernel == EP_DISPATCH);
    return isnan(sec) ? quote_time(q, m, bytes) : sec;
}

/* Seconds of the dearest kind, and which one it is. */
static double slowest(const struct pricer *p, const struct entry *e, const struct table *t,
                      double bytes, int *kind)
{
    double most = 0;

    *kind = 0;
    for (int k = 0; k < e->groups.kinds; k++) {
        double sec = quoted(&t->quote[k], p->places.matrix, t->kernel, bytes);
        if (sec <= most)
            continue;
        *kind = k;
        most = sec;
        if (isnan(sec))
            break;
    }
    return most;
}

static double fill(const struct pricer *p, const struct entry *e, struct table *t, uint64_t at)
{
    uint64_t bits = (at + GRID_FROM) << REST_BITS;
    double bytes;
    int kind;

    memcpy(&bytes, &bits, sizeof(bytes));
    return t->sec[at] = slowest(p, e, t, bytes, &kind);
}

double pricer_time(struct pricer *p, struct span span, enum op op, enum ep_kernel kernel,
                   double bytes)
{
    uint64_t bits;
    int kind;

    if (span.size < 2)
        return 0;
    struct entry *e = entry_of(p, span);
    struct table *t = table_of(p, e, op, kernel);
    memcpy(&bits, &bytes, sizeof(bits));
    uint64_t at = (bits >> REST_BITS) - GRID_FROM; /* beyond GRID below the first octave too */
    if (at >= GRID - 1)
        return slowest(p, e, t, bytes, &kind);
    double a = t->sec[at], b = t->sec[at + 1];
    if (a == 0)
        a = fill(p, e, t, at);
    if (b == 0)
        b = fill(p, e, t, at + 1);
    double share = (double)(int64_t)(bits & ((1ULL << REST_BITS) - 1)) * 0x1p-46;
    return b < INFINITY ? a + share * (b - a) : b;
}

void pricer_cost(struct pricer *p, struct span span, enum op op, enum ep_kernel kernel,
                 double bytes, struct cost *out, int *group)
{
    const struct matrix *m = p->places.matrix;
    int kind;

    *group = -1;
    if (span.size < 2) {
        *out = (struct cost){0, 0, 0, BASIS_ASSUMED, "one rank: nothing to move", -1};
        return;
    }
    struct entry *e = entry_of(p, span);
    int *ids = mem_calloc((size_t)span.size, sizeof(*ids));
    double sec = slowest(p, e, table_of(p, e, op, kernel), bytes, &kind);
    *group = e->groups.kind[kind].index;
    groups_ids(&e->groups, p->places.order, *group, ids);
    if (kernel == EP_NONE)
        matrix_collective_beside(m, op, ids, span.size, e->groups.total, bytes, out);
    else
        matrix_ep(m, ids, span.size, bytes, kernel == EP_DISPATCH, out);
    if (sec < INFINITY && sec != out->sec) { /* an all_to_all beside others, for a kernel */
        out->lo *= sec / out->sec;
        out->hi *= sec / out->sec;
        out->sec = sec;
    }
    free(ids);
}

const struct groups *pricer_groups(struct pricer *p, struct span span)
{
    return &entry_of(p, span)->groups;
}
