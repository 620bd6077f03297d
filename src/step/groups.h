/* groups.h - the groups of an axis under a placement, folded to those that differ.
 *
 * 100,000 ranks make 12,500 tp groups that nearly all look alike.  Two groups are alike when
 * everything that prices them is equal: shape, the ways between members, and the exceptions of the
 * matrix that slow them; one of each kind is priced, so a slow NIC is never averaged away.
 *
 * Folding is O(ranks): first by who is on whose host, domain, leaf, rack, rail and NIC, position by
 * position, and with which exceptions (a hash); then the few that are left by their ways. */
#ifndef RG_GROUPS_H
#define RG_GROUPS_H

#include <stdint.h>

#include "cost/collective.h"
#include "step/layout.h"

/* Where each rank lies, as folding reads it; made once for a matrix and an order. */
struct places {
    const struct matrix *matrix;
    const int *order; /* rank -> endpoint; NULL: rank i is endpoint i */
    int ranks;
    bool pairs; /* some exception is of a pair: rings of neighbours may miss it */
    struct rank_place *rank;
    struct label_slot *slot; /* scratch: labels of the group at hand */
    unsigned stamp;          /* the group at hand */
};

/* Per endpoint a number made of the exceptions of the matrix that touch it, 0: none; the caller
 * frees. */
uint64_t *places_marks(const struct matrix *m);
void places_open(struct places *p, const struct matrix *m, const int *order, int ranks);
void places_close(struct places *p);

struct group_kind {
    int index;                /* the first group of this kind */
    int like;                 /* how many groups are of it */
    struct ways ring, across; /* what neighbours in rank order use, and what all pairs use */
};

struct groups {
    struct span span;
    int total; /* groups */
    struct group_kind *kind;
    int kinds;
};

/* The groups of all p->ranks along a span of at least two ranks. */
void groups_find(struct groups *g, struct places *p, struct span span);
void groups_free(struct groups *g);
/* Endpoints of group `index`, in rank order; ids has room for span.size. */
void groups_ids(const struct groups *g, const int *order, int index, int *ids);

#endif
