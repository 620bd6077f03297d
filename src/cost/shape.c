/* SPDX-License-Identifier: BSD-3-Clause */
#include "cost/shape.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* Keys counted, and marked, in a pass: 16 KiB of the stack. */
enum { CHUNK = 4096, MARKS = 32 * CHUNK };

typedef int key_fn(const struct topo *t, int id);

static int domain_of(const struct topo *t, int id)
{
    const int *at = t->endpoint[id].place.at;

    return at[LEVEL_DOMAIN] >= 0 ? at[LEVEL_DOMAIN] : t->group[LEVEL_DOMAIN].count + at[LEVEL_HOST];
}

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

/* Of keys that ascend, as those of nodes in order do; -1: they do not. */
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
    struct slice all = range_of(t, ids, n, domain_of);

    *fewest = INT_MAX;
    for (long from = all.from, next; from < all.end; from = next) {
        long span = all.end - from < CHUNK ? all.end - from : CHUNK;
        int least = INT_MAX;
        next = LONG_MAX;
        memset(count, 0, (size_t)span * sizeof(*count));
        for (int i = 0; i < n; i++) {
            long k = domain_of(t, ids[i]) - from;
            if (k >= 0 && k < span)
                count[k]++;
            else if (k >= span && k + from < next)
                next = k + from;
        }
        for (long i = 0; i < span; i++) {
            groups += count[i] > 0;
            least = count[i] && count[i] < least ? count[i] : least;
        }
        for (int i = 0; i < n && least <= *fewest; i++) {
            long k = domain_of(t, ids[i]) - from;
            if (k < 0 || k >= span || count[k] != least)
                continue;
            first = least < *fewest || i < first ? i : first;
            *fewest = least;
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
    snprintf(buf, 48, "%dr %dd x%d", s->ranks, s->domains, s->per_domain);
    return buf;
}
