/* probe_main.h - what the files of railgauge-probe's main program share.  They may print. */
#ifndef RG_PROBE_MAIN_H
#define RG_PROBE_MAIN_H

#include <stdbool.h>

#include "probe/probe_args.h"
#include "probe/world.h"
#include "topo/topo.h"

bool probe_is(const struct probe_args *a, const char *transport);
bool probe_on_gpus(const struct probe_args *a);

/* The commands; collective. */
int probe_discover(const struct probe_args *a, struct world *w, struct err *err);
int probe_campaign(const struct probe_args *a, struct world *w, struct err *err);
/* --compute: what each GPU does alone, into compute.tsv and as a table on rank 0.  Collective. */
int probe_compute(const struct probe_args *a, struct world *w, struct err *err);

/* What the user's environment brings along is said, and NCCL is asked about a hang. */
void probe_before_nccl(struct world *w);
/* Every rank's part of the topology, on rank 0; with a GPU open this rank's endpoint is that one.
 */
int probe_gather(struct topo *t, const struct probe_args *a, struct world *w, const char *root,
                 struct err *err);
/* The same or --topology's file; the other ranks know the endpoints' GPUs. */
int probe_topo(struct topo *t, const struct probe_args *a, struct world *w, struct err *err);

#endif
