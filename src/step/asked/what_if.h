/* what_if.h - a modified machine: the given one with parts of it faster, slower or repaired.
 *
 *   nic=2x | 400G    tiers that cross NICs; 400G: scaled by this rate / data sheet rate of one
 *                    NIC, Gb/s
 *   nvlink=1.5x      tiers that do not cross NICs
 *   latency=0.5x     every tier: the part of a time that does not grow with the size
 *   hbm=1.2x         memory rate of the GPUs
 *   flops=2x         compute rate, in every precision
 *   exceptions=none  without the slow and dead parts that were measured
 *
 * A tier's time t becomes floor g + (t - floor) / f, with factors f of the rate and g of the
 * latency, and floor from curve_floor().  A measured or published collective curve is scaled by the
 * ratio of the tier model (collective.h) for that shape before and after, so that faster NICs help
 * only as far as the links inside a domain allow.  A shape too large for this machine is scaled by
 * the tier that limits it.  Efficiencies, hidden shares and memory are unchanged. */
#ifndef RG_WHAT_IF_H
#define RG_WHAT_IF_H

#include "step/job.h"

enum what { WHAT_NIC, WHAT_NVLINK, WHAT_LATENCY, WHAT_HBM, WHAT_FLOPS, WHAT_COUNT };

struct what_if {
    const char *text;          /* text as typed; borrowed */
    double factor[WHAT_COUNT]; /* 1: unchanged */
    double nic_Bps;            /* rate given instead of the factor; 0: not given */
    bool whole;                /* true: drop all exceptions */
};

/* Parse "nic=2x,exceptions=none".  EXIT_USAGE names the error and the known keys. */
int what_if_parse(struct what_if *w, const char *text, struct err *err);
/* Change the job's matrix and GPU.  EXIT_UNJUDGED: a rate is given, but no data sheet has that of
 * the NICs. */
int what_if_apply(const struct what_if *w, struct job *j, struct err *err);

#endif
