/* SPDX-License-Identifier: BSD-3-Clause */
#include "cost/shape.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { CHUNK = 4096 }; /* keys counted per pass, on the stack */

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

/* Distinct keys of the group and the fewest members with one key; keys are counted in slices so
 * that nothing has to be allocated, and only between the smallest and the largest key. */
static int distinct(const struct topo *t, const int *ids, int n, key_fn *key, int *fewest)
{
    int count[CHUNK], groups = 0, least = INT_MAX;
    bool few = n < CHUNK / 4; /* many fill a slice anyway */
    long from = 0, next = few ? INT_MAX : 0, last = few ? 0 : INT_MAX - 1;

    for (int i = 0; few && i < n; i++) {
        long k = key(t, ids[i]);
        next = k >= 0 && k < next ? k : next;
        last = k > last ? k : last;
    }
    while (next < INT_MAX) {
        from = next;
        next = INT_MAX;
        int span = last - from < CHUNK ? (int)(last - from) + 1 : CHUNK;
        memset(count, 0, (size_t)span * sizeof(*count));
        for (int i = 0; i < n; i++) {
            long k = key(t, ids[i]);
            if (k >= from && k < from + span)
                count[k - from]++;
            else if (k >= from + span && k < next)
                next = k; /* the next slice begins at the smallest key that is left */
        }
        for (int i = 0; i < span; i++)
            if (count[i]) {
                groups++;
                least = count[i] < least ? count[i] : least;
            }
    }
    if (fewest)
        *fewest = least;
    return groups;
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
