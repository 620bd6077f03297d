/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/pricer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "cost/collective.h"

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
};

struct table {
    enum ep_kernel kernel;
    struct routing route;           /* ranks 0: tokens spread evenly */
    struct collective_quote *quote; /* of each kind of group */
    double sec[GRID];               /* 0: not asked yet */
};

struct entry {
    struct groups groups;
    struct table *table[TABLES];
};

struct pricer {
    struct places places;
    struct entry **entry;
    int entries;
    struct map index; /* of entries, by span */
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
    for (int i = 0; i < p->entries; i++)
        entry_free(p->entry[i]);
    free(p->entry);
    map_free(&p->index);
    places_close(&p->places);
    free(p);
}

static struct entry *entry_of(struct pricer *p, struct span span)
{
    uint64_t key = (uint64_t)(unsigned)span.size << 32 | (unsigned)span.stride;
    int *at = map_at(&p->index, key, NULL, NULL);

    if (*at == MAP_NONE) {
        struct entry *e = mem_calloc(1, sizeof(*e));
        *at = p->entries;
        MEM_PUSH(p->entry, p->entries) = e;
        groups_find(&e->groups, &p->places, span);
    }
    return p->entry[*at];
}

static struct table *table_of(const struct pricer *p, struct entry *e, const struct message *msg)
{
    const struct groups *g = &e->groups;
    struct table **at =
        &e->table[msg->kernel == EP_NONE ? (int)msg->op : OP_COUNT - 1 + (int)msg->kernel];

    struct table *t = *at;
    if (t)
        return t;
    *at = t = mem_calloc(1, sizeof(*t));
    t->kernel = msg->kernel;
    t->route = msg->route;
    t->quote = mem_calloc((size_t)g->kinds, sizeof(*t->quote));
    for (int k = 0; k < g->kinds; k++)
        collective_resolve(
            &t->quote[k], p->places.matrix, msg->op,
            op_table[msg->op].links == OP_EXCHANGE ? &g->kind[k].across : &g->kind[k].ring, false);
    return t;
}

/* What a rank receives over the links of its own domain, and from other domains.  Routing that is
 * known crosses once a domain, and all of it goes on over the links inside (DeepSeek-V3 2024,
 * 3.2.2). */
static void parts_of(const struct message *msg, const struct shape *s, double *inside,
                     double *across)
{
    *inside = ep_inside(s, msg->bytes);
    *across = msg->bytes - *inside;
    if (msg->route.ranks && s->domains > 1) {
        *inside = msg->bytes;
        *across = message_crossing_bytes(msg, s->per_domain);
    }
}

/* As matrix_ep(): where no kernel is known, the all_to_all that it replaces. */
static double quoted(const struct collective_quote *q, const struct matrix *m,
                     const struct message *msg)
{
    double inside, across;

    if (msg->kernel == EP_NONE)
        return collective_time(q, m, msg->bytes);
    parts_of(msg, &q->ways.shape, &inside, &across);
    double sec = ep_time(m, &q->ways, inside, across, msg->kernel == EP_DISPATCH);
    return isnan(sec) ? collective_time(q, m, msg->bytes) : sec;
}

double pricer_ways(const struct matrix *m, const struct message *msg, const struct ways *ways)
{
    struct collective_quote q;

    collective_resolve(&q, m, msg->op, ways, false);
    return quoted(&q, m, msg);
}

/* Seconds of the dearest kind, and which one it is. */
static double slowest(const struct pricer *p, const struct entry *e, const struct table *t,
                      const struct message *msg, int *kind)
{
    double most = 0;

    *kind = 0;
    for (int k = 0; k < e->groups.kinds; k++) {
        double sec = quoted(&t->quote[k], p->places.matrix, msg);
        if (sec <= most)
            continue;
        *kind = k;
        most = sec;
        if (isnan(sec))
            break;
    }
    return most;
}

static double fill(const struct pricer *p, const struct entry *e, struct table *t,
                   const struct message *msg, uint64_t at)
{
    uint64_t bits = (at + GRID_FROM) << REST_BITS;
    struct message one = *msg;
    int kind;

    memcpy(&one.bytes, &bits, sizeof(one.bytes));
    return t->sec[at] = slowest(p, e, t, &one, &kind);
}

static bool same_route(const struct routing *a, const struct routing *b)
{
    return a->ranks == b->ranks && a->experts == b->experts && a->topk == b->topk &&
           a->groups == b->groups && a->groups_max == b->groups_max &&
           a->domains_max == b->domains_max;
}

double pricer_message(struct pricer *p, const struct message *msg)
{
    uint64_t bits;
    int kind;

    if (msg->span.size < 2)
        return 0;
    struct entry *e = entry_of(p, msg->span);
    struct table *t = table_of(p, e, msg);
    memcpy(&bits, &msg->bytes, sizeof(bits));
    uint64_t at = (bits >> REST_BITS) - GRID_FROM; /* beyond GRID below the first octave too */
    /* a table is of one routing, as a model mostly has: another one is priced exactly */
    if (at >= GRID - 1 || (t->kernel != EP_NONE && !same_route(&t->route, &msg->route)))
        return slowest(p, e, t, msg, &kind);
    double a = t->sec[at], b = t->sec[at + 1];
    if (a == 0)
        a = fill(p, e, t, msg, at);
    if (b == 0)
        b = fill(p, e, t, msg, at + 1);
    double share = (double)(int64_t)(bits & ((1ULL << REST_BITS) - 1)) * 0x1p-46;
    return b < INFINITY ? a + share * (b - a) : b;
}

double pricer_message_mean(struct pricer *p, const struct message *msg, double *mean)
{
    double most = 0;

    *mean = 0;
    if (msg->span.size < 2)
        return 0;
    struct entry *e = entry_of(p, msg->span);
    struct table *t = table_of(p, e, msg);
    for (int k = 0; k < e->groups.kinds; k++) {
        double sec = quoted(&t->quote[k], p->places.matrix, msg);
        *mean += sec * e->groups.kind[k].like / e->groups.total;
        most = isnan(sec) || sec > most ? sec : most;
        if (isnan(sec))
            break;
    }
    return most;
}

static void cost_kernel(const struct pricer *p, const struct message *msg, const int *ids,
                        struct cost *out)
{
    const struct matrix *m = p->places.matrix;
    bool dispatch = msg->kernel == EP_DISPATCH;
    double inside, across;
    struct shape s;

    shape_of(&s, &m->topo, ids, msg->span.size);
    if (!msg->route.ranks || s.domains == 1) {
        matrix_ep(m, ids, msg->span.size, msg->bytes, dispatch, out);
        return;
    }
    parts_of(msg, &s, &inside, &across);
    matrix_ep_routed(m, ids, msg->span.size, msg->bytes, inside, across, dispatch, out);
}

void pricer_message_cost(struct pricer *p, const struct message *msg, struct cost *out, int *group)
{
    const struct matrix *m = p->places.matrix;
    int kind, n = msg->span.size;

    *group = -1;
    if (n < 2) {
        *out = (struct cost){0, 0, 0, BASIS_ASSUMED, "one rank: nothing to move", -1, 0};
        return;
    }
    struct entry *e = entry_of(p, msg->span);
    int *ids = mem_calloc((size_t)n, sizeof(*ids));
    double sec = slowest(p, e, table_of(p, e, msg), msg, &kind);
    *group = e->groups.kind[kind].index;
    groups_ids(&e->groups, p->places.order, *group, ids);
    if (msg->kernel == EP_NONE)
        matrix_collective_beside(m, msg->op, ids, n, e->groups.total, msg->bytes, out);
    else
        cost_kernel(p, msg, ids, out);
    if (sec < INFINITY && sec != out->sec) { /* an all_to_all beside others, for a kernel */
        out->lo *= sec / out->sec;
        out->hi *= sec / out->sec;
        out->sec = sec;
    }
    free(ids);
}

double pricer_time(struct pricer *p, struct span span, enum op op, enum ep_kernel kernel,
                   double bytes)
{
    return pricer_message(
        p, &(struct message){.span = span, .op = op, .kernel = kernel, .bytes = bytes});
}

void pricer_cost(struct pricer *p, struct span span, enum op op, enum ep_kernel kernel,
                 double bytes, struct cost *out, int *group)
{
    pricer_message_cost(
        p, &(struct message){.span = span, .op = op, .kernel = kernel, .bytes = bytes}, out, group);
}

const struct groups *pricer_groups(struct pricer *p, struct span span)
{
    return &entry_of(p, span)->groups;
}
