/* SPDX-License-Identifier: BSD-3-Clause */
#include "cost/sim_bed.h"

#include <math.h>
#include <string.h>

#include "cost/collective.h"
#include "probe/world.h"

static double healthy_time(const void *of, enum op op, const int *ids, int n, double bytes)
{
    struct ways w;
    struct collective_quote q;

    ways_of(&w, of, ids, n, op, true);
    collective_resolve(&q, of, op, &w, true);
    return collective_time(&q, of, bytes);
}

int sim_bed_open(struct sim_bed *b, const struct sim_opts *o, struct err *err)
{
    memset(b, 0, sizeof(*b));
    if (!o->fabric)
        return err_usage(err, "--transport sim needs --fabric NAME");
    if (fabric_load(&b->fabric, o->fabric, err) < 0 ||
        fabric_topo(&b->fabric, o->racks, false, &b->truth, err) < 0 ||
        fabric_topo(&b->fabric, o->racks, o->blind, &b->seen, err) < 0 ||
        matrix_from_fabric(&b->healthy, &b->fabric, o->racks, err) < 0)
        return -1;
    for (int i = 0; i < b->healthy.tiers; i++)
        b->healthy.tier[i].loaded = NAN; /* the simulation counts who else runs */
    b->sim = (struct sim){.fabric = &b->fabric,
                          .truth = &b->truth,
                          .healthy = healthy_time,
                          .of = &b->healthy,
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
    matrix_free(&b->healthy);
    topo_free(&b->seen);
    topo_free(&b->truth);
    fabric_free(&b->fabric);
}
