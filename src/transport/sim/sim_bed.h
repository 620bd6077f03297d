/* sim_bed.h - a simulated fabric with everything that belongs to it.
 *
 * A preset says what a collective takes by its cost matrix (published curves, else the model), and
 * nobody else says it another way: the bed hands the matrix to the simulation.
 *
 * Example:
 *
 *     const struct sim_opts o = {.fabric = "gb200-nvl72", .racks = 2, .noise = 0.03};
 *     struct sim_bed b;
 *     int rc = sim_bed_open(&b, &o, err);             // b.seen is what a campaign may know
 *
 *     sim_bed_free(&b);
 *     return rc; */
#ifndef RG_SIM_BED_H
#define RG_SIM_BED_H

#include "matrix/matrix.h"
#include "transport/sim/sim.h"

/* A fabric with its truth and what a campaign may know of it. */
struct sim_bed {
    struct fabric fabric;
    struct matrix healthy;   /* the preset, of all endpoints, nothing else running */
    struct topo truth, seen; /* truth: the preset's; seen: the same, unless it is blind */
    struct topo_tiers tiers; /* of truth */
    bool blind;              /* seen is one of its own */
    bool given;              /* the caller has taken seen over and frees it after the bed */
    struct sim sim;
    struct sim_world world;    /* of sim, where it has one */
    struct sim_quotes *quotes; /* of healthy: groups that were asked for */
};
/* Also makes it the bed of world_solo.  The caller frees, also after a failure. */
int sim_bed_open(struct sim_bed *b, const struct sim_opts *o, struct err *err);
void sim_bed_free(struct sim_bed *b);

#endif
