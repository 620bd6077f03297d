/* place.h - which nodes, and in which order: the placement of a job that minimises its predicted
 * step time.
 *
 * Candidates come from a closed form (orders of the mesh's axes x alignment of blocks with NVLink
 * domains and racks), then greedy filling, optionally Scotch, then moves of whole groups; every
 * candidate is judged by the same price as predict (pricer.h), the best is kept, so the answer is
 * never worse than the default order.  Units: bytes, seconds. */
#ifndef RG_PLACE_H
#define RG_PLACE_H

#include "step/predict.h"

/* Bytes that ranks exchange in one step when there is no model: symmetric or not. */
struct demand {
    int ranks;
    struct flow {
        int src, dst;
        double bytes;
    } * flow;
    int flows;
};
/* A table "src dst bytes" (TSV with a header; ranks from 0, as many as it names) or a Matrix Market
 * coordinate file (real or integer, general or symmetric; row sends to column, from 1).  Bytes of
 * one step; equal pairs add up.  EXIT_DATA with file and line. */
int demand_load(struct demand *d, const char *path, struct err *err);
/* The same from memory; takes text over, path is for messages. */
int demand_parse(struct demand *d, char *text, size_t len, const char *path, struct err *err);
void demand_free(struct demand *d);

struct place_ask {
    const struct question *question; /* its order is not looked at; NULL with demand */
    const struct demand *demand;
    const struct matrix *matrix;
    const int *host; /* free hosts, indices into matrix->topo; NULL: all */
    int hosts;
    int ranks;
    int per_host; /* ranks of a host; 0: all its endpoints */
    double limit; /* seconds of search; 0: 1 */
    unsigned seed;
    bool scotch;   /* use it where it is installed */
    bool progress; /* a line on stderr while it lasts, where that is a terminal (log.h) */
};

struct placed {
    int *order; /* rank -> endpoint; on each host in ascending order, as launchers deal ranks */
    int *given; /* the default: hosts as given, each full before the next */
    int ranks;
    double sec;      /* of a step, predicted (demand: of its slowest endpoint) */
    double in_order; /* hosts as given, ranks in order */
    double random;   /* median of 9 random orders */
    double bound;    /* nothing can be faster; 0: nothing is claimed */
    long tried;      /* candidates priced */
    double took;     /* s */
    char how[256];   /* "tp,ep,dp_shard,pp: ep groups inside domains of 16 hosts; 3 moves" */
};

/* Too few endpoints: EXIT_USAGE.  Nothing can be priced: EXIT_UNJUDGED.  placed_free() also after
 * an error. */
int place_run(struct placed *p, const struct place_ask *ask, struct err *err);
void placed_free(struct placed *p);

#endif
