/* grouping.h - hosts in groups, and how two groupings of the same hosts relate. */
#ifndef RG_GROUPING_H
#define RG_GROUPING_H

#include <stdbool.h>

#include "topo/groups.h"

struct grouping {
    enum source source;
    enum level level;
    int above;    /* tiers of switches wider than a spine */
    char *origin; /* file, or what it was measured by: "bandwidth" */
    int *of;      /* group of each host of the topology, -1: not told */
    char **name;
    int groups;
    int strangers;  /* hosts that the source names and the topology lacks */
    char *stranger; /* the first of them, or NULL */
};

void grouping_free(struct grouping *g);
char *grouping_title(const struct grouping *g); /* "slurm topology.conf, domain"; caller frees */

/* a seen from b.  Groups of one host say nothing, so a grouping that has no other is related to
 * nothing. */
enum relation {
    RELATION_NONE, /* fewer than two hosts in common, or nothing grouped */
    RELATION_EQUAL,
    RELATION_FINER,   /* every group of a lies inside one of b */
    RELATION_COARSER, /* every group of b lies inside one of a */
    RELATION_CROSSING,
    RELATIONS
};

/* A host that a puts elsewhere than b does. */
struct misfit {
    int host;
    int in;   /* group of a that holds it */
    int with; /* group of a that it belongs to by b; -1: b's group is no one group of a */
    int seen; /* its group in b */
    int swap; /* host that is the other way round, -1 */
};

struct compared {
    enum relation relation;
    int hosts;       /* told by both */
    int same;        /* groups of a that are groups of b */
    double together; /* pairs of hosts that share a group in both / in either */
    struct misfit *misfit;
    int misfits; /* by host; only when crossing */
};

/* n hosts. */
void grouping_compare(struct compared *c, const struct grouping *a, const struct grouping *b,
                      int n);
void compared_free(struct compared *c);
/* Do they contradict each other?  Crossing ones do.  Nested ones do where most groups are equal and
 * a few are merged or split: those are mistakes, not another level. */
static inline bool compared_differ(const struct compared *c, const struct grouping *a)
{
    bool nested = c->relation == RELATION_FINER || c->relation == RELATION_COARSER;

    return c->relation == RELATION_CROSSING || (nested && 2 * c->same >= a->groups);
}

#endif
