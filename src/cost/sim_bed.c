/* SPDX-License-Identifier: BSD-3-Clause */
#include "cost/sim_bed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cost/collective.h"
#include "probe/world.h"

/* The group that was asked for last: whose ladder is measured is asked for size after size. */
struct sim_quote {
    struct collective_quote q;
    int *ids, n;
};

static double healthy_time(const void *of, enum op op, const int *ids, int n, double bytes)
{
    const struct sim_bed *b = of;
    struct sim_quote *last = b->last;
    struct ways w;

    if (last->n != n || last->q.op != op || memcmp(last->ids, ids, (size_t)n * sizeof(*ids)) != 0) {
        ways_of(&w, &b->healthy, ids, n, op, true);
        collective_resolve(&last->q, &b->healthy, op, &w, true);
        free(last->ids);
        last->ids = mem_dup(ids, (size_t)n, sizeof(*ids));
        last->n = n;
    }
    return collective_time(&last->q, &b->healthy, bytes);
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
    b->last = mem_calloc(1, sizeof(*b->last));
    b->sim = (struct sim){.fabric = &b->fabric,
                          .truth = &b->truth,
                          .healthy = healthy_time,
                          .of = b,
                          .noise = o->noise,
                          .seed = o->seed};
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
    if (b->last)
        free(b->last->ids);
    free(b->last);
    if (b->blind)
        topo_free(&b->seen);
    matrix_free(&b->healthy);
    fabric_free(&b->fabric);
    memset(b, 0, sizeof(*b));
}
