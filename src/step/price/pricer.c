/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/pricer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "step/price/pricer_impl.h"

/* The grid uses the leading bits of a double: exponent, and STEP_BITS of the fraction. */
enum {
    STEP_BITS = 6,
    REST_BITS = 52 - STEP_BITS,
    EXPONENT_BIAS = 1023,
    FIRST_OCTAVE = 3,
    LAST_OCTAVE = 46, /* 8 B .. 64 TiB; other sizes are priced exactly */
    CELLS = (LAST_OCTAVE - FIRST_OCTAVE) << STEP_BITS,
    GRID_FROM = (EXPONENT_BIAS + FIRST_OCTAVE) << STEP_BITS,
    CURVES = OP_COUNT + EP_COMBINE, /* ops, and kernels in place of all_to_all */
    /* per span, over all orders; beyond this, lookups mostly fail */
    KINDS_KEPT = 4096,
};

/* Cell from one size of the grid to the next. */
struct price_cell {
    double sec, rise; /* s at its begin, 0: not set; increase to its end */
};

struct price_curve {
    const struct groups *groups;
    struct collective_quote *quote; /* per kind of group */
    int quotes;
    int turn;             /* folded.turn that the cells are for */
    struct routing route; /* ranks 0: tokens spread evenly */
    enum ep_kernel kernel;
    struct price_cell cell[CELLS];
};

struct entry {
    struct folded folded;
    struct price_curve *curve[CURVES];
};

struct pricer {
    struct places places;
    struct known_shapes known; /* shapes of other orders and spans */
    struct entry **entry;
    int entries;
    struct map index;   /* index of entries by span */
    struct entry *last; /* entry of the latest lookup */
    long looks;         /* number of ranks examined for folding */
    bool fewer_keys;
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

static void forget_kinds(struct entry *e)
{
    folded_forget(&e->folded);
    for (int i = 0; i < CURVES; i++)
        if (e->curve[i])
            e->curve[i]->quotes = 0;
}

/* A pass over all endpoints pays off once as many ranks were examined. */
static void drop_keys(struct pricer *p)
{
    if (p->fewer_keys || p->looks < p->places.matrix->topo.endpoints)
        return;
    p->fewer_keys = true;
    places_keys(&p->places);
    for (int i = 0; i < p->entries; i++)
        map_free(&p->entry[i]->folded.seen);
}

int pricer_reorder(struct pricer *p, const int *order, struct err *err)
{
    struct places *at = &p->places;

    if (check_order(at->matrix, order, at->ranks, err) < 0)
        return -1;
    drop_keys(p);
    for (int i = 0; i < p->entries; i++)
        if (p->entry[i]->folded.groups.kinds > KINDS_KEPT)
            forget_kinds(p->entry[i]);
    int moved = 0, *rank = at->ids;
    for (int r = 0; r < at->ranks; r++)
        if (at->order[r] != order[r])
            rank[moved++] = r;
    for (int i = 0; i < p->entries; i++)
        folded_move(&p->entry[i]->folded, at, order, rank, moved);
    for (int i = 0; i < moved; i++)
        places_move(at, rank[i], order[rank[i]]);
    p->looks += moved;
    return 0;
}

void pricer_base(struct pricer *p)
{
    places_base(&p->places);
    for (int i = 0; i < p->entries; i++)
        folded_base(&p->entry[i]->folded);
}

static void entry_free(struct entry *e)
{
    if (!e)
        return;
    for (int i = 0; i < CURVES; i++) {
        if (e->curve[i])
            free(e->curve[i]->quote);
        free(e->curve[i]);
    }
    folded_free(&e->folded);
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
    known_free(&p->known);
    free(p);
}

static void entry_new(struct pricer *p, struct span span)
{
    p->looks += p->places.ranks;
    drop_keys(p);
    struct entry **at = &MEM_PUSH(p->entry, p->entries);

    *at = NULL; /* valid if memory runs out in the next line */
    *at = mem_calloc(1, sizeof(**at));
    folded_open(&(*at)->folded, span, &p->places);
}

static struct entry *entry_of(struct pricer *p, struct span span)
{
    struct entry *e = p->last;

    if (!e || !span_equal(e->folded.groups.span, span)) {
        uint64_t key = (uint64_t)(unsigned)span.size << 32 | (unsigned)span.stride;
        int *at = map_at(&p->index, key, NULL, NULL);
        if (*at == MAP_NONE) {
            entry_new(p, span);
            *at = p->entries - 1;
        }
        p->last = e = p->entry[*at];
    }
    folded_find(&e->folded, &p->places);
    return e;
}

static struct price_curve *curve_of(struct pricer *p, struct entry *e, const struct message *msg)
{
    const struct groups *g = &e->folded.groups;
    struct price_curve **at =
        &e->curve[msg->kernel == EP_NONE ? (int)msg->op : OP_COUNT - 1 + (int)msg->kernel];

    struct price_curve *t = *at;
    if (!t) {
        *at = t = mem_calloc(1, sizeof(*t)); /* unused cells stay untouched memory */
        t->groups = g;
        t->kernel = msg->kernel;
        t->route = msg->route;
        t->turn = e->folded.turn;
    }
    while (t->quotes < g->kinds) {
        const struct group_kind *kind = &g->kind[t->quotes];
        const struct ways *ways = op_table[msg->op].links == OP_EXCHANGE ? &kind->across
                                  : op_table[msg->op].links == OP_NEXT   ? &kind->next
                                                                         : &kind->ring;
        collective_resolve(&MEM_PUSH(t->quote, t->quotes), p->places.matrix, msg->op, ways, false,
                           &p->known);
    }
    return t;
}

/* Bytes that a rank receives over the links of its own domain, and from other domains.  With known
 * routing a token enters a domain once and continues over the links inside (DeepSeek-V3 2024,
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

/* Same as matrix_ep(): without a known kernel, the all_to_all that it replaces. */
static double quoted(const struct collective_quote *q, const struct matrix *m,
                     const struct message *msg)
{
    double inside, across;

    if (msg->kernel == EP_NONE)
        return collective_time(q, msg->bytes);
    parts_of(msg, &q->ways.shape, &inside, &across);
    double sec = ep_time(m, &q->ways, inside, across, msg->kernel == EP_DISPATCH);
    return isnan(sec) ? collective_time(q, msg->bytes) : sec;
}

double pricer_ways(const struct matrix *m, const struct message *msg, const struct ways *ways)
{
    struct collective_quote q;

    collective_resolve(&q, m, msg->op, ways, false, NULL);
    return quoted(&q, m, msg);
}

/* Returns the seconds of the slowest kind; *kind: its index. */
static double slowest(const struct pricer *p, const struct price_curve *t,
                      const struct message *msg, int *kind)
{
    double most = 0;

    *kind = 0;
    for (int k = 0; k < t->groups->kinds; k++) {
        double sec = t->groups->kind[k].like ? quoted(&t->quote[k], p->places.matrix, msg) : 0;
        if (sec <= most)
            continue;
        *kind = k;
        most = sec;
        if (isnan(sec))
            break;
    }
    return most;
}

/* Returns the seconds at a size of the grid. */
static double grid_time(const struct pricer *p, const struct price_curve *t,
                        const struct message *msg, uint64_t at)
{
    uint64_t bits = (at + GRID_FROM) << REST_BITS;
    struct message one = *msg;
    int kind;

    memcpy(&one.bytes, &bits, sizeof(one.bytes));
    return slowest(p, t, &one, &kind);
}

/* A cell without a time at its end has none at its begin. */
static void fill(const struct pricer *p, struct price_curve *t, const struct message *msg,
                 uint64_t at)
{
    double a = grid_time(p, t, msg, at), b = grid_time(p, t, msg, at + 1);

    t->cell[at] = b < INFINITY ? (struct price_cell){a, b - a} : (struct price_cell){b, 0};
}

static bool same_route(const struct routing *a, const struct routing *b)
{
    return a->ranks == b->ranks && a->experts == b->experts && a->topk == b->topk &&
           a->groups == b->groups && a->groups_max == b->groups_max &&
           a->domains_max == b->domains_max;
}

struct price_curve *pricer_curve(struct pricer *p, const struct message *msg)
{
    if (msg->span.size < 2)
        return NULL;
    struct entry *e = entry_of(p, msg->span);
    struct price_curve *t = curve_of(p, e, msg);
    if (t->turn != e->folded.turn)
        memset(t->cell, 0, sizeof(t->cell));
    t->turn = e->folded.turn;
    return t;
}

/* Returns the cell of a size, or a number beyond all cells; *share: position of the size in the
 * cell. */
static inline uint64_t cell_of(double bytes, double *share)
{
    uint64_t bits;

    memcpy(&bits, &bytes, sizeof(bits));
    *share = (double)(int64_t)(bits & ((1ULL << REST_BITS) - 1)) * 0x1p-46;
    return (bits >> REST_BITS) - GRID_FROM;
}

/* A curve is for one routing, because a model mostly has one.  Other routings are priced
 * exactly. */
static double curve_at(const struct pricer *p, struct price_curve *t, const struct message *msg)
{
    double share;
    int kind;

    if (!t)
        return 0; /* groups of one rank */
    uint64_t at = cell_of(msg->bytes, &share);
    if (at >= CELLS || (t->kernel != EP_NONE && !same_route(&t->route, &msg->route)))
        return slowest(p, t, msg, &kind);
    if (t->cell[at].sec == 0)
        fill(p, t, msg, at);
    return t->cell[at].sec + share * t->cell[at].rise;
}

double pricer_curves_at(const struct pricer *p, struct price_curve *const *curve,
                        const struct message *msg, uint64_t set, double *sec)
{
    double sum = 0, share;

    for (; set; set &= set - 1) {
        unsigned i = (unsigned)__builtin_ctzll(set);
        const struct price_curve *t = curve[i];
        uint64_t at = cell_of(msg[i].bytes, &share);
        if (t && at < CELLS && t->kernel == EP_NONE && t->cell[at].sec != 0)
            sec[i] = t->cell[at].sec + share * t->cell[at].rise; /* the usual case */
        else
            sec[i] = curve_at(p, curve[i], &msg[i]);
        sum += sec[i];
    }
    return sum;
}

double pricer_message(struct pricer *p, const struct message *msg)
{
    return curve_at(p, pricer_curve(p, msg), msg);
}

double pricer_message_mean(struct pricer *p, const struct message *msg, double *mean)
{
    double most = 0;

    *mean = 0;
    if (msg->span.size < 2)
        return 0;
    struct entry *e = entry_of(p, msg->span);
    struct price_curve *t = curve_of(p, e, msg);
    for (int k = 0; k < t->groups->kinds; k++) {
        const struct group_kind *kind = &t->groups->kind[k];
        if (!kind->like)
            continue;
        double sec = quoted(&t->quote[k], p->places.matrix, msg);
        *mean += sec * kind->like / t->groups->total;
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
        matrix_ep(m, ids, msg->span.size, msg->bytes, NAN, NAN, dispatch, out);
        return;
    }
    parts_of(msg, &s, &inside, &across);
    matrix_ep(m, ids, msg->span.size, msg->bytes, inside, across, dispatch, out);
}

void pricer_message_cost(struct pricer *p, const struct message *msg, struct cost *out, int *group)
{
    const struct matrix *m = p->places.matrix;
    int kind, n = msg->span.size;

    *group = -1;
    if (n < 2) {
        *out = (struct cost){
            .basis = BASIS_ASSUMED, .source = "one rank: nothing to move", .exception = -1};
        return;
    }
    struct entry *e = entry_of(p, msg->span);
    int *ids = mem_calloc((size_t)n, sizeof(*ids));
    double sec = slowest(p, curve_of(p, e, msg), msg, &kind);
    *group = e->folded.groups.kind[kind].index;
    groups_ids(&e->folded.groups, p->places.order, *group, ids);
    if (msg->kernel == EP_NONE)
        matrix_collective_at(m, msg->op, ids, n, e->folded.groups.total, msg->bytes, false, out);
    else
        cost_kernel(p, msg, ids, out);
    /* all_to_all with concurrent groups, in place of a kernel */
    if (sec < INFINITY && sec != out->sec) {
        out->lo *= sec / out->sec;
        out->hi *= sec / out->sec;
        out->sec = sec;
    }
    free(ids);
}

const struct groups *pricer_groups(struct pricer *p, struct span span)
{
    return &entry_of(p, span)->folded.groups;
}
