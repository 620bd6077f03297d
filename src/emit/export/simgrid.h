/* simgrid.h - a cost matrix as a platform of SimGrid (https://simgrid.org, version 3.32 and later),
 * so that MPI programs can be run on the measured or published machine with smpirun.
 *
 * Every host has one full-duplex port per class of tiers, for traffic that crosses NICs and for
 * traffic that does not, as fast as its fastest healthy pair: flows of one host share it.  A pair's
 * route is its source's port, the latency of the pair, its destination's port, and a link of its
 * own where the pair is slower than the ports.  Latency and bandwidth of each pair equal
 * matrix_pair() under smpirun --cfg=network/model:CM02 --cfg=network/crosstraffic:0 (these, and the
 * removal of TCP's window limit, stand in the platform file as well). */
#ifndef RG_SIMGRID_H
#define RG_SIMGRID_H

#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"
#include "cost/matrix.h"

/* A platform has a route for each pair: more nodes make files of hundreds of megabytes. */
enum { SIMGRID_NODES_MAX = 2048 };

struct simgrid_opts {
    bool endpoints;     /* a SimGrid host per endpoint; else per host, standing for its first one */
    int hosts_per_rack; /* only the first ones of each rack; 0: all */
};

/* Both streams may fail: the caller checks them.  hostfile (one name a line, in rank order) may be
 * NULL. EXIT_USAGE: too many nodes, fewer than two, or hosts_per_rack without racks; EXIT_DATA: a
 * pair without latency or bandwidth. */
int simgrid_write(FILE *platform, FILE *hostfile, const struct matrix *m,
                  const struct simgrid_opts *o, struct err *err);

#endif
