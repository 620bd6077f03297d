/* grouping.h - hosts in groups, and how two groupings of the same hosts relate. */
#ifndef RG_GROUPING_H
#define RG_GROUPING_H

#include <stdbool.h>

#include "topo/groups.h"

struct grouping {
    enum source source;
    enum level level;
    int above;    /* number of switch tiers above the spines */
    char *origin; /* file, or the quantity measured: "bandwidth" */
    int *of;      /* group of each host of the topology; -1: unknown */
    char **name;
    int groups;
    int strangers;  /* number of hosts that the source names and the topology lacks */
    char *stranger; /* first such host, or NULL */
};

void grouping_free(struct grouping *g);
char *grouping_title(const struct grouping *g); /* "slurm topology.conf, domain"; caller frees */

/* Relation of a to b.  Groups of one host carry no information, so a grouping with only such groups
 * is unrelated to any other. */
enum relation {
    RELATION_NONE, /* fewer than two common hosts, or nothing grouped */
    RELATION_EQUAL,
    RELATION_FINER,   /* every group of a lies inside a group of b */
    RELATION_COARSER, /* every group of b lies inside a group of a */
    RELATION_CROSSING,
    RELATIONS
};

/* A host whose group in a contradicts b. */
struct misfit {
    int host;
    int in; /* group of a that contains the host */
    /* group of a it belongs to according to b; -1: b's group matches no single group of a */
    int with;
    int seen; /* group of b that contains the host */
    int swap; /* host misplaced the other way round; -1: none */
};

struct compared {
    enum relation relation;
    int hosts;       /* number of hosts that both group */
    int same;        /* number of groups that are equal in a and b */
    double together; /* host pairs grouped together in both / in either */
    struct misfit *misfit;
    int misfits; /* ordered by host; only if crossing */
};

/* Compare two groupings of n hosts.  Call compared_free() afterwards. */
void grouping_compare(struct compared *c, const struct grouping *a, const struct grouping *b,
                      int n);
void compared_free(struct compared *c);
/* True if the groupings contradict each other.  Crossing ones do.  Nested ones do if most groups
 * are equal and a few are merged or split, because those are mistakes, not another level. */
static inline bool compared_differ(const struct compared *c, const struct grouping *a)
{
    bool nested = c->relation == RELATION_FINER || c->relation == RELATION_COARSER;

    return c->relation == RELATION_CROSSING || (nested && 2 * c->same >= a->groups);
}

#endif
