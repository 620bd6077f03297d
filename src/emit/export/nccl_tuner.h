/* nccl_tuner.h - which algorithm and protocol is best at which size: what a sweep says, as a table
 * and as the configuration of NCCL's example tuner plugin.
 *
 * The plugin (NVIDIA/nccl, plugins/tuner/example) reads lines
 *   collective,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,regBuff
 * with the first match counting, -1 for "any" or NCCL's choice, and the size that op.h calls S. */
#ifndef RG_NCCL_TUNER_H
#define RG_NCCL_TUNER_H

#include <jansson.h>
#include <stdio.h>

#include "base/err.h"
#include "base/op.h"
#include "probe/nccl/nccl_opts.h"

enum { TUNER_ALGOS = 7, TUNER_PROTOS = 3, TUNER_COMBOS = TUNER_ALGOS * TUNER_PROTOS };

/* One op on groups of one shape at one size. */
struct tuner_row {
    enum op op;
    int ranks, nodes; /* nodes -1: not known */
    size_t bytes;
    double sec[TUNER_COMBOS]; /* the median, algorithm * TUNER_PROTOS + protocol; NAN: none */
    double own;               /* as NCCL itself chose, NAN: not measured */
};

struct tuner_refusal {
    enum op op;
    int ranks, nodes, combo; /* what 4 ranks of 4 nodes may not do those of one node may */
    char why[256];
};

struct tuner {
    struct tuner_row *row; /* by op, ranks, nodes, bytes */
    int rows;
    struct tuner_refusal *refusal;
    int refusals;
};

/* Read DIR/sweep, DIR/points.tsv (what NCCL chooses itself) and DIR/topology.json (nodes) where
 * they are.  No sweep: EXIT_NOINPUT. */
int tuner_load(struct tuner *t, const char *dir, struct err *err);
void tuner_free(struct tuner *t);

/* Best per size, and what was refused; or where out is NULL the former as JSON, new reference. */
json_t *tuner_report(FILE *out, const struct tuner *t);
void tuner_csv(FILE *out, const struct tuner *t);

#endif
