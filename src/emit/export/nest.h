/* nest.h - a machine as equal groups of equal groups, for programs that know no other shape.
 *
 * The tiers make the groups: whom the first tier joins is the innermost dimension 0, whom the next
 * one joins of these groups is dimension 1, and so on; each group stands for itself by its first
 * node.  So what lies between groups is taken between members at the same place: same rail, not
 * across rails. */
#ifndef RG_NEST_H
#define RG_NEST_H

#include "cost/matrix.h"
#include "emit/export/nodes.h"

struct nest_dim {
    int size;  /* groups of the dimension below, or nodes */
    int level; /* enum level that its members share; -1: the whole machine */
    int tier;
    int *group; /* of each node, in order of appearance */
};

struct nest {
    struct nest_dim dim[TIER_MAX + 1];
    int dims;
    int *order; /* indices into nodes; the last dimension varies slowest */
    int count;
};

/* hosts: the hosts are a dimension of their own where they hold several nodes, also when their tier
 * joins more.  EXIT_DATA: groups differ in size, or nodes are in no group; both are named.
 * nest_free() also after an error. */
int nest_make(struct nest *n, const struct matrix *m, const struct nodes *nodes, bool hosts,
              struct err *err);
void nest_free(struct nest *n);
/* Nodes of a group of dimension d: the product of the sizes up to it. */
int nest_within(const struct nest *n, int d);

#endif
