/* layers.h - groups of hosts within larger groups, found from measured pairs alone: NVLink domains
 * or racks, leaves, spines.
 *
 * Of what two hosts have, pairs of endpoints with the same number on their hosts count, where there
 * are any: others may cross rails.  The innermost layer clusters hosts (cluster.h); each further
 * one clusters the groups below it by the best that was seen between them, until no two kinds of
 * pairs are left.  A further layer needs two groups with several members: one slow rack is a fault,
 * not a fabric. */
#ifndef RG_LAYERS_H
#define RG_LAYERS_H

#include "fit/cluster.h"
#include "fit/observe.h"
#include "topo/topo.h"

enum { LAYERS_MAX = 3, RAIL_NUMBERS_MAX = 32 };

struct host_layer {
    int *of;        /* group of each host, -1: cannot be told */
    int groups;     /* numbered by their first host */
    int unresolved; /* hosts with of = -1 */
    enum clue clue;
    double near, far; /* medians: B/s or s, by clue */
    bool nvlink;      /* pairs inside get more than any NIC could carry */
    bool only_leaves; /* only endpoints on the same rail are near: the reach of the leaves */
};

/* Endpoints of hosts that share a leaf with those of their rail only: see host_rails.c. */
struct host_rails {
    int region; /* endpoints of a rail are nearer where layer `region` joins hosts; its count: among
                   all others; -1: there are no rails */
    int of[RAIL_NUMBERS_MAX]; /* rail of each number on a host */
    int count;
};

struct layers {
    struct host_layer layer[LAYERS_MAX]; /* inner first */
    int count;
    int contradictions; /* when nothing was found: far pairs inside groups, if those are why */
    struct host_rails rails;
};

/* unit: group of each host to start from (-1: none), NULL: every host by itself; then rails are
 * looked for as well.
 * rest: only pairs that no tier but the last joins. */
void layers_find(struct layers *l, const struct topo *t, const struct obs *o, int count,
                 const int *unit, bool rest);
/* Fills in l->rails, and which layer is nothing but the reach of leaves; the layers are there. */
void host_rails_find(struct layers *l, const struct topo *t, const struct obs *o, int count);
/* The rail of an endpoint; -1: none. */
int host_rails_of(const struct host_rails *r, const struct topo *t, int endpoint);
void layers_free(struct layers *l);
/* The level that the i-th of `count` layers stands for: racks, then spines; of three the middle one
 * is a leaf, or without NVLink the inner one; hosts that share nothing but leaves are a leaf. */
enum level layers_level(const struct layers *l, int i);

/* "bandwidth", "latency" */
static inline const char *clue_name(enum clue c)
{
    return c == CLUE_LATENCY ? "latency" : c == CLUE_BANDWIDTH ? "bandwidth" : "nothing";
}

#endif
