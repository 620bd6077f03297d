/* SPDX-License-Identifier: BSD-3-Clause */
/* place_mesh.c - the closed form: orders of the mesh's digits (which axis varies fastest) x size of
 * the blocks that stay whole x rows of hosts. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "place/place_impl.h"

/* --- ranks as digits --- */

/* Strides at which a group begins or ends, reduced to a chain in which each divides the next. */
static void chain(struct mesh *m, const struct traffic *t, int ranks)
{
    int edge[2 * TRAFFIC_MAX + 1], n = 0, last = 1;

    for (int i = 0; i < t->messages; i++) {
        edge[n++] = t->message[i].span.stride;
        edge[n++] = t->message[i].span.stride * t->message[i].span.size;
    }
    edge[n++] = ranks;
    qsort(edge, (size_t)n, sizeof(*edge), stats_by_int);
    for (int i = 0; i < n; i++) {
        bool end = edge[i] == ranks;
        if (edge[i] <= last || edge[i] % last || ranks % edge[i] ||
            (m->digits == DIGITS - 1 && !end))
            continue;
        m->stride[m->digits] = last;
        m->radix[m->digits++] = edge[i] / last;
        last = edge[i];
    }
}

/* A message adds weight to every digit along its groups. */
static void weigh(struct mesh *m, const struct traffic *t)
{
    for (int i = 0; i < t->messages; i++) {
        const struct message *msg = &t->message[i];
        double bytes = msg->count * message_wire_bytes(msg, msg->span.size);
        for (int d = 0; d < m->digits; d++)
            if (m->stride[d] >= msg->span.stride &&
                m->stride[d] < msg->span.stride * msg->span.size)
                m->weight[d] += bytes;
    }
}

void mesh_of(struct mesh *m, const struct placer *pl)
{
    memset(m, 0, sizeof(*m));
    m->ranks = pl->ranks;
    chain(m, &pl->step->traffic, pl->ranks);
    weigh(m, &pl->step->traffic);
}

int mesh_rank(const struct mesh *m, const int *turn, int s)
{
    int rank = 0;

    for (int i = 0; i < m->digits; i++) {
        rank += s % m->radix[turn[i]] * m->stride[turn[i]];
        s /= m->radix[turn[i]];
    }
    return rank;
}

struct scored {
    double far; /* weight of digits that vary late */
    int serial, turn[DIGITS];
};

static int by_far(const void *a, const void *b)
{
    const struct scored *x = a, *y = b;

    if (x->far != y->far)
        return x->far < y->far ? -1 : 1;
    return x->serial - y->serial;
}

static double far(const struct mesh *m, const int *turn)
{
    double sum = 0, reach = 0;

    for (int i = 0; i < m->digits; i++) {
        reach += log2(m->radix[turn[i]]);
        sum += m->weight[turn[i]] * reach;
    }
    return sum;
}

/* Step to the next permutation in lexicographic order.  False after the last. */
static bool permute(int *v, int n)
{
    int i = n - 2, k = n - 1;

    while (i >= 0 && v[i] > v[i + 1])
        i--;
    if (i < 0)
        return false;
    while (v[k] < v[i])
        k--;
    int swap = v[i];
    v[i] = v[k];
    v[k] = swap;
    for (int a = i + 1, b = n - 1; a < b; a++, b--) {
        swap = v[a];
        v[a] = v[b];
        v[b] = swap;
    }
    return true;
}

/* List orders of the digits, those that keep heavy digits near first.  The caller frees. */
static int mesh_turns(const struct mesh *m, int (**turns)[DIGITS], int most)
{
    struct scored *all = NULL, next = {0};
    int n = 0;

    for (int i = 0; i < DIGITS; i++)
        next.turn[i] = i;
    do {
        next.far = n ? far(m, next.turn) : -1; /* the mesh's own order comes first */
        next.serial = n;
        MEM_PUSH(all, n) = next;
    } while (permute(next.turn, m->digits));
    qsort(all, (size_t)n, sizeof(*all), by_far);
    n = n < most ? n : most;
    *turns = mem_calloc((size_t)n + 1, sizeof(**turns));
    for (int i = 0; i < n; i++)
        memcpy((*turns)[i], all[i].turn, sizeof(**turns));
    free(all);
    return n;
}

/* --- candidates --- */

enum { TURNS_MAX = 720, KEPT = 4, WITHIN_MAX = 24 };
enum { LOOKS_MAX = 1 << 16 }; /* limit for lines x boxes if lines are cut */

/* --- lines of units cut into parts, each inside one box --- */

/* Cut each line over the fewest boxes that hold it, those with the most room, into nearly equal
 * parts. */
static bool cut_equally(struct cutting *c)
{
    for (int line = 0; line < c->lines; line++) {
        int from = c->parts, sum = 0, left = c->units;
        while (sum < c->units) {
            int most = 0;
            for (int b = 1; b < c->boxes; b++)
                most = c->room[b] > c->room[most] ? b : most;
            if (c->room[most] <= 0)
                return false;
            c->part[c->parts++] = (struct row_part){most, c->room[most]};
            sum += c->room[most];
            c->room[most] = -c->room[most]; /* used by this line */
        }
        for (int i = c->parts; i-- > from;) { /* smallest box first */
            struct row_part *p = &c->part[i];
            int share = left / (i - from + 1);
            c->room[p->box] = -c->room[p->box];
            p->units = share < p->units ? share : p->units;
            c->room[p->box] -= p->units;
            left -= p->units;
        }
    }
    return true;
}

/* One candidate: the digit that varies fastest, and the largest block that is kept whole. */
struct mesh_plan {
    const int *turn;
    int whole; /* digits in the block: product of the first `whole` radices */
    int part;  /* times this divisor of the next digit's radix; 1: none */
    bool cut;  /* lines of the next digit are cut into as few parts as the boxes allow */
    struct place_sec sec;
};

struct mesh_search {
    struct place_best *best;
    struct placer *placer;
    struct mesh mesh;
    int *slot, *order;
    struct mesh_plan kept[KEPT];
    int keeps;
};

/* List the sizes for row_fill(): the block, smaller ones that do not cut hosts, then 1. */
static int blocks_of(const struct mesh_search *h, const struct mesh_plan *p, int block[DIGITS + 3])
{
    int size[DIGITS + 2] = {1}, per = h->placer->pool->per_host, n = 0, whole = p->whole;

    for (int i = 0; i < whole; i++)
        size[i + 1] = size[i] * h->mesh.radix[p->turn[i]];
    if (p->part > 1) {
        size[whole + 1] = size[whole] * p->part;
        whole++;
    }
    for (int i = whole; i > 0; i--)
        if (size[i] % per == 0 || per % size[i] == 0)
            block[n++] = size[i];
    if (per > 1 && (n == 0 || (block[n - 1] > per && block[n - 1] % per == 0)))
        block[n++] = per;
    block[n++] = 1;
    return n;
}

static const char *level_word(int level)
{
    return level < 0 ? "the machine" : level_name[level];
}

static void say(char how[256], const struct mesh_search *h, const struct mesh_plan *p,
                const struct row *r, int size)
{
    int n = snprintf(how, 256, "ranks ");

    for (int i = 0; i < h->mesh.digits && n < 200; i++)
        n += snprintf(how + n, (size_t)(256 - n), "%s%d/%d", i ? ", " : "",
                      h->mesh.radix[p->turn[i]], h->mesh.stride[p->turn[i]]);
    if (p->cut)
        snprintf(how + n, (size_t)(256 - n), "; each %d in as few parts as fit, of one %s each",
                 h->mesh.radix[p->turn[p->whole]], level_word(r->level));
    else if (n < 256)
        snprintf(how + n, (size_t)(256 - n), "; blocks of %d inside a %s", size,
                 level_word(r->level));
}

static void keep(struct mesh_search *h, struct mesh_plan p)
{
    int at = h->keeps < KEPT ? h->keeps++ : KEPT;

    for (; at > 0 && place_better(p.sec, h->kept[at - 1].sec); at--)
        if (at < KEPT)
            h->kept[at] = h->kept[at - 1];
    if (at < KEPT)
        h->kept[at] = p;
}

/* Fill the slots with the lines of the digit that is cut, in order. */
static bool fill_lines(struct mesh_search *h, const struct mesh_plan *p, const struct row *r,
                       bool (*cut_all)(struct cutting *))
{
    struct cutting c = {.units = h->mesh.radix[p->turn[p->whole]], .boxes = r->boxes};
    int size = 1;

    for (int i = 0; i < p->whole; i++)
        size *= h->mesh.radix[p->turn[i]];
    c.lines = h->mesh.ranks / size / c.units;
    if ((long)c.lines * c.boxes > LOOKS_MAX)
        return false;
    c.room = mem_calloc((size_t)c.boxes + 1, sizeof(*c.room));
    for (int b = 0; b < c.boxes; b++)
        c.room[b] = row_slots(r, h->placer->pool, b) / size;
    c.part = mem_calloc((size_t)c.lines * (size_t)c.boxes + 1, sizeof(*c.part));
    bool done = cut_all(&c);
    if (done)
        row_fill_parts(r, h->placer->pool, size, c.part, c.parts, h->slot);
    free(c.room);
    free(c.part);
    return done;
}

/* Price the plan with ranks in the filled slots. */
static void try_slots(struct mesh_search *h, struct mesh_plan p, const struct row *r, int block)
{
    char how[256];

    for (int s = 0; s < h->mesh.ranks; s++)
        h->order[mesh_rank(&h->mesh, p.turn, s)] = h->slot[s];
    say(how, h, &p, r, block);
    p.sec.most = h->keeps < KEPT ? INFINITY : h->kept[KEPT - 1].sec.most;
    enum place_tried tried = place_try(h->best, h->placer, h->order, how, &p.sec);
    if (tried == TRIED_BEST)
        memcpy(h->best->turn, p.turn, sizeof(h->best->turn));
    if (tried != TRIED_BEFORE)
        keep(h, p);
}

static void try_plan(struct mesh_search *h, struct mesh_plan p, const struct row *r)
{
    int block[DIGITS + 3];

    if (p.cut) {
        if (fill_lines(h, &p, r, cut_equally))
            try_slots(h, p, r, 0);
        if (fill_lines(h, &p, r, cut_largely))
            try_slots(h, p, r, 0);
    } else if (row_fill(r, h->placer->pool, block, blocks_of(h, &p, block), h->mesh.ranks, false,
                        h->slot))
        try_slots(h, p, r, block[0]);
}

/* Returns the largest divisor of n that is no larger than `most`. */
static int divisor(int n, int most)
{
    int d = most < n ? most : n;

    while (d > 1 && n % d)
        d--;
    return d;
}

/* Try all sizes of whole blocks that fit a box, largest first.  An axis that does not fit is cut
 * into equal parts. */
static void try_turn(struct mesh_search *h, const int *turn, const struct row *r, double share)
{
    int room = row_largest(r, h->placer->pool), size = 1, fits = 0;

    for (int i = 0; i < h->mesh.digits && (long)size * h->mesh.radix[turn[i]] <= room; i++) {
        size *= h->mesh.radix[turn[i]];
        fits = i + 1;
    }
    int most = room / size, radix = fits < h->mesh.digits ? h->mesh.radix[turn[fits]] : 1;
    int part = divisor(radix, most);
    /* Cut the first digit too large for every box, and the last one that may not fit whole in
     * all. */
    for (int whole = fits; whole >= 0 && whole >= fits - 1 && placer_may(h->placer, share); whole--)
        if (whole < h->mesh.digits)
            try_plan(h, (struct mesh_plan){turn, whole, 1, true, {0, 0}}, r);
    for (int whole = fits; whole >= 0 && placer_may(h->placer, share); whole--, part = 1) {
        if (part > 1)
            try_plan(h, (struct mesh_plan){turn, whole, part, false, {0, 0}}, r);
        try_plan(h, (struct mesh_plan){turn, whole, 1, false, {0, 0}}, r);
    }
}

static void all_turns(struct mesh_search *h, int (*turns)[DIGITS], int n, double share)
{
    int level[LEVEL_COUNT], levels = node_pool_levels(h->placer->pool, level);
    struct row row[LEVEL_COUNT + 1];
    bool again[LEVEL_COUNT + 1];

    if (levels == 0)
        level[levels++] = -1;
    for (int k = 0; k < levels; k++) {
        row_make(&row[k], h->placer->pool, level[k], ROW_NEAR, -1, -1);
        again[k] = row_again(row, k);
    }
    for (int i = 0; i < n; i++)
        for (int k = 0; k < levels && placer_may(h->placer, share); k++)
            if (!again[k])
                try_turn(h, turns[i], &row[k], share);
    for (int k = 0; k < levels; k++)
        row_free(&row[k]);
}

/* Try the best plans on one more row. */
static void kept_on(struct mesh_search *h, const struct row *r, double share)
{
    struct mesh_plan plan[KEPT];
    int n = h->keeps;

    if (row_slots(r, h->placer->pool, -1) < h->mesh.ranks)
        return;
    memcpy(plan, h->kept, sizeof(plan));
    for (int i = 0; i < n && placer_may(h->placer, share); i++)
        try_plan(h, plan[i], r);
}

/* Try only hosts of one group of an outer level. */
static void inside_groups(struct mesh_search *h, int inner, int outer, double share)
{
    int groups = h->placer->pool->matrix->topo.group[outer].count, tried = 0;
    int *slots = node_pool_group_slots(h->placer->pool, outer, false);

    for (int g = 0; g < groups && tried < WITHIN_MAX; g++) {
        struct row r;
        if (slots[g] < h->mesh.ranks)
            continue;
        row_make(&r, h->placer->pool, inner, ROW_NEAR, outer, g);
        kept_on(h, &r, share);
        row_free(&r);
        tried++;
    }
    free(slots);
}

static void other_rows(struct mesh_search *h, double share)
{
    int level[LEVEL_COUNT], levels = node_pool_levels(h->placer->pool, level);

    for (int k = 0; k < levels; k++)
        for (int how = ROW_LARGE; how < ROW_HOWS; how++) {
            struct row r;
            row_make(&r, h->placer->pool, level[k], (enum row_how)how, -1, -1);
            kept_on(h, &r, share);
            row_free(&r);
        }
    for (int k = 0; k < levels; k++)
        for (int outer = k; outer < levels; outer++)
            inside_groups(h, level[k], level[outer], share);
}

void place_mesh(struct place_best *b, struct placer *pl)
{
    struct mesh_search h = {.best = b, .placer = pl};
    int(*turns)[DIGITS], n;

    mesh_of(&h.mesh, pl);
    h.slot = mem_calloc((size_t)pl->ranks + 1, sizeof(int));
    h.order = mem_calloc((size_t)pl->ranks + 1, sizeof(int));
    n = mesh_turns(&h.mesh, &turns, TURNS_MAX);
    all_turns(&h, turns, n, 0.3);
    other_rows(&h, 0.4);
    free(turns);
    free(h.slot);
    free(h.order);
}
