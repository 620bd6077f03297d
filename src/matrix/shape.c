/* SPDX-License-Identifier: BSD-3-Clause */
#include "matrix/shape.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"

/* Keys counted, and marked, in a pass: 16 KiB of the stack. */
enum { CHUNK = 4096, MARKS = 32 * CHUNK };

typedef int key_fn(const struct topo *t, int id);

static int host_of(const struct topo *t, int id)
{
    return topo_at(t, id, LEVEL_HOST);
}

static int rack_of(const struct topo *t, int id)
{
    return topo_at(t, id, LEVEL_RACK);
}

struct slice {
    long from, end;
};

/* The smallest and the largest key of a small group; of a large one, that fills slices anyway, all
 * there may be. */
static struct slice range_of(const struct topo *t, const int *ids, int n, key_fn *key)
{
    struct slice s = {LONG_MAX, 0};

    if (n >= CHUNK / 4)
        return (struct slice){0, INT_MAX};
    for (int i = 0; i < n; i++) {
        long k = key(t, ids[i]);
        s.from = k >= 0 && k < s.from ? k : s.from;
        s.end = k >= s.end ? k + 1 : s.end;
    }
    return s;
}

/* Number of different keys that ascend, as the keys of nodes in order do; -1: they do not. */
static int runs(const struct topo *t, const int *ids, int n, key_fn *key)
{
    int last = -1, groups = 0;

    for (int i = 0; i < n; i++) {
        int k = key(t, ids[i]);
        if (k < 0)
            continue;
        if (k < last)
            return -1;
        groups += k > last;
        last = k;
    }
    return groups;
}

/* Distinct keys of the group; they are marked in slices, so that nothing has to be allocated. */
static int distinct(const struct topo *t, const int *ids, int n, key_fn *key)
{
    uint64_t mark[MARKS / 64];
    int groups = runs(t, ids, n, key);

    if (groups >= 0)
        return groups;
    struct slice all = range_of(t, ids, n, key);
    groups = 0;
    for (long from = all.from, next; from < all.end; from = next) {
        long span = all.end - from < MARKS ? all.end - from : MARKS;
        next = LONG_MAX;
        memset(mark, 0, (size_t)(span + 63) / 64 * sizeof(*mark));
        for (int i = 0; i < n; i++) {
            long k = key(t, ids[i]) - from;
            if (k >= 0 && k < span)
                mark[k / 64] |= 1ULL << k % 64;
            else if (k >= span && k + from < next)
                next = k + from; /* the next slice begins at the smallest key that is left */
        }
        for (long i = 0; i < (span + 63) / 64; i++)
            groups += __builtin_popcountll(mark[i]);
    }
    return groups;
}

/* The same of domains; *fewest: members of that which has the fewest, *lone: the first member of
 * such a domain. */
static int domains_of(const struct topo *t, const int *ids, int n, int *fewest, int *lone)
{
    int count[CHUNK], groups = 0, first = 0;
    struct slice all = range_of(t, ids, n, topo_domain);

    *fewest = INT_MAX;
    for (long from = all.from, next; from < all.end; from = next) {
        long span = all.end - from < CHUNK ? all.end - from : CHUNK;
        unsigned least = UINT_MAX; /* members but one; of a domain of nobody as many as can be */
        next = LONG_MAX;
        memset(count, 0, (size_t)span * sizeof(*count));
        for (int i = 0; i < n; i++) {
            long k = topo_domain(t, ids[i]) - from;
            if (k >= 0 && k < span)
                count[k]++;
            else if (k >= span && k + from < next)
                next = k + from;
        }
        for (long i = 0; i < span; i++) {
            unsigned others = (unsigned)count[i] - 1;
            groups += count[i] > 0;
            least = others < least ? others : least;
        }
        int members = least < INT_MAX ? (int)least + 1 : INT_MAX;
        for (int i = 0; i < n && members <= *fewest; i++) {
            long k = topo_domain(t, ids[i]) - from;
            if (k < 0 || k >= span || count[k] != members)
                continue;
            first = members < *fewest || i < first ? i : first;
            *fewest = members;
            break;
        }
    }
    *lone = first;
    return groups;
}

int shape_of(struct shape *s, const struct topo *t, const int *ids, int n)
{
    int lone;

    s->ranks = n;
    s->domains = domains_of(t, ids, n, &s->per_domain, &lone);
    s->nodes = distinct(t, ids, n, host_of);
    int nics = distinct(t, ids, n, shape_nic) / s->domains;
    s->nics = nics < 1 ? 1 : nics > s->per_domain ? s->per_domain : nics;
    s->racks = distinct(t, ids, n, rack_of);
    for (int i = 0; i < n; i++)
        if (rack_of(t, ids[i]) < 0)
            s->racks = 0;
    return lone;
}

bool shape_equal(const struct shape *a, const struct shape *b)
{
    if (a->ranks != b->ranks || a->domains != b->domains || a->per_domain != b->per_domain)
        return false;
    return a->domains == 1 ||
           (a->nics == b->nics && (!a->racks || !b->racks || a->racks == b->racks));
}

char *shape_text(char buf[48], const struct shape *s)
{
    int n = snprintf(buf, 48, "%d ranks, %d domain%s", s->ranks, s->domains, units_s(s->domains));

    if (s->domains > 1)
        snprintf(buf + n, 48 - (size_t)n, " of %d", s->per_domain);
    return buf;
}

/* --- stairs --- */

/* Blocks from where a key is met that is not the one of `deal` endpoints before. */
static void climb(struct stair *s, const int *key, int n)
{
    for (int i = 0, from = -s->deal; i < n; i++) {
        if (i - from >= s->deal && (!i || key[i] != key[i - s->deal]))
            MEM_PUSH(s->start, s->blocks) = from = i;
        s->block[i] = s->blocks - 1;
    }
    int ends = s->blocks;
    MEM_PUSH(s->start, ends) = n;
    s->alike = mem_calloc((size_t)s->blocks + 1, sizeof(*s->alike));
    s->least = INT_MAX;
    for (int b = s->blocks, size, after = 0; b-- > 0; after = size) {
        size = s->start[b + 1] - s->start[b];
        s->alike[b] = size == after ? s->alike[b + 1] : b + 1;
        s->least = size < s->least ? size : s->least;
        s->most = size > s->most ? size : s->most;
    }
}

/* True if each block's turn is a group that is met nowhere else. */
static bool apart(struct stair *s, const int *key, int n, int keys)
{
    s->turn = mem_ints(keys, -1);
    for (int b = 0; b < s->blocks; b++)
        if (s->start[b] % s->deal)
            return false;
    for (int i = 0, k = 0; i < n; i++, k = k + 1 < s->deal ? k + 1 : 0) {
        int *of = &s->turn[key[i]], turn = s->block[i] * s->deal + k;
        if (*of >= 0 && *of != turn)
            return false;
        *of = turn;
    }
    return true;
}

static void stair_free(struct stair *s)
{
    free(s->block);
    free(s->start);
    free(s->alike);
    free(s->turn);
    *s = (struct stair){.deal = 1};
}

static bool stair_of(struct stair *s, const int *key, int n, int keys, int deal)
{
    *s = (struct stair){.deal = deal};
    s->block = mem_calloc((size_t)n, sizeof(*s->block));
    climb(s, key, n);
    if (apart(s, key, n, keys))
        return true;
    stair_free(s);
    return false;
}

static int *columns_of(const struct topo *t)
{
    size_t n = (size_t)t->endpoints;
    int *out = mem_calloc(STAIRS * n + 1, sizeof(*out));

    for (size_t i = 0; i < n; i++) {
        for (size_t l = 0; l < LEVEL_COUNT; l++)
            out[l * n + i] = t->endpoint[i].place.at[l];
        out[STAIR_NIC * n + i] = shape_nic(t, (int)i);
    }
    return out;
}

/* false: some endpoints' groups are known and others not, or it is no stair. */
static bool stair_make(struct stair *s, const struct topo *t, int level, const int *key)
{
    bool nic = level == STAIR_NIC;
    int n = t->endpoints, keys = nic ? t->nics + t->hosts + n : t->group[level].count;
    int known = 0, again = 1;

    *s = (struct stair){.deal = 1};
    for (int i = 0; i < n; i++)
        known += key[i] >= 0;
    if (known < n)
        return known == 0;
    if (stair_of(s, key, n, keys, 1))
        return true;
    while (again < n && key[again] != key[0])
        again++;
    return again < n && stair_of(s, key, n, keys, again);
}

/* True if the blocks of each level lie in those of the next; finest first. */
static bool nest(struct stairs *s)
{
    for (int i = 1; i < s->links; i++)
        for (int k = i; k > 0 && s->at[s->link[k]].blocks > s->at[s->link[k - 1]].blocks; k--) {
            int finer = s->link[k];
            s->link[k] = s->link[k - 1];
            s->link[k - 1] = finer;
        }
    for (int i = 0; i < s->links; i++)
        s->depth[s->link[i]] = i;
    for (int i = 1; i < s->links; i++) {
        const struct stair *in = &s->at[s->link[i - 1]], *out = &s->at[s->link[i]];
        for (int b = 0; b < out->blocks; b++)
            if (in->start[in->block[out->start[b]]] != out->start[b])
                return false;
    }
    return true;
}

void stairs_make(struct stairs *s, const struct topo *t)
{
    unsigned asked = 1u << LEVEL_HOST | 1u << LEVEL_DOMAIN | 1u << LEVEL_LEAF | 1u << LEVEL_RACK;

    *s = (struct stairs){.deal = 1, .regular = t->endpoints > 0, .endpoints = t->endpoints};
    s->column = columns_of(t);
    for (int i = 0; i < t->tiers; i++)
        asked |= t->tier[i].same;
    for (int l = 0; l < STAIRS; l++) {
        if (l < LEVEL_COUNT)
            s->depth[l] = -1;
        if (!s->regular || (l < LEVEL_COUNT && !(asked >> l & 1)))
            continue;
        s->regular = stair_make(&s->at[l], t, l, stairs_column(s, l));
        int deal = s->at[l].deal;
        s->regular &= deal == 1 || s->deal == 1 || s->deal == deal;
        s->deal = deal > 1 ? deal : s->deal;
        if (l < LEVEL_COUNT && s->at[l].block)
            s->link[s->links++] = l;
    }
    s->domain = s->at[LEVEL_DOMAIN].block ? LEVEL_DOMAIN : LEVEL_HOST;
    static const int whole[] = {LEVEL_HOST, LEVEL_DOMAIN, LEVEL_RACK, STAIR_NIC};
    for (size_t i = 0; i < sizeof(whole) / sizeof(*whole); i++)
        s->regular &= s->at[whole[i]].deal <= 1;
    s->regular = s->regular && nest(s);
}

void stairs_free(struct stairs *s)
{
    for (int l = 0; l < STAIRS; l++)
        stair_free(&s->at[l]);
    free(s->column);
    s->column = NULL;
}

/* --- ranges on stairs --- */

/* Number of a range's members before the id.  Most ranges have every endpoint: no division. */
static int before(const struct railgauge_range *r, int id)
{
    if (id <= r->first)
        return 0;
    int far = id - 1 - r->first, n = (r->step == 1 ? far : far / r->step) + 1;
    return n < r->count ? n : r->count;
}

int ranges_within(const struct ranges *g, int from, int end, bool dealt, int like)
{
    int members = 0, deal = dealt ? g->stairs->deal : 1;

    for (int i = 0; i < g->count; i++) {
        const struct railgauge_range *r = &g->at[i];
        int lo = before(r, from), hi = before(r, end), k, turn;
        if (deal == 1) {
            members += hi > lo ? hi - lo : 0;
            continue;
        }
        for (k = lo; k < hi && k < lo + deal && (r->first + k * r->step - like) % deal; k++)
            ;
        if (k >= hi || k >= lo + deal)
            continue;
        for (turn = 1; turn < deal && turn * r->step % deal; turn++)
            ;
        members += (hi - 1 - k) / turn + 1;
    }
    return members;
}

/* Blocks of a level that the ranges touch; -1: only members tell. */
static int touched(const struct ranges *g, const struct stair *s)
{
    int blocks = s->block != NULL;

    for (int i = 0; i < g->count && s->block; i++) {
        int climbs = range_climbs(s, &g->at[i]);
        if (climbs < 0)
            return -1;
        blocks += climbs;
        blocks += i && s->block[range_last(&g->at[i - 1])] != s->block[g->at[i].first];
    }
    return blocks;
}

/* The domain at hand, and the first that has the fewest members. */
struct fewest {
    int block, members, first; /* block -1: none yet */
    int least, lone;
};

static void close_domain(struct fewest *f)
{
    if (f->block < 0 || f->members >= f->least)
        return;
    f->least = f->members;
    f->lone = f->first;
}

static void add_members(struct fewest *f, int block, int members, int first)
{
    if (block != f->block) {
        close_domain(f);
        *f = (struct fewest){block, 0, first, f->least, f->lone};
    }
    f->members += members;
}

/* Domains of one size, in which as many members lie, are one look. */
static void count_domains(struct fewest *f, const struct stair *s, const struct railgauge_range *r)
{
    int from = s->block[r->first], end = s->block[range_last(r)];

    if (r->step >= s->most) { /* one in each */
        add_members(f, from, 1, r->first);
        if (r->count > 1)
            add_members(f, s->block[r->first + r->step], 1, r->first + r->step);
        if (r->count > 2)
            add_members(f, end, 1, range_last(r));
        return;
    }
    for (int b = from, next; b <= end; b = next) {
        int lo = before(r, s->start[b]), hi = before(r, s->start[b + 1]);
        bool even = b > from && (s->start[b + 1] - s->start[b]) % r->step == 0;
        add_members(f, b, hi - lo, r->first + lo * r->step);
        next = even && s->alike[b] < end ? s->alike[b] : even && b < end - 1 ? end : b + 1;
    }
}

int shape_of_ranges(struct shape *s, const struct ranges *g)
{
    const struct stair *at = g->stairs->at, *domain = &at[g->stairs->domain];
    struct fewest f = {.block = -1, .least = INT_MAX};
    int nics = touched(g, &at[STAIR_NIC]);

    s->ranks = g->ranks;
    s->domains = touched(g, domain);
    s->nodes = touched(g, &at[LEVEL_HOST]);
    s->racks = touched(g, &at[LEVEL_RACK]);
    if (s->domains < 0 || s->nodes < 0 || s->racks < 0 || nics < 0)
        return -1;
    for (int i = 0; i < g->count; i++)
        count_domains(&f, domain, &g->at[i]);
    close_domain(&f);
    s->per_domain = f.least;
    nics /= s->domains;
    s->nics = nics < 1 ? 1 : nics > s->per_domain ? s->per_domain : nics;
    return f.lone;
}

/* --- a group of a shape --- */

static int group_domain(const struct topo *t, int id)
{
    const int *at = t->endpoint[id].place.at;

    return at[LEVEL_DOMAIN] >= 0 ? at[LEVEL_DOMAIN] : t->group[LEVEL_DOMAIN].count + at[LEVEL_HOST];
}

/* The first per_domain members of every `stride`-th domain that has as many. */
static int *group_pick(const struct topo *t, const struct shape *s, int stride)
{
    int domains = t->group[LEVEL_DOMAIN].count + t->hosts, taken = 0, eligible = 0;
    int *members = mem_calloc((size_t)domains, sizeof(int)),
        *use = mem_calloc((size_t)domains, sizeof(int));
    int *ids = mem_calloc((size_t)s->ranks, sizeof(int));

    for (int id = 0; id < t->endpoints; id++)
        members[group_domain(t, id)]++;
    for (int d = 0; d < domains; d++)
        if (members[d] >= s->per_domain)
            use[d] = eligible++ % stride == 0;
    memset(members, 0, (size_t)domains * sizeof(int));
    for (int id = 0; id < t->endpoints && taken < s->ranks; id++) {
        int d = group_domain(t, id);
        if (use[d] && members[d]++ < s->per_domain)
            ids[taken++] = id;
    }
    free(members);
    free(use);
    if (taken == s->ranks)
        return ids;
    free(ids);
    return NULL;
}

int *shape_group(const struct topo *t, const struct shape *s)
{
    struct shape got;

    if (s->ranks < 2 || s->domains < 1 || s->ranks != s->domains * s->per_domain ||
        s->ranks > t->endpoints)
        return NULL;
    /* Neighbouring domains, then ever wider apart: other racks. */
    for (int stride = 1; stride <= t->hosts; stride *= 2) {
        int *ids = group_pick(t, s, stride);
        if (!ids)
            continue;
        shape_of(&got, t, ids, s->ranks);
        if (shape_equal(&got, s))
            return ids;
        free(ids);
    }
    return NULL;
}
