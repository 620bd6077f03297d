/* export.h - the cost matrix in the formats of other tools: one table, one call each.
 *
 * A writer refuses what the reader of its format would refuse (EXIT_DATA or EXIT_USAGE, naming the
 * rule and its source) and writes nothing that it does not know.  Units are those of the format,
 * through base/units.h.  Names of hosts are checked where the format gives characters a meaning.
 */
#ifndef RG_EXPORT_H
#define RG_EXPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "cost/matrix.h"
#include "emit/export/pair_cost.h"

/* As typed; nothing is owned; zeros are defaults.  A format ignores what it has no use for. */
struct export_ask {
    double bytes;           /* size at which one number per pair is taken; 0: 64 MiB */
    bool endpoints;         /* a node is an endpoint, else a host (its first endpoint) */
    int hosts_per_rack;     /* only the first ones of each rack; 0: all */
    enum quantity quantity; /* QUANTITY_OWN: the format's */
    const char *release;    /* of the reader: "24.11" for Slurm; NULL: the newest known */
    const char *name;     /* of the object that is made (Kueue topology, SimGrid zone); NULL: own */
    const char *campaign; /* folder of points.tsv and sweep/, when the input is one; NULL */
    bool partial;         /* write without the hosts that there is no place for */
    char **left;          /* then: who they are and why, owned by the caller; NULL: untold */
};

/* What the format is made from.  TIERS: the curves of healthy tiers, it has no place for slow parts
 * (the command says so when there are some).  CAMPAIGN: the folder alone, the matrix is empty.
 * POINTS: what was measured, of a campaign's folder.  VERDICT: the matrix as accept judges it. */
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

/* Streams may fail: the caller checks them.  second is NULL unless asked for. */
struct export
{
    FILE *out, *second;
    const struct matrix *m;
    const struct export_ask *ask;
    const struct topo *topo;     /* in detail where there is a topology.json, else the matrix's */
    const struct points *points; /* of POINTS and, where they are, of VERDICT; else NULL */
    const struct accept *accept; /* of VERDICT */
    const struct parts *parts;   /* of VERDICT */
    const struct matrix *reference; /* NULL: none is known */
    const char *against;            /* its name */
};
typedef int export_writer(const struct export *e, struct err *err);

struct exporter {
    const char *name; /* "slurm-block" */
    const char *help; /* "topology.conf of topology/block" */
    enum export_needs needs;
    const char *second; /* what a second file holds: "node names in rank order"; NULL: none */
    export_writer *write;
};
extern const struct exporter exporters[];
extern const int exporter_count;

/* By name; unknown: NULL and EXIT_USAGE with the known ones. */
const struct exporter *exporter_find(const char *name, struct err *err);
/* A topology alone as a matrix without a number, for EXPORT_PLACES. */
void export_wrap(struct matrix *m, struct topo *t); /* takes t over */

#endif
