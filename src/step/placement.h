/* placement.h - assignment of ranks to endpoints: hostfiles, node lists, segments, distributions.
 *
 * A hostfile has one line per host or rank; '#' starts a comment:
 *   r00n01            every endpoint of that host, in local order
 *   r00n01 slots=2    its first two free endpoints (mpirun's hostfile); "r00n01:2" is the same
 *   r00n01 3          its endpoint with local index 3
 *   17                endpoint 17
 * A line may be a host list ("r00n[01-18]"), which stands for all of those hosts in order.
 *
 * Otherwise ranks are distributed over a row of nodes, with the words of srun: the row is the node
 * list, or all hosts; `segment` nodes of a rack are followed by as many of the next rack
 * (topology/block keeps them together but chooses the racks and their order, so this is the widest
 * spread it may make); `spread` distributes ranks (srun --distribution). */
#ifndef RG_PLACEMENT_H
#define RG_PLACEMENT_H

#include <stdint.h>

#include "base/err.h"
#include "topo/fabrics/fabric.h"
#include "topo/topo.h"

enum spread {
    SPREAD_BLOCK,  /* a node is filled before the next */
    SPREAD_CYCLIC, /* one rank per node, repeatedly */
    SPREAD_COUNT
};

/* Options as typed; all pointers are borrowed.  Zeros: rank i is endpoint i. */
struct placement {
    const char *order; /* hostfile; excludes the other options */
    const char *nodes; /* "r00n[00-15],r01n03" */
    int segment;       /* nodes; 0: nodes in order */
    int spread;        /* enum spread */
};

/* Set order[rank] = endpoint for *given ranks.  The caller frees.  Without options *order is NULL
 * and *given the number of endpoints.  ranks: size of the job; 0: all that fit.  EXIT_USAGE with
 * the option's name: an unknown or repeated node, too few endpoints, an unknown rack. */
int placement_make(int **order, int *given, const struct topo *t, const struct placement *p,
                   int ranks, struct err *err);

/* Returns the number of racks of a preset that the job needs: those of the named nodes, otherwise
 * as many as the ranks fill if each rack takes whole segments only.  0: unknown, or an empty
 * preset. */
int placement_racks(const struct placement *p, const struct fabric *f, int ranks);

/* Parse a hostfile from memory; `path` is for messages, text is changed.  EXIT_DATA with file, line
 * and text: an unknown host, or an endpoint that is missing or given twice. */
int placement_parse(int **order, int *ranks, const struct topo *t, char *text, const char *path,
                    struct err *err);

/* --- endpoints by host, in local order --- */

/* Endpoints of host h are endpoint[first[h]] .. endpoint[first[h + 1] - 1]. */
struct host_slots {
    int *first, *endpoint;
};
void host_slots_make(struct host_slots *s, const struct topo *t);
void host_slots_free(struct host_slots *s);
/* Keep only the endpoints of host h whose bit is set in mask[h]; bit 0 is the first.  A host has at
 * most 64. */
void host_slots_keep(struct host_slots *s, int hosts, const uint64_t *mask);
/* Returns the number of endpoints of a host for a job: at most per_host, unless that is 0. */
static inline int host_slots_room(const struct host_slots *s, int host, int per_host)
{
    int has = s->first[host + 1] - s->first[host];

    return per_host > 0 && per_host < has ? per_host : has;
}

/* Assign ranks to hosts (enum spread) until `ranks` are assigned.  Returns the number assigned. */
int host_slots_deal(const struct host_slots *s, const int *host, int hosts, int per_host,
                    int spread, int ranks, int *order);

#endif
