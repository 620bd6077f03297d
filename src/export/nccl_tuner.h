/* nccl_tuner.h - best algorithm and protocol per size, from a sweep: as a table and as
 * configuration of NCCL's example tuner plugin.
 *
 * The plugin (NVIDIA/nccl, plugins/tuner/example) reads lines
 *   collective,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,regBuff
 * of which the first match counts; -1 means "any" or NCCL's choice; the size is S of op.h. */
#ifndef RG_NCCL_TUNER_H
#define RG_NCCL_TUNER_H

#include <jansson.h>
#include <stdio.h>

#include "base/err.h"
#include "base/op.h"
#include "measure/point.h"
#include "measure/transports/nccl_opts.h"

enum { TUNER_ALGOS = 7, TUNER_PROTOS = 3, TUNER_COMBOS = TUNER_ALGOS * TUNER_PROTOS };

/* An op on groups of one shape at one size. */
struct tuner_row {
    enum op op;
    int ranks, nodes; /* nodes -1: not known */
    size_t bytes;
    /* median, indexed by algorithm * TUNER_PROTOS + protocol; NAN: none */
    double sec[TUNER_COMBOS];
    double own; /* with NCCL's own choice; NAN: not measured */
};

struct tuner_refusal {
    enum op op;
    int ranks, nodes, combo; /* 4 ranks on 4 nodes may be refused what 4 ranks on one node may do */
    char why[256];
};

struct tuner {
    struct tuner_row *row; /* sorted by op, ranks, nodes, bytes */
    int rows;
    struct tuner_refusal *refusal;
    int refusals;
    struct point kind[OP_COUNT]; /* a point of each operation, for its kind of data; n 0: none */
};

/* Read DIR/sweep and, if present, DIR/points.tsv (NCCL's own choices) and DIR/topology.json
 * (nodes).  EXIT_NOINPUT if there is no sweep. */
int tuner_load(struct tuner *t, const char *dir, struct err *err);
void tuner_free(struct tuner *t);

/* Print the best per size, and the refusals.  If out is NULL, return the former as JSON, a new
 * reference. */
json_t *tuner_report(FILE *out, const struct tuner *t);
void tuner_csv(FILE *out, const struct tuner *t);

#endif
