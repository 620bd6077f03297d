/* export.h - export a cost matrix to the formats of other tools: one table, one function each.
 *
 * A writer refuses what the reader of its format would refuse (EXIT_DATA or EXIT_USAGE with the
 * rule and its source) and writes nothing that is not known.  Units are those of the format,
 * through base/units.h.  Host names are checked if the format gives characters a meaning.
 *
 * Example:
 *
 *     struct matrix m;
 *     const struct exporter *x = exporter_find("slurm-tree", err);
 *     int rc = -1;
 *
 *     if (!x || matrix_load(&m, "campaign", MATRIX_WHOLE, err) < 0)
 *         return -1;
 *     rc = x->write(&(struct export_run){.out = stdout, .m = &m, .topo = &m.topo, .ask = &(struct export_ask){0}}, err);
 *     matrix_free(&m);
 *     return rc; */
#ifndef RG_EXPORT_H
#define RG_EXPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"
#include "base/op.h"
#include "export/pair_cost.h"
#include "matrix/matrix.h"
#include "measure/point.h"
#include "measure/transports/nccl_opts.h"

/* Options as typed; all pointers are borrowed; zeros are defaults.  A format ignores options that
 * do not apply. */
struct export_ask {
    double bytes;           /* message size for one number per pair; 0: 64 MiB */
    bool endpoints;         /* a node is an endpoint; else a host, with its first endpoint */
    int hosts_per_rack;     /* use only the first hosts of each rack; 0: all */
    enum quantity quantity; /* QUANTITY_OWN: default of the format */
    const char *release;    /* release of the reader: "24.11" for Slurm; NULL: the newest known */
    const char *name;       /* name of the object (Kueue topology, SimGrid zone); NULL: default */
    const char *campaign;   /* campaign directory with points.tsv and sweep/; NULL: none */
    bool partial;           /* leave out hosts that have no place in the file */
    /* with partial: left-out hosts and the reason, owned by the caller; NULL: not wanted */
    char **left;
};

/* Input that a format needs.
 *
 *   TIERS     curves of healthy tiers; slow parts have no place in it (the command warns of them)
 *   CAMPAIGN  the campaign directory only; the matrix is empty
 *   POINTS    measured points of a campaign directory
 *   VERDICT   the matrix as judged by accept */
enum export_needs {
    EXPORT_PLACES,
    EXPORT_TIERS,
    EXPORT_PAIRS,
    EXPORT_CAMPAIGN,
    EXPORT_POINTS,
    EXPORT_VERDICT
};

struct points;
struct accept;
struct parts;

/* The caller checks the streams for errors.  second is NULL unless requested. */
struct export_run {
    FILE *out, *second;
    const struct matrix *m;
    const struct export_ask *ask;
    const struct topo *topo;     /* detailed one of topology.json if present, else the matrix's */
    const struct points *points; /* for POINTS, and if present for VERDICT; else NULL */
    const struct accept *accept; /* for VERDICT */
    const struct parts *parts;   /* for VERDICT */
    const struct matrix *reference; /* NULL: none known */
    const char *against;            /* name of the reference */
};
typedef int export_writer(const struct export_run *e, struct err *err);

struct exporter {
    const char *name; /* "slurm-block" */
    const char *help; /* "topology.conf of topology/block" */
    enum export_needs needs;
    const char *second; /* contents of a second file: "node names in rank order"; NULL: none */
    export_writer *write;
};
extern const struct exporter exporters[];
extern const int exporter_count;

/* Find by name.  Unknown: NULL and EXIT_USAGE with the known names. */
const struct exporter *exporter_find(const char *name, struct err *err);
/* Make a matrix without numbers from a topology alone, for EXPORT_PLACES. */
void export_wrap(struct matrix *m, struct topo *t); /* takes ownership of t */

/* --- nccl tuner ---
 *
 * Best algorithm and protocol per size, from a sweep: as a table and as
 * configuration of NCCL's example tuner plugin.
 *
 * The plugin (NVIDIA/nccl, plugins/tuner/example) reads lines
 *   collective,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,regBuff
 * of which the first match counts; -1 means "any" or NCCL's choice; the size is S of op.h. */

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
