/* SPDX-License-Identifier: BSD-3-Clause */
#include "cost/shape.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { CHUNK = 4096 }; /* numbers on the stack */

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

static int nic_of(const struct topo *t, int id)
{
    const struct endpoint *e = &t->endpoint[id];

    if (e->nic >= 0)
        return e->nic;
    return t->nics + (e->kind == ENDPOINT_GPU ? t->hosts + id : e->place.at[LEVEL_HOST]);
}

/* Keys that are there: how many, and the fewest members with one. */
struct counted {
    int groups, fewest;
};

static void count_one(struct counted *c, int members)
{
    if (!members)
        return;
    c->groups++;
    c->fewest = members < c->fewest ? members : c->fewest;
}

/* Of keys that ascend, as those of nodes in order do; false: they do not. */
static bool count_runs(struct counted *c, const struct topo *t, const int *ids, int n, key_fn *key)
{
    int last = -1, members = 0;

    for (int i = 0; i < n; i++) {
        int k = key(t, ids[i]);
        if (k < 0)
            continue;
        if (k < last)
            return false;
        if (k > last) {
            count_one(c, members);
            members = 0;
        }
        last = k;
        members++;
    }
    count_one(c, members);
    return true;
}

/* Of few members: an open hash. */
static void count_hashed(struct counted *c, const struct topo *t, const int *ids, int n,
                         key_fn *key)
{
    int slot[CHUNK / 2], members[CHUNK / 2], slots = 2;

    while (slots < 2 * n)
        slots *= 2;
    memset(slot, -1, (size_t)slots * sizeof(*slot));
    memset(members, 0, (size_t)slots * sizeof(*members));
    for (int i = 0; i < n; i++) {
        int k = key(t, ids[i]);
        unsigned at = (unsigned)k * 0x9e3779b1u >> 16 & (unsigned)(slots - 1);
        if (k < 0)
            continue;
        while (slot[at] >= 0 && slot[at] != k)
            at = (at + 1) & (unsigned)(slots - 1);
        slot[at] = k;
        members[at]++;
    }
    for (int i = 0; i < slots; i++)
        count_one(c, members[i]);
}

/* Of many: in slices of keys, so that nothing has to be allocated. */
static void count_sliced(struct counted *c, const struct topo *t, const int *ids, int n,
                         key_fn *key)
{
    int members[CHUNK];

    for (long from, next = 0; next < INT_MAX;) {
        from = next;
        next = INT_MAX;
        memset(members, 0, sizeof(members));
        for (int i = 0; i < n; i++) {
            long k = key(t, ids[i]);
            if (k >= from && k < from + CHUNK)
                members[k - from]++;
            else if (k >= from + CHUNK && k < next)
                next = k; /* the next slice begins at the smallest key that is left */
        }
        for (int i = 0; i < CHUNK; i++)
            count_one(c, members[i]);
    }
}

/* Distinct keys of the group; *fewest, unless NULL: members with one key. */
static int distinct(const struct topo *t, const int *ids, int n, key_fn *key, int *fewest)
{
    struct counted c = {0, INT_MAX};

    if (!count_runs(&c, t, ids, n, key)) {
        c = (struct counted){0, INT_MAX};
        if (n <= CHUNK / 4)
            count_hashed(&c, t, ids, n, key);
        else
            count_sliced(&c, t, ids, n, key);
    }
    if (fewest)
        *fewest = c.fewest;
    return c.groups;
}

void shape_of(struct shape *s, const struct topo *t, const int *ids, int n)
{
    s->ranks = n;
    s->domains = distinct(t, ids, n, domain_of, &s->per_domain);
    s->nodes = distinct(t, ids, n, host_of, NULL);
    int nics = distinct(t, ids, n, nic_of, NULL) / s->domains;
    s->nics = nics < 1 ? 1 : nics > s->per_domain ? s->per_domain : nics;
    s->racks = distinct(t, ids, n, rack_of, NULL);
    for (int i = 0; i < n; i++)
        if (rack_of(t, ids[i]) < 0)
            s->racks = 0;
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
