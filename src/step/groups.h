/* groups.h - the groups of an axis under a placement, folded to those that differ.
 *
 * 100,000 ranks make 12,500 tp groups that nearly all look alike.  Two groups are alike when shape,
 * the tiers between neighbours in rank order, and the exceptions of the matrix that touch their
 * members agree; one of each kind is priced, so a slow NIC is never averaged away. */
#ifndef RG_GROUPS_H
#define RG_GROUPS_H

#include "cost/matrix.h"
#include "step/layout.h"

struct groups {
    struct span span;
    int total;  /* groups */
    int *index; /* of each kind, the first group */
    int *like;  /* how many groups are of that kind */
    int kinds;
};

/* The groups of `ranks` ranks along a span; order: rank -> endpoint, NULL: rank i is endpoint i;
 * mark[]: groups_mark() of the same matrix. */
void groups_find(struct groups *g, const struct matrix *m, struct span span, int ranks,
                 const int *order, const uint64_t *mark);
void groups_free(struct groups *g);

/* Per endpoint a number made of the exceptions that touch it, 0 for none; the caller frees. */
uint64_t *groups_mark(const struct matrix *m);

/* Endpoints of group `index`, in rank order; ids has room for span.size. */
void groups_ids(const struct groups *g, const int *order, int index, int *ids);
/* The dearest kind: its cost, and which group.  out->sec is NAN when any group's cost is unknown.
 */
void groups_slowest(const struct groups *g, const struct matrix *m, const int *order, enum op op,
                    double bytes, struct cost *out, int *index);

#endif
