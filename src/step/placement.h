/* placement.h - which endpoint does rank i run on: hostfiles, node lists, segments, distributions.
 *
 * A hostfile has one line per host or rank, '#' starts a comment:
 *   r00n01            every endpoint of that host, in local order
 *   r00n01 slots=2    its first two not yet taken (mpirun's hostfile); "r00n01:2" is the same
 *   r00n01 3          its endpoint with local index 3
 *   17                endpoint 17
 * A line may be a host list ("r00n[01-18]"), then it stands for all of those hosts in turn.
 *
 * Otherwise nodes are put in a row and ranks are dealt over them, with the words of srun: the row
 * is the node list, or all hosts; `segment` nodes of a rack come before as many of the next
 * (topology/block keeps those together; which racks and in which order is its choice, so this is
 * the widest spread that it may make); `spread` deals ranks (srun --distribution). */
#ifndef RG_PLACEMENT_H
#define RG_PLACEMENT_H

#include <stdint.h>

#include "base/err.h"
#include "topo/fabrics/fabric.h"
#include "topo/topo.h"

enum spread {
    SPREAD_BLOCK,  /* a node is filled before the next */
    SPREAD_CYCLIC, /* one rank a node, round and round */
    SPREAD_COUNT
};

/* As typed; nothing is owned; zeros: rank i is endpoint i. */
struct placement {
    const char *order; /* hostfile; the others must be absent then */
    const char *nodes; /* "r00n[00-15],r01n03" */
    int segment;       /* nodes; 0: as they come */
    int spread;        /* enum spread */
};

/* order[rank] = endpoint, for *given ranks; the caller frees.  *order is NULL and *given the number
 * of endpoints when nothing is asked.  `ranks` is what the job has, 0: as many as there is room
 * for. An unknown or repeated node, too few endpoints, a rack that is not known: EXIT_USAGE with
 * the option's name. */
int placement_make(int **order, int *given, const struct topo *t, const struct placement *p,
                   int ranks, struct err *err);

/* Racks of a preset that so many ranks need: those of the nodes that are named, else as many as they
 * fill, where no rack holds more than whole segments.  0: cannot be told, also of an empty preset. */
int placement_racks(const struct placement *p, const struct fabric *f, int ranks);

/* A hostfile alone, from memory; `path` is for messages, text is changed.  An unknown host, an
 * endpoint given twice or not there: EXIT_DATA with file, line and the text. */
int placement_parse(int **order, int *ranks, const struct topo *t, char *text, const char *path,
                    struct err *err);

/* --- endpoints by host, in local order --- */

/* Those of host h are endpoint[first[h]] .. endpoint[first[h + 1] - 1]. */
struct host_slots {
    int *first, *endpoint;
};
void host_slots_make(struct host_slots *s, const struct topo *t);
void host_slots_free(struct host_slots *s);
/* Of host h those whose bits are set in mask[h], the first in bit 0; a host has 64 at most. */
void host_slots_keep(struct host_slots *s, int hosts, const uint64_t *mask);
/* How many a host has for a job: at most per_host, unless that is 0. */
static inline int host_slots_room(const struct host_slots *s, int host, int per_host)
{
    int has = s->first[host + 1] - s->first[host];

    return per_host > 0 && per_host < has ? per_host : has;
}

/* Ranks dealt over hosts (enum spread) until there are `ranks`; returns how many were. */
int host_slots_deal(const struct host_slots *s, const int *host, int hosts, int per_host,
                    int spread, int ranks, int *order);

#endif
