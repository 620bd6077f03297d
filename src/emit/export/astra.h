/* astra.h - the network file of ASTRA-sim 2's analytical back end (astra-network-analytical,
 * common/network-parser/NetworkParser.cpp): lists of topology, npus_count (> 1), bandwidth (> 0)
 * and latency (>= 0), one entry a dimension, the innermost first; an NPU is an endpoint.
 *
 * Every dimension is a Switch, where a message passes two links: latency is half of a pair's.
 * Its "GB/s" are 2^30 bytes/s (common/NetworkFunction.cpp).  It has no place for slow parts. */
#ifndef RG_ASTRA_H
#define RG_ASTRA_H

#include "emit/export/export.h"

/* EXIT_DATA: the machine is no tree of equal groups (nest.h), or a tier was not measured. */
int astra_write(FILE *out, FILE *second, const struct matrix *m, const struct export_ask *ask,
                struct err *err);

#endif
