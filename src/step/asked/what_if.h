/* what_if.h - another machine: the one that is there with some of it faster, slower or whole.
 *
 *   nic=2x | 400G    tiers that cross NICs; 400G: as much faster as that is above the data sheet's
 *                    rate, Gb/s of one NIC
 *   nvlink=1.5x      tiers that do not
 *   latency=0.5x     of every tier: the part of a time that does not grow with the size
 *   hbm=1.2x         memory rate of the GPUs
 *   flops=2x         what they compute, whatever the precision
 *   exceptions=none  without the slow and dead parts that were measured
 *
 * A tier's time t becomes floor g + (t - floor) / f, f and g the factors of rate and latency, floor
 * as curve_floor() has it.  A measured or published curve of a collective is scaled by what the
 * model over the tiers (collective.h) says of that shape before and after, so that faster NICs help
 * no further than the links inside a domain do; a shape that this machine has no room for by the
 * rule of the tier that limits it.  Efficiencies, shares that are hidden and memory stay. */
#ifndef RG_WHAT_IF_H
#define RG_WHAT_IF_H

#include "step/job.h"

enum what { WHAT_NIC, WHAT_NVLINK, WHAT_LATENCY, WHAT_HBM, WHAT_FLOPS, WHAT_COUNT };

struct what_if {
    const char *text;          /* as typed; not owned */
    double factor[WHAT_COUNT]; /* 1: as it is */
    double nic_Bps;            /* instead of that factor; 0: not given */
    bool whole;                /* no exceptions */
};

/* "nic=2x,exceptions=none".  EXIT_USAGE says what is wrong and what is known. */
int what_if_parse(struct what_if *w, const char *text, struct err *err);
/* Changes the job's matrix and GPU.  EXIT_UNJUDGED where a rate is asked for and no data sheet says
 * what the NICs have. */
int what_if_apply(const struct what_if *w, struct job *j, struct err *err);

#endif
