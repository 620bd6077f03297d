/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/sim/sim_bed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "matrix/collective.h"
#include "watch/world.h"

/* A group whose ladders are measured: it is asked for size after size, by other operations and in other
 * epochs again. */
struct sim_quote {
    int *ids, n;
    struct ways ways;
    bool resolved; /* q is of the operation that was asked for last */
    struct collective_quote q;
};

enum { IDS_MAX = 1 << 22 }; /* that are kept */

struct sim_quotes {
    struct sim_quote *quote;
    int count, ids;
    struct map by; /* how many they are, the first and the last */
};

struct sought {
    const struct sim_quote *quote;
    const int *ids;
    int n;
};

static bool is_group(const void *sought, int value)
{
    const struct sought *s = sought;
    const struct sim_quote *q = &s->quote[value];

    return q->n == s->n && !memcmp(q->ids, s->ids, (size_t)s->n * sizeof(*s->ids));
}

static void forget_quotes(struct sim_quotes *k)
{
    for (int i = 0; i < k->count; i++)
        free(k->quote[i].ids);
    free(k->quote);
    map_free(&k->by);
    *k = (struct sim_quotes){.quote = NULL};
}

static struct sim_quote *quote_of(struct sim_quotes *k, const struct matrix *m, enum op op,
                                  const int *ids, int n)
{
    if (k->ids > IDS_MAX)
        forget_quotes(k);
    uint64_t key = map_mix(map_mix((uint64_t)n, (uint64_t)ids[0]), (uint64_t)ids[n - 1]);
    int *at = map_at(&k->by, key, is_group, &(struct sought){k->quote, ids, n});
    if (*at == MAP_NONE) {
        struct sim_quote new = {.ids = mem_dup(ids, (size_t)n, sizeof(*ids)), .n = n};
        ways_of(&new.ways, m, ids, n, op, true);
        *at = k->count;
        k->ids += n;
        MEM_PUSH(k->quote, k->count) = new;
    }
    return &k->quote[*at];
}

static double healthy_time(const void *of, enum op op, const int *ids, int n, double bytes)
{
    const struct sim_bed *b = of;
    struct sim_quote *quote = quote_of(b->quotes, &b->healthy, op, ids, n);

    if (!quote->resolved || collective_of(&quote->q)->op != op)
        collective_resolve(&quote->q, &b->healthy, op, &quote->ways, true, NULL);
    quote->resolved = true;
    return collective_time(&quote->q, bytes);
}

static int open_world(struct sim_bed *b, const struct sim_opts *o, struct err *err)
{
    struct sim *s = &b->sim;

    if (sim_world_load(&b->world, o->world, err) < 0)
        return -1;
    for (int i = 0; i < b->world.tapers; i++)
        if ((int)b->world.taper[i].level == TAPER_SPINE && !b->truth.group[LEVEL_SPINE].count)
            return err_usage(err, "--world %s: %s has no spines to share uplinks", o->world,
                             b->fabric.name);
    s->world = &b->world;
    s->machine = o->machine;
    s->varies = true;
    if (!(s->noise > 0))
        s->noise = b->world.sample;
    return 0;
}

int sim_bed_open(struct sim_bed *b, const struct sim_opts *o, struct err *err)
{
    memset(b, 0, sizeof(*b));
    if (!o->fabric)
        return err_usage(err, "--transport sim needs --fabric NAME");
    if (fabric_load(&b->fabric, o->fabric, err) < 0 ||
        matrix_from_fabric(&b->healthy, &b->fabric, o->racks, err) < 0)
        return -1;
    b->truth = b->seen = b->healthy.topo;
    if (o->blind && fabric_topo(&b->fabric, o->racks, true, &b->seen, err) < 0)
        return -1;
    b->blind = o->blind;
    for (int i = 0; i < b->healthy.tiers; i++)
        b->healthy.tier[i].loaded = NAN; /* the simulation counts who else runs */
    b->quotes = mem_calloc(1, sizeof(*b->quotes));
    topo_tiers_make(&b->tiers, &b->truth);
    b->sim = (struct sim){.fabric = &b->fabric,
                          .truth = &b->truth,
                          .tiers = &b->tiers,
                          .healthy = healthy_time,
                          .of = b,
                          .noise = o->noise,
                          .seed = o->seed};
    if (o->world && open_world(b, o, err) < 0)
        return -1;
    for (int i = 0; i < o->faults; i++)
        if (sim_fault(&b->sim, o->fault[i], err) < 0)
            return -1;
    world_solo.ctx = &b->sim;
    return 0;
}

void sim_bed_free(struct sim_bed *b)
{
    world_solo.ctx = NULL;
    sim_free(&b->sim);
    if (b->quotes)
        forget_quotes(b->quotes);
    free(b->quotes);
    free(b->tiers.at);
    if (b->blind && !b->given)
        topo_free(&b->seen);
    if (!b->blind && b->given)
        b->healthy.topo = (struct topo){0};
    matrix_free(&b->healthy);
    fabric_free(&b->fabric);
    memset(b, 0, sizeof(*b));
}
