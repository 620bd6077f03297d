/* SPDX-License-Identifier: BSD-3-Clause */
#include "measure/schedule_impl.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static void push(struct pairs *out, int a, int b)
{
    out->pair = mem_grow(out->pair, (size_t)out->count, sizeof(*out->pair));
    out->pair[out->count][0] = a;
    out->pair[out->count++][1] = b;
}

void schedule_circle(struct pairs *out, const int *v, int n, int r)
{
    int m = n + n % 2; /* an odd one gets a partner that does not exist */

    for (int i = 0; i < m / 2; i++) {
        int a = (r + i) % (m - 1), b = i ? (r - i + m - 1) % (m - 1) : m - 1;
        int lo = a < b ? a : b, hi = a < b ? b : a;
        if (hi < n)
            push(out, v[lo], v[hi]);
    }
}

/* Step through 0 .. n - 1, near the golden share of n, so that no part is left for last. */
static int spread(int k, int n)
{
    int step = (int)(0.618 * n) | 1, a = step, b = n;

    while (a > 1) { /* until both are coprime */
        for (a = step, b = n; b;) {
            int rest = a % b;
            a = b;
            b = rest;
        }
        step += a > 1 ? 2 : 0;
    }
    return (int)((long)k * step % n);
}

void schedule_shift(struct pairs *out, const int *v, int n, int d)
{
    for (int i = 0; i + d < n; i++)
        if (i / d % 2 == 0)
            push(out, v[i], v[i + d]);
}

int schedule_find_rounds(int n)
{
    int all = schedule_circle_rounds(n);

    return all < FIND_ROUNDS ? all : FIND_ROUNDS;
}

static int *numbers(int n)
{
    int *v = mem_ints(n, 0);

    for (int i = 0; i < n; i++)
        v[i] = i;
    return v;
}

/* Element k of a fixed random order of 0 .. n - 1. */
static int by_chance(int k, int n)
{
    int *v = numbers(n);
    struct rng rng;

    rng_seed(&rng, (unsigned)n);
    rng_shuffle(&rng, v, n);
    int chosen = v[k];
    free(v);
    return chosen;
}

void schedule_find(struct pairs *out, const int *v, int n, int r)
{
    int all = schedule_circle_rounds(n), d = 1 + r / 2, from = r % 2 ? d : 0;

    if (all <= FIND_ROUNDS)
        schedule_circle(out, v, n, r);
    else if (d <= FIND_NEAR)
        schedule_shift(out, v + from, n - from, d);
    else
        schedule_circle(out, v, n, by_chance(r - 2 * FIND_NEAR, all));
}

struct leaf {
    int *member, members;
};

/* Append member i of a with member k of b, if both exist and share neither host nor domain. */
static void pair_leaf(struct pairs *out, const struct topo *t, const struct leaf *a, int i,
                      const struct leaf *b, int k)
{
    if (i >= a->members || k >= b->members)
        return;
    const int *x = t->endpoint[a->member[i]].place.at, *y = t->endpoint[b->member[k]].place.at;
    bool beside = x[LEVEL_DOMAIN] >= 0 && x[LEVEL_DOMAIN] == y[LEVEL_DOMAIN];
    if (!beside && x[LEVEL_HOST] != y[LEVEL_HOST])
        push(out, a->member[i], b->member[k]);
}

/* Group of another level that contains all members, plus one; 0: not known, or more than one
 * group. */
static int common_place(const struct topo *t, const struct leaf *l, enum level level)
{
    int at = topo_at(t, l->member[0], level);

    for (int i = 1; i < l->members; i++)
        if (topo_at(t, l->member[i], level) != at)
            return 0;
    return at + 1;
}

/* Groups of a level that have members, in the order of the topology.  The caller frees. */
static struct leaf *list_leaves(const struct topo *t, const int *order, enum level level,
                                int *count)
{
    int n = t->group[level].count, kept = 0;
    struct leaf *leaf = mem_calloc((size_t)n + 1, sizeof(*leaf));

    for (int i = 0; i < t->endpoints; i++) {
        int at = topo_at(t, order[i], level);
        if (at >= 0)
            MEM_PUSH(leaf[at].member, leaf[at].members) = order[i];
    }
    for (int i = 0; i < n; i++)
        if (leaf[i].members)
            leaf[kept++] = leaf[i];
    *count = kept;
    return leaf;
}

static void free_leaves(struct leaf *leaf, int count)
{
    for (int i = 0; i < count; i++)
        free(leaf[i].member);
    free(leaf);
}

/* Groups may be paired if this value is equal: leaves by rail and spine, racks by spine. */
static int meeting_place(const struct topo *t, const struct leaf *l, enum level level)
{
    const int rails = t->group[LEVEL_RAIL].count + 1;
    int rail = level == LEVEL_LEAF ? common_place(t, l, LEVEL_RAIL) : 0;
    int spine = level != LEVEL_SPINE ? common_place(t, l, LEVEL_SPINE) : 0;

    return spine * rails + rail;
}

/* True if each group of the level is inside one group of a level that was handled before. */
static bool is_repeated(const struct topo *t, const struct leaf *group, int count, enum level level)
{
    static const enum level before[] = {LEVEL_LEAF, LEVEL_RACK};

    for (int k = 0; k < 2 && before[k] != level; k++) {
        bool same = t->group[before[k]].count == count;
        for (int i = 0; i < count && same; i++)
            same = common_place(t, &group[i], before[k]) > 0;
        if (same)
            return true;
    }
    return false;
}

/* Append round r of the groups of one meeting place. */
static void meet_groups(struct pairs *out, const struct topo *t, const struct leaf *group,
                        const int *at, int n, int r)
{
    struct pairs meet = {NULL, 0};

    if (r < schedule_circle_rounds(n))
        schedule_circle(&meet, at, n, r);
    for (int i = 0; i < meet.count; i++)
        for (int k = 0; k < group[meet.pair[i][0]].members; k++)
            pair_leaf(out, t, &group[meet.pair[i][0]], k, &group[meet.pair[i][1]], k);
    free(meet.pair);
}

/* Shift between the members of two rails with the same hosts, beyond the members of a domain. */
static int rails_apart(const struct topo *t, const struct leaf *l, int r)
{
    int domain = topo_at(t, l->member[0], LEVEL_DOMAIN), same = 1;

    while (same < l->members && domain >= 0 && topo_at(t, l->member[same], LEVEL_DOMAIN) == domain)
        same++;
    return same + (l->members - 2 * same) * (1 + r % UPLINK_PARTNERS) / (UPLINK_PARTNERS + 1);
}

/* The same for leaves that are a rail each of the same hosts: half of the leaves send, each to all
 * that receive. */
static void meet_rails(struct pairs *out, const struct topo *t, const struct leaf *leaf,
                       const int *at, int n, int r)
{
    struct pairs meet = {NULL, 0};

    if (r < schedule_circle_rounds(n))
        schedule_circle(&meet, at, n, r);
    for (int i = 0; i < meet.count; i++) {
        const struct leaf *a = &leaf[meet.pair[i][0]];
        int apart = rails_apart(t, a, r);

        for (int k = 0; k < a->members && apart > 0; k++)
            pair_leaf(out, t, a, k, &leaf[meet.pair[(i + k) % meet.count][1]],
                      (k + apart) % a->members);
    }
    free(meet.pair);
}

/* Groups of a level, and the place where each may be paired. */
struct meeting {
    struct leaf *group;
    int *place, count, places;
};

/* Number of rounds until all are paired. */
static int meeting_rounds(const struct meeting *m)
{
    int *groups = mem_ints(m->places, 0), most = 0;

    for (int i = 0; i < m->count; i++)
        most = ++groups[m->place[i]] > most ? groups[m->place[i]] : most;
    free(groups);
    return most > 1 ? schedule_circle_rounds(most) : 0;
}

static void meet(struct pairs *out, const struct topo *t, const struct meeting *m, int r,
                 bool rails)
{
    for (int p = 0; p < m->places; p++) {
        int *at = NULL, n = 0;
        for (int i = 0; i < m->count; i++)
            if (m->place[i] == p)
                MEM_PUSH(at, n) = i;
        if (n > 1)
            (rails ? meet_rails : meet_groups)(out, t, m->group, at, n, r);
        free(at);
    }
}

/* Place together the leaves that begin with the same host. */
static void place_rails(struct meeting *m, const struct topo *t)
{
    m->places = m->count;
    for (int i = 0; i < m->count; i++) {
        int host = topo_at(t, m->group[i].member[0], LEVEL_HOST), k = 0;

        while (topo_at(t, m->group[k].member[0], LEVEL_HOST) != host)
            k++;
        m->place[i] = k;
    }
}

void schedule_uplinks(struct pairs *out, const struct topo *t, const int *order, enum level level,
                      int r)
{
    struct meeting m = {.places =
                            (t->group[LEVEL_SPINE].count + 1) * (t->group[LEVEL_RAIL].count + 1)};
    int rounds;

    m.group = list_leaves(t, order, level, &m.count);
    m.place = mem_ints(m.count + 1, 0);
    for (int i = 0; i < m.count; i++)
        m.place[i] = meeting_place(t, &m.group[i], level);
    rounds = meeting_rounds(&m);
    bool rails = level == LEVEL_LEAF && r >= rounds;
    if (rails)
        place_rails(&m, t);
    if (!is_repeated(t, m.group, m.count, level)) /* otherwise handled as another level */
        meet(out, t, &m, rails ? r - rounds : r, rails);
    free(m.place);
    free_leaves(m.group, m.count);
}

/* --- cables: all pairs of NICs --- */

/* Groups of endpoints that need no NIC among each other, as `struct leaf`.  *count is 0 for a
 * single group or groups of different sizes. */
static struct leaf *list_domains(const struct topo *t, const int *order, int *count)
{
    enum level level = topo_at(t, 0, LEVEL_DOMAIN) >= 0 ? LEVEL_DOMAIN : LEVEL_HOST;
    int n, all = 0;
    struct leaf *d = list_leaves(t, order, level, &n);
    bool alike = n > 1;

    for (int i = 0; i < n; i++) {
        alike = alike && d[i].members == d[0].members;
        all += d[i].members;
    }
    *count = n;
    if (alike && all == t->endpoints)
        return d;
    free_leaves(d, n);
    *count = 0;
    return NULL;
}

/* Pair each endpoint of domain a with one of domain b. */
static void pair_domains(struct pairs *out, const struct leaf *a, const struct leaf *b, int shift)
{
    for (int k = 0; k < a->members; k++)
        push(out, a->member[k], b->member[(k + shift) % b->members]);
}

static void cables_of_one(struct pairs *out, const struct topo *t, const int *order, int r)
{
    struct pairs meet = {NULL, 0};

    schedule_circle(&meet, order, t->endpoints, r);
    for (int i = 0; i < meet.count; i++) {
        int a = meet.pair[i][0], b = meet.pair[i][1], nic = t->endpoint[a].nic;
        if (nic < 0 || nic != t->endpoint[b].nic)
            push(out, a, b);
    }
    free(meet.pair);
}

int schedule_cables(struct pairs *out, const struct topo *t, const int *order, int r)
{
    int count, circle, rounds = schedule_circle_rounds(t->endpoints);
    struct leaf *d = list_domains(t, order, &count);
    struct pairs meet = {NULL, 0};
    int *v = mem_calloc((size_t)count + 1, sizeof(*v));

    for (int i = 0; i < count; i++)
        v[i] = i;
    if (!count && r >= 0)
        cables_of_one(out, t, order, r);
    if (count) {
        circle = schedule_circle_rounds(count);
        rounds = circle * d[0].members;
        if (r >= 0)
            schedule_circle(&meet, v, count, r % circle);
        for (int i = 0; i < meet.count; i++)
            pair_domains(out, &d[meet.pair[i][0]], &d[meet.pair[i][1]],
                         spread(r / circle, d[0].members));
    }
    free(v);
    free(meet.pair);
    free_leaves(d, count);
    return rounds;
}

static int by_place(const void *a, const void *b, void *topo)
{
    const int x = *(const int *)a, y = *(const int *)b;
    const struct endpoint *e = ((const struct topo *)topo)->endpoint;
    const int *p = e[x].place.at, *q = e[y].place.at;

    return stats_order((double[]){p[LEVEL_RACK], p[LEVEL_DOMAIN], p[LEVEL_HOST], e[x].local, x},
                       (double[]){q[LEVEL_RACK], q[LEVEL_DOMAIN], q[LEVEL_HOST], e[y].local, y}, 5);
}

int *schedule_leaf_order(const struct topo *t)
{
    int *order = numbers(t->endpoints);

    qsort_r(order, (size_t)t->endpoints, sizeof(int), by_place, (void *)t);
    return order;
}

/* --- racks --- */

bool schedule_racks(struct pairs *out, const struct topo *t, const int *order, int r)
{
    const int part = 1 + plan_is_sparse(t), meetings = RACK_MEETINGS / part;
    int count, chunks = INT_MAX;
    struct leaf *rack = list_leaves(t, order, LEVEL_RACK, &count);
    int *all = numbers(count), rounds = schedule_circle_rounds(count);

    for (int i = 0; i < count; i++) {
        int least = rack[i].members / meetings;
        chunks = least < 1 ? 1 : least < chunks ? least : chunks;
    }
    for (int q = 0; count > 2 && q < chunks && r * chunks + q < rounds; q++) {
        struct pairs meet = {NULL, 0};
        schedule_circle(&meet, all, count, r * chunks + q);
        for (int i = 0; i < meet.count; i++)
            for (int k = q; k < meetings * chunks; k += chunks)
                pair_leaf(out, t, &rack[meet.pair[i][0]], k, &rack[meet.pair[i][1]], k);
        free(meet.pair);
    }
    bool more = count > 2 && (long)(r + 1) * chunks < rounds && r + 1 < RACK_ROUNDS / part;
    free_leaves(rack, count);
    free(all);
    return more;
}

void schedule_within_racks(struct pairs *out, const struct topo *t, const int *order, int d)
{
    int count;
    struct leaf *rack = list_leaves(t, order, LEVEL_RACK, &count);

    for (int i = 0; i < count && count > 1; i++)
        for (int k = 0, half = rack[i].members / 2; k < half; k++)
            pair_leaf(out, t, &rack[i], k, &rack[i], half + (k + d) % half);
    free_leaves(rack, count);
}

/* --- class matchings --- */

struct slot {
    int key[LEVEL_COUNT];   /* coordinates that must be equal in the tier; others 0 */
    int position, endpoint; /* position in leaf order */
};

static int by_slot(const void *a, const void *b)
{
    const struct slot *x = a, *y = b;
    int c = memcmp(x->key, y->key, sizeof(x->key)); /* any total order groups equal keys */

    return c ? c : (x->position > y->position) - (x->position < y->position);
}

enum {
    SCAN_MAX = 4096, /* candidates examined for an endpoint before it is left out */
    CIRCLE_TO = 128, /* in smaller groups, random matchings repeat pairs */
    SWAP_MAX = 512,  /* pairs examined to find partners for two endpoints left over */
};

/* A matching of a tier in the making; `slot` are the n endpoints of one bucket, which share the tier's
 * coordinates, and the bucket's pairs begin at `first` of out. */
struct matching {
    struct pairs *out;
    const struct topo *t;
    int tier;
    bool by_nic; /* pairs of two NICs, by topo_nic_tier() */
    char *taken; /* by endpoint */
    const struct slot *slot;
    int n, first;
    int *skip; /* by slot: the slot itself while its endpoint is free, else a later slot */
};

/* True if the pair belongs to the tier and, for by_nic, has two NICs. */
static bool meets(const struct matching *m, int a, int b)
{
    return topo_tier_by(m->t, a, b, m->by_nic) == m->tier &&
           !(m->by_nic && m->t->endpoint[a].nic == m->t->endpoint[b].nic);
}

/* Append the pairs of round `turn` of the circle method that belong to the tier. */
static void match_circle(struct matching *m, int turn)
{
    const int rounds = schedule_circle_rounds(m->n);
    struct pairs p = {NULL, 0};
    int *v = mem_calloc((size_t)m->n, sizeof(*v));

    for (int i = 0; i < m->n; i++)
        v[i] = m->slot[i].endpoint;
    schedule_circle(&p, v, m->n, spread(turn % rounds, rounds));
    for (int i = 0; i < p.count; i++) {
        int a = p.pair[i][0], b = p.pair[i][1];
        if (meets(m, a, b)) {
            m->taken[a] = m->taken[b] = 1;
            push(m->out, a, b);
        }
    }
    free(p.pair);
    free(v);
}

/* First slot from i on whose endpoint is free; n: none.  Every call shortens the path (path halving,
 * Tarjan & van Leeuwen 1984). */
static int first_free(int *skip, int i)
{
    while (skip[i] != i)
        i = skip[i] = skip[skip[i]];
    return i;
}

/* Partner for slot i, among SCAN_MAX slots from `from` on, cyclically; -1: none. */
static int find_partner(const struct matching *m, int i, int from)
{
    const int n = m->n, limit = n < SCAN_MAX ? n : SCAN_MAX;

    for (int k = 0; k < limit; k++) {
        int at = (from + k) % n, j = first_free(m->skip, at);
        k += j - at; /* wrap from the last slot to the first */
        if (j < n && k < limit && j != i && meets(m, m->slot[i].endpoint, m->slot[j].endpoint))
            return j;
        k -= j == n;
    }
    return -1;
}

/* Split a pair to give two endpoints left over a partner each.  Pairs of the bucket are examined from
 * *from on. */
static bool swap_in(struct matching *m, int a, int b, int *from)
{
    const int n = m->out->count - m->first;

    for (int i = 0; i < n && i < SWAP_MAX; i++) {
        int *pair = m->out->pair[m->first + (*from + i) % n], met = pair[1];
        if (!meets(m, a, pair[0]) || !meets(m, b, met))
            continue;
        *from = (*from + i + 1) % n;
        pair[1] = a;
        push(m->out, met, b);
        return true;
    }
    return false;
}

/* Pair the endpoints left over by the scan because their last candidates were taken (often a
 * tenth); unpaired endpoints would miss a block. */
static void match_rest(struct matching *m)
{
    int left = -1, from = 0;

    for (int i = 0; i < m->n; i++) {
        if (m->skip[i] != i)
            continue;
        if (left >= 0 && swap_in(m, left, m->slot[i].endpoint, &from))
            left = -1;
        else
            left = m->slot[i].endpoint;
    }
}

/* Pair the endpoints of one bucket, by a scan in leaf order from `distance` on. */
static void match_bucket(struct matching *m, int distance)
{
    m->skip = mem_calloc((size_t)m->n + 1, sizeof(*m->skip));
    for (int i = 0; i <= m->n; i++)
        m->skip[i] = i < m->n && m->taken[m->slot[i].endpoint] ? i + 1 : i;
    for (int i = 0; i < m->n; i++) {
        int j = m->skip[i] == i ? find_partner(m, i, i + distance) : -1;
        if (j < 0)
            continue;
        push(m->out, m->slot[i].endpoint, m->slot[j].endpoint);
        m->skip[i] = i + 1;
        m->skip[j] = j + 1;
    }
    match_rest(m);
    free(m->skip);
}

/* Endpoints that are visible at the levels of `same`, by these and then in leaf order.  The caller
 * frees. */
static struct slot *list_slots(const struct topo *t, const int *order, unsigned same, int *used)
{
    struct slot *slot = mem_calloc((size_t)t->endpoints, sizeof(*slot));

    *used = 0;
    for (int i = 0; i < t->endpoints; i++) {
        const struct place *p = &t->endpoint[order[i]].place;
        struct slot s = {.position = i, .endpoint = order[i]};
        bool visible = true;
        for (int l = 0; l < LEVEL_COUNT; l++)
            if (same >> l & 1) {
                s.key[l] = p->at[l];
                visible &= p->at[l] >= 0;
            }
        if (visible)
            slot[(*used)++] = s;
    }
    qsort(slot, (size_t)*used, sizeof(*slot), by_slot);
    return slot;
}

void schedule_matching(struct pairs *out, const struct topo *t, const int *order, int tier,
                       bool by_nic, int turn, struct rng *rng)
{
    const unsigned same = t->tier[tier].same;
    int used;
    struct slot *slot = list_slots(t, order, same, &used);
    struct matching m = {.out = out,
                         .t = t,
                         .tier = tier,
                         .by_nic = by_nic,
                         .taken = mem_calloc((size_t)t->endpoints, 1)};

    for (int i = 0, j; i < used; i = j) {
        for (j = i + 1; j < used && !memcmp(slot[i].key, slot[j].key, sizeof(slot[i].key)); j++)
            ;
        m.slot = slot + i;
        m.n = j - i;
        m.first = out->count;
        if (same && m.n <= CIRCLE_TO)
            match_circle(&m, turn);
        if (m.n > 1)
            match_bucket(&m, 1 + (int)rng_below(rng, (unsigned)(m.n - 1)));
    }
    free(slot);
    free(m.taken);
}
