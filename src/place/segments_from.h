/* segments_from.h - the sources of segments.h: what nodes tell of themselves, and files. */
#ifndef RG_SEGMENTS_FROM_H
#define RG_SEGMENTS_FROM_H

#include "place/segments.h"
#include "topo/host/self_report.h"
#include "topo/topo.h"

/* Nodes in order, then NVML, the label, SLURM_TOPOLOGY_ADDR, as far as a node tells of each.  An
 * address that cannot be understood: EXIT_DATA with the node. */
int segments_from_told(struct segments *s, const struct self_report *list, int count,
                       struct err *err);
/* The finest of NVLink domain (across hosts), rack and leaf that the topology groups hosts by, and
 * what each other source declares of these levels. */
void segments_from_topo(struct segments *s, const struct topo *t, const char *name);

#endif
