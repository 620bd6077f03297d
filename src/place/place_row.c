/* SPDX-License-Identifier: BSD-3-Clause */
/* place_row.c - free hosts in rows, and blocks of ranks filled into them. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "place/place_parts.h"

/* What a host is sorted by. */
struct key {
    int at[LEVEL_COUNT + 4], host;
};

static int by_key(const void *a, const void *b)
{
    const struct key *x = a, *y = b;

    for (int i = 0; i < LEVEL_COUNT + 4; i++)
        if (x->at[i] != y->at[i])
            return x->at[i] < y->at[i] ? -1 : 1;
    return x->host - y->host;
}

/* Groups of a level in the order in which the given hosts meet them. */
static int *met(const struct pool *p, int level)
{
    int *order = mem_calloc((size_t)p->matrix->topo.group[level].count + 1, sizeof(int)), n = 0;

    for (int i = 0; i < p->hosts; i++) {
        int g = pool_group(p, i, level);
        if (g >= 0 && !order[g])
            order[g] = ++n;
    }
    return order;
}

static void keys_of(struct key *key, const struct pool *p, int level, enum row_how how)
{
    int levels[LEVEL_COUNT], n = pool_levels(p, levels), used = 0;

    if (how == ROW_HEALTHY)
        for (int i = 0; i < p->hosts; i++)
            key[i].at[used] = p->slow[i];
    used++;
    if (how != ROW_NEAR && level >= 0) {
        int *seats = pool_group_seats(p, level, how == ROW_HEALTHY);
        for (int i = 0; i < p->hosts; i++)
            key[i].at[used] = pool_group(p, i, level) < 0 ? 0 : -seats[pool_group(p, i, level)];
        free(seats);
    }
    used++;
    for (int k = n; k-- > 0; used++) {
        int *order = met(p, levels[k]);
        for (int i = 0; i < p->hosts; i++)
            key[i].at[used] =
                pool_group(p, i, levels[k]) < 0 ? 0 : order[pool_group(p, i, levels[k])];
        free(order);
    }
}

static void cut(struct row *r, const struct pool *p)
{
    r->first = mem_calloc((size_t)r->hosts + 1, sizeof(int));
    for (int i = 0; i < r->hosts; i++)
        if (i == 0 || (r->level >= 0 && pool_group(p, r->host[i], r->level) !=
                                            pool_group(p, r->host[i - 1], r->level)))
            r->first[r->boxes++] = i;
    r->first[r->boxes] = r->hosts;
}

void row_make(struct row *r, const struct pool *p, int level, enum row_how how, int within,
              int group)
{
    struct key *key = mem_calloc((size_t)p->hosts + 1, sizeof(*key));

    *r = (struct row){.level = level, .host = mem_calloc((size_t)p->hosts + 1, sizeof(int))};
    for (int i = 0; i < p->hosts; i++)
        key[i].host = i;
    keys_of(key, p, level, how);
    qsort(key, (size_t)p->hosts, sizeof(*key), by_key);
    for (int i = 0; i < p->hosts; i++)
        if (within < 0 || pool_group(p, key[i].host, within) == group)
            r->host[r->hosts++] = key[i].host;
    free(key);
    cut(r, p);
}

int row_seats(const struct row *r, const struct pool *p)
{
    int seats = 0;

    for (int i = 0; i < r->hosts; i++)
        seats += pool_host_seats(p, r->host[i]);
    return seats;
}

int row_largest(const struct row *r, const struct pool *p)
{
    int most = 0;

    for (int b = 0; b < r->boxes; b++) {
        int seats = 0;
        for (int i = r->first[b]; i < r->first[b + 1]; i++)
            seats += pool_host_seats(p, r->host[i]);
        most = seats > most ? seats : most;
    }
    return most;
}

void row_free(struct row *r)
{
    free(r->host);
    free(r->first);
    memset(r, 0, sizeof(*r));
}

/* Seats of the row one after another, and where each box begins among them. */
static int *flatten(const struct row *r, const struct pool *p, int *begin)
{
    int *flat = mem_calloc((size_t)p->seats + 1, sizeof(int)), n = 0;

    for (int b = 0; b < r->boxes; b++) {
        begin[b] = n;
        for (int i = r->first[b]; i < r->first[b + 1]; i++)
            for (int s = p->start[r->host[i]]; s < p->start[r->host[i] + 1]; s++)
                flat[n++] = p->endpoint[s];
    }
    begin[r->boxes] = n;
    return flat;
}

struct space {
    int box, room;
};

static int by_room(const void *a, const void *b)
{
    const struct space *x = a, *y = b;

    return x->room != y->room ? y->room - x->room : x->box - y->box;
}

/* Boxes in order, or the one that has most seats left first. */
static void turn_of(struct space *turn, const int *begin, const int *used, int boxes, bool roomy)
{
    for (int b = 0; b < boxes; b++)
        turn[b] = (struct space){b, begin[b + 1] - begin[b] - used[b]};
    if (roomy)
        qsort(turn, (size_t)boxes, sizeof(*turn), by_room);
}

bool row_fill(const struct row *r, const struct pool *p, const int *block, int blocks, int ranks,
              bool roomy, int *seat)
{
    int *begin = mem_calloc((size_t)r->boxes + 2, sizeof(int));
    int *used = mem_calloc((size_t)r->boxes + 1, sizeof(int));
    struct space *turn = mem_calloc((size_t)r->boxes + 1, sizeof(*turn));
    int *flat = flatten(r, p, begin), next = 0;

    for (int k = 0; k < blocks; k++) {
        turn_of(turn, begin, used, r->boxes, roomy && k > 0);
        for (int i = 0; i < r->boxes; i++) {
            int b = turn[i].box, room = turn[i].room;
            int left = (ranks - next) / block[k];
            int take = (room / block[k] < left ? room / block[k] : left) * block[k];
            memcpy(seat + next, flat + begin[b] + used[b], (size_t)take * sizeof(int));
            used[b] += take;
            next += take;
        }
    }
    free(begin);
    free(used);
    free(turn);
    free(flat);
    return next == ranks;
}
