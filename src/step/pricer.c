/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/pricer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "cost/collective.h"

/* What two ranks may share: the levels, and the NIC. */
enum { KEY_NIC = LEVEL_COUNT, KEYS };

struct rank_place {
    int key[KEYS]; /* index into places.slot, -1: not visible */
    uint64_t mark; /* made of the exceptions that touch the endpoint, 0: none */
};

/* The label of a key in the group that was stamped so. */
struct label_slot {
    unsigned stamp;
    int label;
};

/* Where each rank lies, as folding reads it. */
struct places {
    const struct matrix *matrix;
    int *order, ranks; /* rank -> endpoint */
    bool pairs;        /* some exception is of a pair: rings of neighbours may miss it */
    struct rank_place *rank;
    uint64_t *mark;          /* of each endpoint */
    int base[KEYS + 1];      /* slots of each key begin here */
    struct label_slot *slot; /* scratch: labels of the group at hand */
    unsigned stamp;          /* the group at hand */
    int *ids;                /* scratch: its endpoints */
};

/* splitmix64's finaliser (Vigna 2015). */
static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

uint64_t *places_marks(const struct matrix *m)
{
    uint64_t *mark = mem_calloc((size_t)m->topo.endpoints, sizeof(*mark));

    for (int i = 0; i < m->exceptions; i++) {
        const struct exception *x = &m->exception[i];
        bool single = x->part == PART_ENDPOINT || x->part == PART_PAIR;
        int ends[2] = {x->a, x->b};
        for (int e = 0; single && e < 2; e++)
            if (ends[e] >= 0 && ends[e] < m->topo.endpoints)
                mark[ends[e]] += mix((uint64_t)i + 1000);
        for (int e = 0; !single && e < m->topo.endpoints; e++)
            if (matrix_touches(m, x, e))
                mark[e] += mix((uint64_t)i + 1000);
    }
    return mark;
}

/* The NIC of an endpoint as shape.c counts them: where none was seen, a GPU has its own and the
 * CPUs of a host share one. */
static int nic_of(const struct topo *t, int id)
{
    const struct endpoint *e = &t->endpoint[id];

    if (e->nic >= 0)
        return e->nic;
    return t->nics + (e->kind == ENDPOINT_GPU ? t->hosts + id : e->place.at[LEVEL_HOST]);
}

static void place_rank(struct places *p, int rank, int id)
{
    const struct topo *t = &p->matrix->topo;
    struct rank_place *r = &p->rank[rank];

    p->order[rank] = id;
    for (int k = 0; k < LEVEL_COUNT; k++) {
        int at = t->endpoint[id].place.at[k];
        r->key[k] = at < 0 ? -1 : p->base[k] + at;
    }
    r->key[KEY_NIC] = p->base[KEY_NIC] + nic_of(t, id);
    r->mark = p->mark[id];
}

static void places_open(struct places *p, const struct matrix *m, const int *order, int ranks)
{
    const struct topo *t = &m->topo;

    *p = (struct places){.matrix = m, .ranks = ranks, .mark = places_marks(m)};
    for (int i = 0; i < m->exceptions; i++)
        p->pairs |= m->exception[i].part == PART_PAIR;
    for (int k = 0; k < LEVEL_COUNT; k++)
        p->base[k + 1] = p->base[k] + (k == LEVEL_HOST ? t->hosts : t->group[k].count);
    p->base[KEYS] = p->base[KEY_NIC] + t->nics + t->hosts + t->endpoints;
    p->order = mem_calloc((size_t)ranks, sizeof(*p->order));
    p->rank = mem_calloc((size_t)ranks, sizeof(*p->rank));
    p->ids = mem_calloc((size_t)ranks, sizeof(*p->ids));
    p->slot = mem_calloc((size_t)p->base[KEYS], sizeof(*p->slot));
    for (int r = 0; r < ranks; r++)
        place_rank(p, r, order ? order[r] : r);
}

static void places_close(struct places *p)
{
    free(p->order);
    free(p->rank);
    free(p->mark);
    free(p->slot);
    free(p->ids);
    memset(p, 0, sizeof(*p));
}

/* Equal for groups whose members lie alike, position by position: hosts, domains, ... are numbered
 * as they appear in the group. */
static uint64_t signature(struct places *p, const struct span *span, int group)
{
    int next[KEYS] = {0}, first = span_rank(span, group, 0);
    uint64_t sum = 0;

    if (!++p->stamp) { /* after four thousand million groups */
        memset(p->slot, 0, (size_t)p->base[KEYS] * sizeof(*p->slot));
        p->stamp = 1;
    }
    for (int i = 0; i < span->size; i++) {
        const struct rank_place *r = &p->rank[first + i * span->stride];
        uint64_t labels = r->mark;
        for (int k = 0; k < KEYS; k++) {
            struct label_slot *s = r->key[k] < 0 ? NULL : &p->slot[r->key[k]];
            if (s && s->stamp != p->stamp)
                *s = (struct label_slot){p->stamp, next[k]++};
            labels = labels * 0x100000001b3u + (uint64_t)(s ? s->label + 1 : 0);
        }
        sum = map_mix(sum, labels);
    }
    return sum;
}

static bool ways_equal(const struct ways *a, const struct ways *b)
{
    const struct shape *s = &a->shape, *t = &b->shape;

    return s->ranks == t->ranks && s->domains == t->domains && s->per_domain == t->per_domain &&
           s->nodes == t->nodes && s->nics == t->nics && s->racks == t->racks &&
           a->inner == b->inner && a->outer == b->outer && a->crossings == b->crossings &&
           a->inner_factor == b->inner_factor && a->outer_factor == b->outer_factor &&
           a->alpha_add == b->alpha_add && !memcmp(a->share, b->share, sizeof(a->share));
}

/* Does an exception touch a member? */
static bool marked(const struct places *p, const struct span *span, int group)
{
    for (int i = 0; i < span->size; i++)
        if (p->rank[span_rank(span, group, i)].mark)
            return true;
    return false;
}

/* The kind that prices as this group does; a new one if there is none. */
static int kind_of(struct groups *g, const struct places *p, int index)
{
    struct group_kind kind = {.index = index};
    bool healthy = !marked(p, &g->span, index);

    groups_ids(g, p->order, index, p->ids);
    ways_of(&kind.ring, p->matrix, p->ids, g->span.size, OP_ALL_GATHER, healthy);
    kind.across = kind.ring;
    if (p->pairs && !healthy)
        ways_of(&kind.across, p->matrix, p->ids, g->span.size, OP_ALL_TO_ALL, false);
    kind.ring.at_once = kind.across.at_once = g->total;
    for (int k = 0; k < g->kinds; k++)
        if (ways_equal(&g->kind[k].ring, &kind.ring) &&
            ways_equal(&g->kind[k].across, &kind.across))
            return k;
    MEM_PUSH(g->kind, g->kinds) = kind;
    return g->kinds - 1;
}

/* The groups that are of no kind are given theirs. */
static void groups_fold(struct groups *g, struct places *p)
{
    for (int i = 0; i < g->total; i++) {
        if (g->of[i] >= 0)
            continue;
        int *kind = map_at(&g->known, signature(p, &g->span, i), NULL, NULL);
        if (*kind == MAP_NONE)
            *kind = kind_of(g, p, i);
        g->of[i] = *kind;
        g->kind[*kind].like++;
    }
}

/* A rank of them lies elsewhere. */
static void groups_move(struct groups *g, int rank)
{
    int group = span_group(&g->span, rank);

    if (group >= g->total || g->of[group] < 0)
        return;
    g->kind[g->of[group]].like--;
    g->of[group] = -1;
}

/* The first group of each kind, as the ranks lie now. */
static void groups_index(struct groups *g)
{
    for (int i = g->total; i-- > 0;)
        g->kind[g->of[i]].index = i;
}

static void groups_free(struct groups *g)
{
    free(g->kind);
    free(g->of);
    map_free(&g->known);
    memset(g, 0, sizeof(*g));
}

/* The grid is made of the first bits of a double: exponent, and STEP_BITS of the fraction. */
enum {
    STEP_BITS = 6,
    REST_BITS = 52 - STEP_BITS,
    EXPONENT_BIAS = 1023,
    FIRST_OCTAVE = 3,
    LAST_OCTAVE = 46, /* 8 B .. 64 TiB; beyond them exactly */
    GRID = ((LAST_OCTAVE - FIRST_OCTAVE) << STEP_BITS) + 1,
    GRID_FROM = (EXPONENT_BIAS + FIRST_OCTAVE) << STEP_BITS,
    CURVES = OP_COUNT + EP_COMBINE, /* ops, and kernels in place of all_to_all */
    KINDS_KEPT = 128,               /* of a span over orders: more are looked for in vain */
};

struct price_curve {
    const struct groups *groups;
    enum ep_kernel kernel;
    struct routing route;           /* ranks 0: tokens spread evenly */
    struct collective_quote *quote; /* of each kind of group */
    int quotes;
    double *sec; /* [GRID], 0: not asked yet; NULL: none was */
};

struct entry {
    struct groups groups;
    bool folded; /* as the ranks lie now */
    struct price_curve *curve[CURVES];
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
    for (int i = 0; e && i < CURVES; i++) {
        if (e->curve[i]) {
            free(e->curve[i]->quote);
            free(e->curve[i]->sec);
        }
        free(e->curve[i]);
    }
    if (e)
        groups_free(&e->groups);
    free(e);
}

static void forget(struct pricer *p)
{
    for (int i = 0; i < p->entries; i++)
        entry_free(p->entry[i]);
    free(p->entry);
    p->entry = NULL;
    p->entries = 0;
    map_free(&p->index);
}

void pricer_close(struct pricer *p)
{
    if (!p)
        return;
    forget(p);
    places_close(&p->places);
    free(p);
}

int pricer_order(struct pricer *p, const int *order, struct err *err)
{
    struct places *at = &p->places;
    int kinds = 0;

    if (check_order(at->matrix, order, at->ranks, err) < 0)
        return -1;
    for (int i = 0; i < p->entries; i++)
        kinds = p->entry[i]->groups.kinds > kinds ? p->entry[i]->groups.kinds : kinds;
    if (kinds > KINDS_KEPT)
        forget(p);
    for (int r = 0; r < at->ranks; r++) {
        if (at->order[r] == order[r])
            continue;
        place_rank(at, r, order[r]);
        for (int i = 0; i < p->entries; i++)
            groups_move(&p->entry[i]->groups, r);
    }
    for (int i = 0; i < p->entries; i++)
        p->entry[i]->folded = false;
    return 0;
}

static struct entry *entry_new(struct pricer *p, struct span span)
{
    struct entry **at = &MEM_PUSH(p->entry, p->entries), *e;

    *at = NULL; /* where memory ends now */
    *at = e = mem_calloc(1, sizeof(*e));
    e->groups = (struct groups){.span = span, .total = span_groups(&span, p->places.ranks)};
    e->groups.of = mem_ints(e->groups.total, -1);
    return e;
}

/* Groups as the ranks lie now; of the sizes that were asked before none is known then. */
static void fold(struct entry *e, struct places *places)
{
    groups_fold(&e->groups, places);
    groups_index(&e->groups);
    for (int i = 0; i < CURVES; i++)
        if (e->curve[i] && e->curve[i]->sec) {
            free(e->curve[i]->sec);
            e->curve[i]->sec = NULL;
        }
    e->folded = true;
}

static struct entry *entry_of(struct pricer *p, struct span span)
{
    uint64_t key = (uint64_t)(unsigned)span.size << 32 | (unsigned)span.stride;
    int *at = map_at(&p->index, key, NULL, NULL);

    if (*at == MAP_NONE) {
        entry_new(p, span);
        *at = p->entries - 1;
    }
    struct entry *e = p->entry[*at];
    if (!e->folded)
        fold(e, &p->places);
    return e;
}

static struct price_curve *curve_of(const struct pricer *p, struct entry *e,
                                    const struct message *msg)
{
    const struct groups *g = &e->groups;
    struct price_curve **at =
        &e->curve[msg->kernel == EP_NONE ? (int)msg->op : OP_COUNT - 1 + (int)msg->kernel];

    struct price_curve *t = *at;
    if (!t) {
        *at = t = mem_calloc(1, sizeof(*t));
        t->groups = g;
        t->kernel = msg->kernel;
        t->route = msg->route;
    }
    while (t->quotes < g->kinds) {
        const struct group_kind *k = &g->kind[t->quotes];
        struct collective_quote *q = &MEM_PUSH(t->quote, t->quotes);
        collective_resolve(q, p->places.matrix, msg->op,
                           op_table[msg->op].links == OP_EXCHANGE ? &k->across : &k->ring, false);
    }
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
static double slowest(const struct pricer *p, const struct price_curve *t,
                      const struct message *msg, int *kind)
{
    double most = 0;

    *kind = 0;
    for (int k = 0; k < t->groups->kinds; k++) {
        if (!t->groups->kind[k].like)
            continue;
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

static double fill(const struct pricer *p, struct price_curve *t, const struct message *msg,
                   uint64_t at)
{
    uint64_t bits = (at + GRID_FROM) << REST_BITS;
    struct message one = *msg;
    int kind;

    memcpy(&one.bytes, &bits, sizeof(one.bytes));
    return t->sec[at] = slowest(p, t, &one, &kind);
}

static bool same_route(const struct routing *a, const struct routing *b)
{
    return a->ranks == b->ranks && a->experts == b->experts && a->topk == b->topk &&
           a->groups == b->groups && a->groups_max == b->groups_max &&
           a->domains_max == b->domains_max;
}

struct price_curve *pricer_curve(struct pricer *p, const struct message *msg)
{
    return msg->span.size < 2 ? NULL : curve_of(p, entry_of(p, msg->span), msg);
}

double pricer_curve_at(struct pricer *p, struct price_curve *t, const struct message *msg)
{
    uint64_t bits;
    int kind;

    if (!t)
        return 0;
    memcpy(&bits, &msg->bytes, sizeof(bits));
    uint64_t at = (bits >> REST_BITS) - GRID_FROM; /* beyond GRID below the first octave too */
    /* a curve is of one routing, as a model mostly has: another one is priced exactly */
    if (at >= GRID - 1 || (t->kernel != EP_NONE && !same_route(&t->route, &msg->route)))
        return slowest(p, t, msg, &kind);
    if (!t->sec)
        t->sec = mem_calloc(GRID, sizeof(*t->sec));
    double a = t->sec[at], b = t->sec[at + 1];
    if (a == 0)
        a = fill(p, t, msg, at);
    if (b == 0)
        b = fill(p, t, msg, at + 1);
    double share = (double)(int64_t)(bits & ((1ULL << REST_BITS) - 1)) * 0x1p-46;
    return b < INFINITY ? a + share * (b - a) : b;
}

double pricer_message(struct pricer *p, const struct message *msg)
{
    return pricer_curve_at(p, pricer_curve(p, msg), msg);
}

double pricer_message_mean(struct pricer *p, const struct message *msg, double *mean)
{
    double most = 0;

    *mean = 0;
    if (msg->span.size < 2)
        return 0;
    struct entry *e = entry_of(p, msg->span);
    struct price_curve *t = curve_of(p, e, msg);
    for (int k = 0; k < e->groups.kinds; k++) {
        if (!e->groups.kind[k].like)
            continue;
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
        *out = (struct cost){0, 0, 0, BASIS_ASSUMED, "one rank: nothing to move", -1, 0};
        return;
    }
    struct entry *e = entry_of(p, msg->span);
    int *ids = mem_calloc((size_t)n, sizeof(*ids));
    double sec = slowest(p, curve_of(p, e, msg), msg, &kind);
    *group = e->groups.kind[kind].index;
    groups_ids(&e->groups, p->places.order, *group, ids);
    if (msg->kernel == EP_NONE)
        matrix_collective_at(m, msg->op, ids, n, e->groups.total, msg->bytes, false, out);
    else
        cost_kernel(p, msg, ids, out);
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
