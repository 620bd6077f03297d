/* SPDX-License-Identifier: BSD-3-Clause */
#include "export/blocks_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/stats.h"
#include "export/pair_cost.h"
#include "topo/groups.h"

/* Distances that differ by less are the same: averages of equal numbers are not quite equal. */
static const double same = 1e-9;

/* Times nearer to each other than this are one distance: medians of a few measured pairs differ by
 * some percent where nothing but noise lies between the blocks. */
static const double alike = 0.05;

/* --- which hosts are one block --- */

struct block_groups {
    int level;
    int *of; /* group of each host */
    char **name;
    int groups;
};

static void block_groups_free(struct block_groups *g)
{
    free(g->of);
    hostlist_free(g->name, g->groups);
}

/* The level as groups of hosts; false when no two hosts share one (HGX: each host is a domain). */
static bool look(struct block_groups *g, const struct topo *t, int level)
{
    g->level = level;
    g->of = groups_of_hosts(t, (enum level)level, &g->name, &g->groups);
    return groups_shared(g->of, t->hosts, g->groups) > 0;
}

static int choose(struct block_groups *g, const struct topo *t, int level, struct err *err)
{
    static const int order[] = {LEVEL_DOMAIN, LEVEL_RACK, LEVEL_LEAF, LEVEL_SPINE};

    for (size_t i = 0; level < 0 && i < sizeof(order) / sizeof(*order); i++) {
        if (look(g, t, order[i]))
            return 0;
        block_groups_free(g);
    }
    if (level < 0)
        return err_set(err, "no NVLink domain, rack, leaf or spine groups hosts: there are no "
                            "blocks");
    look(g, t, level);
    if (g->groups && g->groups <= BLOCKS_MAX)
        return 0;
    int groups = g->groups;
    block_groups_free(g);
    return groups ? err_data(err, "%d groups of hosts at level %s, more than %d", groups,
                             level_name[level], BLOCKS_MAX)
                  : err_set(err, "no %s of any host is known", level_name[level]);
}

static void fill(struct blocks *b, struct block_groups *g, const struct topo *t)
{
    b->level = (enum level)g->level;
    b->source = groups_source(t, b->level);
    b->count = g->groups;
    b->block = mem_calloc((size_t)g->groups + 1, sizeof(*b->block));
    for (int i = 0; i < g->groups; i++)
        b->block[i].name = g->name[i];
    for (int h = 0; h < t->hosts; h++)
        if (g->of[h] >= 0) {
            struct block *k = &b->block[g->of[h]];
            MEM_PUSH(k->host, k->hosts) = h;
        }
    b->of = g->of;
    free(g->name);
}

/* --- what lies between them --- */

/* Prices, and endpoints by host. */
struct ask {
    struct pair_cost q;
    struct lists e;
};

/* Two hosts send to each other at once, from their k-th endpoints (with rails: on one rail). */
static double host_time(const struct ask *ask, int a, int b, int k)
{
    const struct lists *e = &ask->e;
    int na = e->start[a + 1] - e->start[a], nb = e->start[b + 1] - e->start[b];
    int n = na < nb ? na : nb;

    if (!n || !ask->q.m->tiers)
        return NAN;
    int x = e->at[e->start[a] + k % n], y = e->at[e->start[b] + k % n];
    double out = pair_cost_of(&ask->q, x, y), back = pair_cost_of(&ask->q, y, x);
    return isnan(out) || isnan(back) ? NAN : fmax(out, back);
}

/* Median of the hosts that answer; for ever when none of them does. */
static double usual(double *sec, int n)
{
    int finite = 0, dead = 0;

    for (int i = 0; i < n; i++)
        if (isfinite(sec[i]))
            sec[finite++] = sec[i];
        else
            dead += isinf(sec[i]) != 0;
    return finite ? stats_median(sec, finite) : dead ? INFINITY : NAN;
}

/* All pairs of hosts where they are few, else pairs that are spread over both blocks. */
static double between(const struct ask *ask, const struct block *a, const struct block *b)
{
    long long all = (long long)a->hosts * b->hosts;
    double sec[BLOCKS_PAIRS];
    int n = 0;

    for (int p = 0; p < BLOCKS_PAIRS && p < all; p++) {
        int i = all <= BLOCKS_PAIRS ? p / b->hosts : p * a->hosts / BLOCKS_PAIRS;
        int j = all <= BLOCKS_PAIRS ? p % b->hosts : p * 5 % BLOCKS_PAIRS * b->hosts / BLOCKS_PAIRS;
        if (a->host[i] != b->host[j])
            sec[n++] = host_time(ask, a->host[i], b->host[j], p);
    }
    return usual(sec, n);
}

/* --- blocks of one kind ---
 *
 * The time between two blocks depends on which groups their endpoints share, and on exceptions.  Two
 * blocks without exceptions are of one kind if their hosts and endpoints lie alike, in order: in the
 * same groups that several blocks share, and otherwise in groups of their own.  Times between kinds
 * are the times between any two of their blocks, so that thousands of racks cost a few times. */

enum { OWN_GROUP = -2 }; /* a group that no other block shares */

struct kinds {
    const struct topo *t;
    const struct blocks *b;
    const struct lists *e;     /* endpoints by host */
    bool *shared[LEVEL_COUNT]; /* by group: several blocks have it; NULL: no tier asks this level */
    int *of, *first, count;    /* kind of each block; a block of each kind */
};

/* Group of an endpoint as far as other blocks may share it. */
static int outer_group(const struct kinds *k, int endpoint, int level)
{
    int at = topo_at(k->t, endpoint, (enum level)level);

    return at >= 0 && !k->shared[level][at] ? OWN_GROUP : at;
}

static void find_shared(struct kinds *k, int level)
{
    int groups = level == LEVEL_HOST ? k->t->hosts : k->t->group[level].count;
    int *last = mem_ints(groups + 1, -1);

    k->shared[level] = mem_calloc((size_t)groups + 1, sizeof(bool));
    for (int i = 0; i < k->t->endpoints; i++) {
        int at = topo_at(k->t, i, (enum level)level),
            block = k->b->of[topo_at(k->t, i, LEVEL_HOST)];
        if (at < 0 || block < 0)
            continue;
        k->shared[level][at] |= last[at] >= 0 && last[at] != block;
        last[at] = block;
    }
    free(last);
}

static uint64_t hash_block(const struct kinds *k, const struct block *b)
{
    uint64_t hash = (uint64_t)b->hosts;

    for (int h = 0; h < b->hosts; h++)
        for (int i = k->e->start[b->host[h]]; i < k->e->start[b->host[h] + 1]; i++)
            for (int l = 0; l < LEVEL_COUNT; l++)
                if (k->shared[l])
                    hash = map_mix(hash, (uint64_t)outer_group(k, k->e->at[i], l));
    return hash;
}

static bool hosts_alike(const struct kinds *k, int x, int y)
{
    const int *start = k->e->start;

    if (start[x + 1] - start[x] != start[y + 1] - start[y])
        return false;
    for (int i = 0; i < start[x + 1] - start[x]; i++)
        for (int l = 0; l < LEVEL_COUNT; l++)
            if (k->shared[l] && outer_group(k, k->e->at[start[x] + i], l) !=
                                    outer_group(k, k->e->at[start[y] + i], l))
                return false;
    return true;
}

struct wanted_kind {
    const struct kinds *k;
    int block;
};

static bool same_kind(const void *wanted, int kind)
{
    const struct wanted_kind *w = wanted;
    const struct block *x = &w->k->b->block[w->block], *y = &w->k->b->block[w->k->first[kind]];
    bool matches = x->hosts == y->hosts;

    for (int h = 0; matches && h < x->hosts; h++)
        matches = hosts_alike(w->k, x->host[h], y->host[h]);
    return matches;
}

static bool plain_block(const struct ask *ask, const struct block *b)
{
    for (int h = 0; h < b->hosts; h++)
        for (int i = ask->e.start[b->host[h]]; i < ask->e.start[b->host[h] + 1]; i++)
            if (!pair_cost_plain(&ask->q, ask->e.at[i]))
                return false;
    return true;
}

/* A block with an exception is a kind of its own. */
static void find_kinds(struct kinds *k, const struct ask *ask)
{
    struct map by_hash = {0};
    unsigned asked = 0;

    for (int i = 0; i < k->t->tiers; i++)
        asked |= k->t->tier[i].same;
    for (int l = 0; l < LEVEL_COUNT; l++)
        if (asked >> l & 1)
            find_shared(k, l);
    for (int i = 0; i < k->b->count; i++) {
        struct wanted_kind w = {k, i};
        int *kind = plain_block(ask, &k->b->block[i])
                        ? map_at(&by_hash, hash_block(k, &k->b->block[i]), same_kind, &w)
                        : NULL;
        k->of[i] = kind && *kind != MAP_NONE ? *kind : k->count;
        if (kind)
            *kind = k->of[i];
        if (k->of[i] == k->count)
            k->first[k->count++] = i;
    }
    map_free(&by_hash);
    for (int l = 0; l < LEVEL_COUNT; l++)
        free(k->shared[l]);
}

/* Fill b->sec.  The order of two blocks matters, because it says which hosts of each are asked. */
static void fill_times(struct blocks *b, const struct ask *ask, const struct kinds *k)
{
    const size_t n = (size_t)b->count, kinds = (size_t)k->count;
    double *known = mem_calloc(kinds * kinds + 1, sizeof(*known));
    bool *asked = mem_calloc(kinds * kinds + 1, sizeof(*asked));

    for (size_t i = 0; i < n; i++) {
        b->sec[i * n + i] = between(ask, &b->block[i], &b->block[i]);
        for (size_t x = i + 1; x < n; x++) {
            size_t at = (size_t)k->of[i] * kinds + (size_t)k->of[x];
            if (!asked[at])
                known[at] = between(ask, &b->block[i], &b->block[x]);
            asked[at] = true;
            b->sec[i * n + x] = known[at];
        }
    }
    for (size_t i = 0; i < n; i++)
        for (size_t x = 0; x < i; x++)
            b->sec[i * n + x] = b->sec[x * n + i];
    free(known);
    free(asked);
}

static void measure(struct blocks *b, const struct matrix *m, double bytes)
{
    const struct topo *t = &m->topo;
    int *host = mem_calloc((size_t)t->endpoints + 1, sizeof(*host));
    struct ask ask;
    struct kinds k = {.t = t, .b = b, .e = &ask.e};

    for (int i = 0; i < t->endpoints; i++)
        host[i] = topo_at(t, i, LEVEL_HOST);
    lists_make(&ask.e, host, NULL, t->endpoints, t->hosts);
    pair_cost_init(&ask.q, m, QUANTITY_TIME, bytes);
    k.of = mem_ints(b->count + 1, 0);
    k.first = mem_ints(b->count + 1, 0);
    find_kinds(&k, &ask);
    b->sec = mem_calloc((size_t)b->count * (size_t)b->count + 1, sizeof(*b->sec));
    fill_times(b, &ask, &k);
    free(k.of);
    free(k.first);
    pair_cost_free(&ask.q);
    lists_free(&ask.e);
    free(host);
}

/* --- near ones become neighbours --- */

struct cluster {
    int *member; /* blocks in order; NULL once it was merged into another */
    int members;
    int near; /* nearest cluster with a higher index, -1 */
};

struct tree {
    struct cluster *c;
    double *sec; /* [n][n] average over pairs of members; NAN unknown */
    const double *leaf;
    int n;
};

static double *cell(const struct tree *t, int i, int k)
{
    return &t->sec[(size_t)i * (size_t)t->n + (size_t)k];
}

/* Unknown is farther than everything. */
static bool nearer(double a, double b)
{
    return !isnan(a) && (isnan(b) || a < b * (1 - same));
}

static void find_near(struct tree *t, int i)
{
    struct cluster *c = &t->c[i];

    c->near = -1;
    for (int k = i + 1; k < t->n; k++)
        if (t->c[k].member && (c->near < 0 || nearer(*cell(t, i, k), *cell(t, i, c->near))))
            c->near = k;
}

static void turn(struct cluster *c)
{
    for (int i = 0, k = c->members - 1; i < k; i++, k--) {
        int x = c->member[i];
        c->member[i] = c->member[k];
        c->member[k] = x;
    }
}

/* a and then b, either of them turned round where that brings nearer ends together. */
static void join(struct tree *t, struct cluster *a, struct cluster *b)
{
    int best = 0;
    double sec = NAN;

    for (int way = 0; way < 4; way++) {
        int x = a->member[way & 2 ? 0 : a->members - 1],
            y = b->member[way & 1 ? b->members - 1 : 0];
        double s = t->leaf[(size_t)x * (size_t)t->n + (size_t)y];
        if (way == 0 || nearer(s, sec)) {
            best = way;
            sec = s;
        }
    }
    if (best & 2)
        turn(a);
    if (best & 1)
        turn(b);
    for (int i = 0; i < b->members; i++)
        MEM_PUSH(a->member, a->members) = b->member[i];
}

/* Merge k into i < k; distances to the others are averages by the number of members. */
static void merge(struct tree *t, int i, int k)
{
    double wi = t->c[i].members, wk = t->c[k].members;

    for (int o = 0; o < t->n; o++) {
        double a = *cell(t, i, o), b = *cell(t, k, o);
        if (o == i || o == k || !t->c[o].member)
            continue;
        *cell(t, i, o) = *cell(t, o, i) = isnan(a)   ? b
                                          : isnan(b) ? a
                                                     : (wi * a + wk * b) / (wi + wk);
    }
    join(t, &t->c[i], &t->c[k]);
    free(t->c[k].member);
    t->c[k] = (struct cluster){NULL, 0, -1};
    for (int o = 0; o < k; o++) { /* only these look upwards at i or k */
        const struct cluster *c = &t->c[o];
        if (c->member && (o <= i || c->near == i || c->near == k))
            find_near(t, o);
    }
}

/* The cluster whose nearest one is nearest; the smaller index on ties. */
static int nearest(const struct tree *t)
{
    int best = -1;

    for (int i = 0; i < t->n; i++)
        if (t->c[i].near >= 0 &&
            (best < 0 || nearer(*cell(t, i, t->c[i].near), *cell(t, best, t->c[best].near))))
            best = i;
    return best;
}

/* Times between blocks without their noise: sorted, each that is hardly longer than the one before
 * is as long as it.  The caller frees. */
static double *distances(const struct blocks *b)
{
    size_t n = (size_t)b->count, count = 0;
    double *sec = mem_calloc(n * n + 1, sizeof(*sec)), *step = mem_calloc(n * n + 1, sizeof(*step));

    for (size_t i = 0; i < n; i++)
        for (size_t k = i + 1; k < n; k++)
            if (isfinite(b->sec[i * n + k]) && (!count || step[count - 1] != b->sec[i * n + k]))
                step[count++] = b->sec[i * n + k]; /* most neighbours are equal */
    stats_sort(step, (int)count);
    size_t steps = 0; /* step[0 .. steps-1]: where each distance begins */
    for (size_t i = 0; i < count; i++)
        if (!i || step[i] > step[i - 1] * (1 + alike))
            sec[steps++] = step[i];
    memcpy(step, sec, steps * sizeof(*step));
    for (size_t i = 0; i < n * n; i++) {
        size_t lo = 0, hi = steps; /* the last beginning that is not longer */
        while (hi - lo > 1)
            *(step[(lo + hi) / 2] <= b->sec[i] ? &lo : &hi) = (lo + hi) / 2;
        sec[i] = isfinite(b->sec[i]) && steps ? step[lo] : b->sec[i];
    }
    free(step);
    return sec;
}

/* The order of blocks: order[new] = old; the caller frees. */
static int *chain(const struct blocks *b)
{
    size_t n = (size_t)b->count;
    struct tree t = {.n = b->count};

    t.c = mem_calloc(n + 1, sizeof(*t.c));
    t.sec = distances(b);
    double *leaf = mem_calloc(n * n + 1, sizeof(*leaf));
    memcpy(leaf, t.sec, n * n * sizeof(*leaf));
    t.leaf = leaf;
    for (int i = 0; i < b->count; i++)
        MEM_PUSH(t.c[i].member, t.c[i].members) = i;
    for (int i = 0; i < b->count; i++)
        find_near(&t, i);
    for (int i; (i = nearest(&t)) >= 0;)
        merge(&t, i, t.c[i].near);
    int *order = t.c[0].member;
    free(t.c);
    free(t.sec);
    free(leaf);
    return order;
}

/* True if all blocks are equally far from each other: chain() would leave them in order, and its tables take more
 * time and memory than all else for a thousand blocks. */
static bool one_distance(const struct blocks *b)
{
    double least = INFINITY, most = 0;

    for (int i = 0; i < b->count; i++)
        for (int k = i + 1; k < b->count; k++) {
            double sec = b->sec[(size_t)i * (size_t)b->count + (size_t)k];
            if (!isfinite(sec))
                return false;
            least = sec < least ? sec : least;
            most = sec > most ? sec : most;
        }
    return most <= least * (1 + alike);
}

static void arrange(struct blocks *b)
{
    size_t n = (size_t)b->count;

    if (one_distance(b))
        return;
    int *order = chain(b);
    struct block *block = mem_calloc(n + 1, sizeof(*block));
    double *sec = mem_calloc(n * n + 1, sizeof(*sec));

    for (int i = 0; i < b->count; i++) {
        block[i] = b->block[order[i]];
        for (int k = 0; k < block[i].hosts; k++)
            b->of[block[i].host[k]] = i;
        for (int k = 0; k < b->count; k++)
            sec[(size_t)i * n + (size_t)k] = b->sec[(size_t)order[i] * n + (size_t)order[k]];
    }
    free(order);
    free(b->block);
    free(b->sec);
    b->block = block;
    b->sec = sec;
}

int blocks_make(struct blocks *b, const struct matrix *m, int level, double bytes, struct err *err)
{
    struct block_groups g;

    memset(b, 0, sizeof(*b));
    if (choose(&g, &m->topo, level, err) < 0)
        return -1;
    fill(b, &g, &m->topo);
    measure(b, m, bytes);
    arrange(b);
    return 0;
}

void blocks_free(struct blocks *b)
{
    for (int i = 0; i < b->count; i++) {
        free(b->block[i].name);
        free(b->block[i].host);
    }
    free(b->block);
    free(b->of);
    free(b->sec);
    memset(b, 0, sizeof(*b));
}
