/* layers.h - groups of hosts within larger groups, found from measured pairs alone: NVLink domains
 * or racks, leaves, spines.
 *
 * The innermost layer clusters hosts (cluster.h); each further one clusters the groups below it by
 * the best that was seen between them, until no two kinds of pairs are left.  A further layer needs
 * two groups with several members: one slow rack is a fault, not a fabric. */
#ifndef RG_LAYERS_H
#define RG_LAYERS_H

#include "cost/cluster.h"
#include "cost/observe.h"
#include "topo/topo.h"

enum { LAYERS_MAX = 3 };

struct layer {
    int *of;        /* group of each host, -1: cannot be told */
    int groups;     /* numbered by their first host */
    int unresolved; /* hosts with of = -1 */
    enum clue clue;
    double near, far; /* medians: B/s or s, by clue */
    bool nvlink;      /* pairs inside get more than any NIC could carry */
};

struct layers {
    struct layer layer[LAYERS_MAX]; /* inner first */
    int count;
    int contradictions; /* when nothing was found: far pairs inside groups, if those are why */
};

/* unit: group of each host to start from (-1: none), NULL: every host by itself.  rest: only pairs
 * that no tier but the last joins. */
void layers_find(struct layers *l, const struct topo *t, const struct obs *o, int count,
                 const int *unit, bool rest);
void layers_free(struct layers *l);
/* The level that the i-th of `count` layers stands for: racks, then spines; of three the middle one
 * is a leaf, or without NVLink the inner one. */
enum level layers_level(const struct layers *l, int i);
const char *clue_name(enum clue c); /* "bandwidth", "latency" */

#endif
