/* pricer.h - cost of a message on the slowest group of a span.
 *
 * All groups of a span run at the same time.  Each span is folded once (struct groups).
 * pricer_message_cost() is exact and gives text.  pricer_message() uses a curve per (span, op,
 * kernel): 64 sizes per octave, equally spaced inside it, filled on first use and joined by
 * straight lines.  Powers of two and their 64ths are on the grid, so curves of the usual ladders
 * are exact.  The error at a kink elsewhere is at most 1/256 of the time (half a step to either
 * side, slope from zero to full).
 *
 * Dispatch and combine by an expert-parallel kernel are priced as in matrix_ep(): at the kernel's
 * own rates if known, otherwise as the all_to_all that they replace. */
#ifndef RG_PRICER_H
#define RG_PRICER_H

#include <stdint.h>

#include "matrix/collective.h"
#include "step/layout.h"
#include "step/traffic.h"

/* The groups of an axis under a placement, folded into kinds of equal groups.
 *
 * 100,000 ranks make 12,500 tp groups that are nearly all alike.  Two groups are alike if
 * everything that prices them is equal: shape, paths between members, and the exceptions of the
 * matrix that slow them.  One group of each kind is priced, so a slow NIC is never averaged away.
 *
 * Folding takes O(ranks): first by a hash of the host, domain, leaf, rack, rail and NIC that
 * members share, position by position, and of their exceptions; then the few remaining ones by
 * their paths. */
struct group_kind {
    int index; /* first group of this kind */
    int like;  /* number of groups of this kind */
    /* Paths of a ring, of sendrecv in rank order, and of all pairs; a slow part may be on only some
     * of them. */
    struct ways ring, next, across;
};

struct groups {
    struct span span;
    int total; /* number of groups */
    struct group_kind *kind;
    int kinds; /* includes kinds of earlier orders, with like 0 */
};

/* List the endpoints of group `index` in rank order; ids has room for span.size. */
static inline void groups_ids(const struct groups *g, const int *order, int index, int *ids)
{
    for (int i = 0; i < g->span.size; i++) {
        int rank = span_rank(&g->span, index, i);
        ids[i] = order ? order[rank] : rank;
    }
}

/* Returns per endpoint a hash of the exceptions of the matrix that touch it; 0: none.  The caller
 * frees. */
uint64_t *places_marks(const struct matrix *m);

struct pricer; /* for one thread */

/* Open a pricer for the first `ranks` ranks.  The matrix must outlive it.  order: rank -> endpoint;
 * NULL: rank i is endpoint i.  EXIT_USAGE: more ranks than endpoints, or an endpoint beyond
 * them. */
int pricer_open(struct pricer **out, const struct matrix *m, const int *order, int ranks,
                struct err *err);
void pricer_close(struct pricer *p);
/* Set another order of the same number of ranks.  Only groups of moved ranks are folded again, and
 * only kinds new to the pricer are priced.  Curves of pricer_curve() become invalid.  Kinds without
 * a group now have like 0. */
int pricer_reorder(struct pricer *p, const int *order, struct err *err);
/* Tell the pricer that most later orders differ little from the current one, so that groups back in
 * their current positions are not folded again. */
void pricer_base(struct pricer *p);

/* Returns the seconds of one message on its slowest group.  NAN: the cost of a group is unknown;
 * INFINITY: a part is dead; 0: groups of one rank.  Within 0.5 % of pricer_message_cost(). */
double pricer_message(struct pricer *p, const struct message *msg);
/* Same in two steps, for many sizes of a list of messages.  pricer_curve() returns the curve of a
 * message, kept by the pricer (NULL for groups of one rank).  pricer_curves_at() sets the price
 * sec[i] of msg[i] for each bit i of a set and returns their sum. */
struct price_curve;
struct price_curve *pricer_curve(struct pricer *p, const struct message *msg);
double pricer_curves_at(const struct pricer *p, struct price_curve *const *curve,
                        const struct message *msg, uint64_t set, double *sec);
/* Exact price of a message.  *mean: mean over all groups, to compare placements with equal slowest
 * groups. */
double pricer_message_mean(struct pricer *p, const struct message *msg, double *mean);
/* Exact price with text.  *group: index of the slowest group (-1 for groups of one rank). */
void pricer_message_cost(struct pricer *p, const struct message *msg, struct cost *out, int *group);
/* Returns the seconds of one message on a group with these paths, wherever it is placed. */
double pricer_ways(const struct matrix *m, const struct message *msg, const struct ways *ways);
/* Returns the folded groups of a span of at least two ranks, owned by the pricer. */
const struct groups *pricer_groups(struct pricer *p, struct span span);

#endif
