/* SPDX-License-Identifier: BSD-3-Clause */
/* place_bound.c - a time that no order beats. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "step/place_parts.h"
#include "step/pricer.h"

/* A row whose boxes are single hosts. */
static void cut_hosts(struct row *r)
{
    r->boxes = r->hosts;
    r->first = mem_realloc(r->first, (size_t)r->hosts + 1, sizeof(int));
    for (int i = 0; i <= r->hosts; i++)
        r->first[i] = i;
}

static int box_seats(const struct row *r, const struct pool *p, int box)
{
    int seats = 0;

    for (int i = r->first[box]; i < r->first[box + 1]; i++)
        seats += p->start[r->host[i] + 1] - p->start[r->host[i]];
    return seats;
}

static int descending(const void *a, const void *b)
{
    const int *x = a, *y = b;

    return x[0] != y[0] ? y[0] - x[0] : x[1] - y[1];
}

/* n seats in as few boxes as can hold equal shares of them; false: no such number of boxes. */
static bool nearest_seats(const struct row *r, const struct pool *p, int n, int *ids)
{
    int(*box)[2] = mem_calloc((size_t)r->boxes + 1, sizeof(*box)), at = 0, d = 1;

    for (int b = 0; b < r->boxes; b++) {
        box[b][0] = box_seats(r, p, b);
        box[b][1] = b;
    }
    qsort(box, (size_t)r->boxes, sizeof(*box), descending);
    while (d <= r->boxes && d <= n && (n % d || box[d - 1][0] < n / d))
        d++;
    bool found = d <= r->boxes && d <= n;
    for (int k = 0; found && k < d; k++) {
        int left = n / d;
        for (int i = r->first[box[k][1]]; left > 0; i++)
            for (int s = p->start[r->host[i]]; s < p->start[r->host[i] + 1] && left > 0;
                 s++, left--)
                ids[at++] = p->endpoint[s];
    }
    free(box);
    return found;
}

/* Seconds of every message on one group of the healthy machine with those seats, where that is
 * less. */
static void price_group(const struct placer *pl, const struct matrix *healthy, const int *ids,
                        int n, double *one)
{
    struct pricer *pricer;
    double mean;

    if (pricer_open(&pricer, healthy, ids, n, NULL) < 0)
        return;
    for (int i = 0; i < pl->traffic.messages; i++) {
        struct message msg = pl->traffic.message[i];
        if (msg.span.size != n)
            continue;
        msg.span.stride = 1;
        one[i] = fmin(one[i], pricer_message_mean(pricer, &msg, &mean));
    }
    pricer_close(pricer);
}

static double step_bound(struct placer *pl, const struct pool *p)
{
    struct matrix healthy = *pl->ask->matrix; /* shares all but the count of what is slow */
    const struct question *q = pl->ask->question;
    int level[LEVEL_COUNT + 1], levels = pool_levels(p, level);
    int *ids = mem_calloc((size_t)pl->ranks + 1, sizeof(int));
    double one[TRAFFIC_MAX];
    struct timing t;

    healthy.exceptions = 0;
    level[levels] = -1;
    for (int i = 0; i < pl->traffic.messages; i++)
        one[i] = pl->traffic.message[i].span.size < 2 ? 0 : INFINITY;
    for (int k = 0; k <= levels; k++) {
        struct row r;
        row_make(&r, p, level[k], ROW_NEAR, -1, -1);
        if (level[k] < 0)
            cut_hosts(&r);
        for (int i = 0; i < pl->traffic.messages; i++) {
            int n = pl->traffic.message[i].span.size, first = 0;
            while (pl->traffic.message[first].span.size != n)
                first++;
            if (first == i && n > 1 && nearest_seats(&r, p, n, ids))
                price_group(pl, &healthy, ids, n, one);
        }
        row_free(&r);
    }
    free(ids);
    for (int i = 0; i < pl->traffic.messages; i++)
        if (!(one[i] < INFINITY))
            return 0; /* no even shape at all: nothing is claimed */
    memcpy(pl->least_one, one, sizeof(one));
    timing_of(&t, &pl->traffic, one, &pl->work, &pl->coefficients, q->layout, q->recipe);
    return t.sec;
}

struct near_key {
    int at[LEVEL_COUNT];
};

static int by_place(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct near_key));
}

/* The most peers that a free seat has at this tier or a nearer one. */
static int peers_at(const struct pool *p, int tier)
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

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? 1 : x > y ? -1 : 0;
}

/* The largest flows go to the nearest peers. */
static double busy_bound(const struct matrix *m, double *bytes, int n, const int *peers)
{
    double sec = 0;
    int tier = 0;

    qsort(bytes, (size_t)n, sizeof(*bytes), by_size);
    for (int i = 0; i < n && bytes[i] > 0; i++) {
        while (tier < m->tiers - 1 && i >= peers[tier])
            tier++;
        double least = INFINITY;
        for (int t = tier; t < m->tiers; t++) /* a farther tier may be the faster one */
            least = fmin(least, matrix_tier_time(&m->tier[t], bytes[i], 1));
        sec += least;
    }
    return sec;
}

static double demand_bound(struct placer *pl, const struct pool *p)
{
    const struct matrix *m = pl->ask->matrix;
    double *bytes = mem_calloc((size_t)pl->ties->start[pl->ranks] + 1, sizeof(double)), most = 0;
    int peers[TIER_MAX];

    for (int t = 0; t < m->tiers; t++) {
        peers[t] = peers_at(p, t);
        if (t && peers[t] < peers[t - 1])
            peers[t] = peers[t - 1];
    }
    for (int r = 0; r < pl->ranks; r++)
        for (int in = 0; in < 2; in++) {
            const struct tie *t = &pl->ties->tie[pl->ties->start[r]];
            int n = pl->ties->start[r + 1] - pl->ties->start[r];
            for (int i = 0; i < n; i++)
                bytes[i] = in ? t[i].in : t[i].out;
            most = fmax(most, busy_bound(m, bytes, n, peers));
        }
    free(bytes);
    return most;
}

double placer_bound(struct placer *pl, const struct pool *p)
{
    return pl->least = pl->ask->demand ? demand_bound(pl, p) : step_bound(pl, p);
}
