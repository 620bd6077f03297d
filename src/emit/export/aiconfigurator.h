/* aiconfigurator.h - what NVIDIA's aiconfigurator (ai-dynamo/aiconfigurator; aisimulate reads the
 * same keys) knows of a network: the "node" section of systems/NAME.yaml in bytes/s and s, and as
 * the second file nccl_perf.txt, one row for each collective that the matrix has a curve of.
 *
 * num_gpus_per_rack and inter_rack_* are written where the machine has a level between host and
 * whole.  nccl_perf: message_size counts elements of half (2 bytes) of the size that op.h calls S,
 * latency is in ms; of several shapes with as many GPUs the one in the fewest domains counts, for
 * the file knows no shapes.  The "gpu" section is the data sheet's, where a preset is known; "misc"
 * and data_dir are left to the user.  No place for slow parts. */
#ifndef RG_AICONFIGURATOR_H
#define RG_AICONFIGURATOR_H

#include "emit/export/export.h"

/* EXIT_DATA: hosts with one endpoint, no tree of equal groups (nest.h), tiers that were not
 * measured; with a second file: no collective curve. */
int aiconfigurator_write(FILE *out, FILE *second, const struct matrix *m,
                         const struct export_ask *ask, struct err *err);

#endif
