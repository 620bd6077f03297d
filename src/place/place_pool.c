/* SPDX-License-Identifier: BSD-3-Clause */
/* place_pool.c - the free seats, by host and group. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "place/place_parts.h"

int pool_host_seats(const struct pool *p, int host)
{
    return p->start[host + 1] - p->start[host];
}

int pool_group(const struct pool *p, int host, int level)
{
    if (p->start[host] == p->start[host + 1])
        return -1;
    return p->matrix->topo.endpoint[p->endpoint[p->start[host]]].place.at[level];
}

static bool is_pair_of(const struct exception *x, int rack)
{
    return x->part == PART_RACK_PAIR && (x->a == rack || x->b == rack);
}

/* Racks with slow uplinks, and those without which no slow pair of racks is left: again and again
 * the one in most of them. */
static bool *racks_to_avoid(const struct matrix *m)
{
    int racks = m->topo.group[LEVEL_RACK].count, most = 1;
    bool *avoid = mem_calloc((size_t)racks + 1, sizeof(bool));

    for (int i = 0; i < m->exceptions; i++)
        if (m->exception[i].part == PART_RACK_UPLINKS)
            avoid[m->exception[i].a] = true;
    while (most > 0) {
        int worst = 0;
        most = 0;
        for (int r = 0; r < racks; r++) {
            int pairs = 0;
            for (int i = 0; i < m->exceptions && !avoid[r]; i++) {
                const struct exception *x = &m->exception[i];
                pairs += is_pair_of(x, r) && !avoid[x->a] && !avoid[x->b];
            }
            worst = pairs >= most ? r : worst;
            most = pairs > most ? pairs : most;
        }
        if (most > 0)
            avoid[worst] = true;
    }
    return avoid;
}

/* Hosts that some exception makes slower than others: its own, its endpoints', a leaf's, a pair's
 * two. */
static void mark_slow(struct pool *p)
{
    const struct matrix *m = p->matrix;
    bool *slow = mem_calloc((size_t)m->topo.hosts + 1, sizeof(bool));

    for (int i = 0; i < m->exceptions; i++) {
        const struct exception *x = &m->exception[i];
        bool ends_told = x->part == PART_ENDPOINT || x->part == PART_PAIR;
        int ends[2] = {x->a, x->b};
        for (int e = 0; e < m->topo.endpoints; e++)
            if ((x->part == PART_LEAF || x->part == PART_RACK) && matrix_touches(m, x, e))
                slow[m->topo.endpoint[e].place.at[LEVEL_HOST]] = true;
        for (int e = 0; e < 2; e++)
            if (x->part == PART_HOST && ends[e] >= 0)
                slow[ends[e]] = true;
            else if (ends_told && ends[e] >= 0)
                slow[m->topo.endpoint[ends[e]].place.at[LEVEL_HOST]] = true;
    }
    bool *avoid = racks_to_avoid(m);
    p->slow = mem_calloc((size_t)p->hosts + 1, sizeof(bool));
    for (int i = 0; i < p->hosts; i++) {
        int rack = pool_group(p, i, LEVEL_RACK);
        p->slow[i] = slow[p->host[i]] || (rack >= 0 && avoid[rack]);
    }
    free(avoid);
    free(slow);
}

static int take_hosts(struct pool *p, const struct place_ask *ask, struct err *err)
{
    const struct topo *t = &p->matrix->topo;
    bool *seen = mem_calloc((size_t)t->hosts + 1, sizeof(bool));
    int count = ask->host ? ask->hosts : t->hosts, rc = 0;

    p->host = mem_calloc((size_t)count + 1, sizeof(int));
    for (int i = 0; rc == 0 && i < count; i++) {
        int h = ask->host ? ask->host[i] : i;
        if (h < 0 || h >= t->hosts)
            rc = err_usage(err, "free host %d is not one of the matrix, which has 0..%d", h,
                           t->hosts - 1);
        else if (seen[h])
            rc = err_usage(err, "host \"%s\" is given twice", t->host[h].name);
        else
            seen[p->host[p->hosts++] = h] = true;
    }
    free(seen);
    return rc;
}

/* Seats of each host in local order, at most per_host of them. */
static void take_seats(struct pool *p, int per_host)
{
    const struct topo *t = &p->matrix->topo;
    int *fill = mem_calloc((size_t)p->hosts + 1, sizeof(int));

    p->start = mem_calloc((size_t)p->hosts + 2, sizeof(int));
    p->row = mem_calloc((size_t)t->hosts + 1, sizeof(int));
    for (int h = 0; h < t->hosts; h++)
        p->row[h] = -1;
    for (int i = 0; i < p->hosts; i++)
        p->row[p->host[i]] = i;
    for (int pass = 0; pass < 2; pass++) {
        memset(fill, 0, (size_t)p->hosts * sizeof(int));
        for (int e = 0; e < t->endpoints; e++) {
            int i = p->row[t->endpoint[e].place.at[LEVEL_HOST]];
            if (i < 0 || (per_host > 0 && fill[i] == per_host))
                continue;
            if (pass)
                p->endpoint[p->start[i] + fill[i]] = e;
            fill[i]++;
        }
        for (int i = 0; pass == 0 && i < p->hosts; i++) {
            p->start[i + 1] = p->start[i] + fill[i];
            p->per_host = fill[i] > p->per_host ? fill[i] : p->per_host;
        }
        p->seats = p->start[p->hosts];
        if (pass == 0)
            p->endpoint = mem_calloc((size_t)p->seats + 1, sizeof(int));
    }
    free(fill);
}

int pool_make(struct pool *p, const struct place_ask *ask, int ranks, struct err *err)
{
    memset(p, 0, sizeof(*p));
    p->matrix = ask->matrix;
    if (take_hosts(p, ask, err) < 0)
        return -1;
    take_seats(p, ask->per_host);
    if (p->seats < ranks)
        return err_usage(err, "the job has %d ranks and the %d free hosts have room for %d", ranks,
                         p->hosts, p->seats);
    mark_slow(p);
    return 0;
}

void pool_free(struct pool *p)
{
    free(p->host);
    free(p->start);
    free(p->endpoint);
    free(p->slow);
    free(p->row);
    memset(p, 0, sizeof(*p));
}

/* Different groups of the free hosts; 0 where some host's is not visible. */
static int groups_at(const struct pool *p, int level)
{
    int most = p->matrix->topo.group[level].count, groups = 0;
    bool *seen = mem_calloc((size_t)most + 1, sizeof(bool));

    for (int i = 0; i < p->hosts; i++) {
        int g = pool_group(p, i, level);
        if (g < 0 && p->start[i] < p->start[i + 1]) {
            groups = 0;
            break;
        }
        if (g >= 0 && !seen[g]) {
            seen[g] = true;
            groups++;
        }
    }
    free(seen);
    return groups;
}

int pool_levels(const struct pool *p, int level[LEVEL_COUNT])
{
    static const int asked[] = {LEVEL_DOMAIN, LEVEL_RACK, LEVEL_LEAF, LEVEL_SPINE};
    int count[LEVEL_COUNT] = {0}, n = 0;

    for (size_t i = 0; i < sizeof(asked) / sizeof(*asked); i++) {
        int groups = groups_at(p, asked[i]), at = n;
        if (groups < 1 || groups >= p->hosts)
            continue; /* not known, or each host is its own */
        for (; at > 0 && count[at - 1] < groups; at--) {
            count[at] = count[at - 1];
            level[at] = level[at - 1];
        }
        count[at] = groups;
        level[at] = asked[i];
        n++;
    }
    return n;
}

int *pool_group_seats(const struct pool *p, int level, bool healthy)
{
    int *seats = mem_calloc((size_t)p->matrix->topo.group[level].count + 1, sizeof(int));

    for (int i = 0; i < p->hosts; i++)
        if (pool_group(p, i, level) >= 0 && !(healthy && p->slow[i]))
            seats[pool_group(p, i, level)] += pool_host_seats(p, i);
    return seats;
}

void order_settle(int *order, int ranks, const struct pool *p)
{
    int *taken = mem_calloc((size_t)p->hosts + 1, sizeof(int));

    for (int r = 0; r < ranks; r++) {
        int i = p->row[p->matrix->topo.endpoint[order[r]].place.at[LEVEL_HOST]];
        order[r] = p->endpoint[p->start[i] + taken[i]++];
    }
    free(taken);
}

struct near_key {
    int at[LEVEL_COUNT];
};

static int by_place(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct near_key));
}

int pool_peers(const struct pool *p, int tier)
{
    const struct topo *t = &p->matrix->topo;
    struct near_key *key = mem_calloc((size_t)p->seats + 1, sizeof(*key));
    int n = 0, most = 1, run = 0;

    for (int i = 0; i < p->seats; i++) {
        const int *at = t->endpoint[p->endpoint[i]].place.at;
        bool known = true;
        for (int l = 0; l < LEVEL_COUNT; l++) {
            bool asked = t->tier[tier].same & 1u << l;
            key[n].at[l] = asked ? at[l] : 0;
            known &= !asked || at[l] >= 0;
        }
        n += known;
    }
    qsort(key, (size_t)n, sizeof(*key), by_place);
    for (int i = 0; i < n; i++) {
        run = i && by_place(&key[i - 1], &key[i]) == 0 ? run + 1 : 1;
        most = run > most ? run : most;
    }
    free(key);
    return most - 1;
}
