/* pricer.h - what a message costs on the slowest group of a span.
 *
 * All groups of a span run at the same time; each span is folded once (struct groups).
 * pricer_message_cost() is exact and has words.  pricer_message() looks up a curve per (span, op,
 * kernel): 64 sizes an octave, equally spaced inside it, filled on first use and joined by straight
 * lines.  Powers of two and their 64ths are on the grid, so curves of the usual ladders are met
 * exactly; a kink elsewhere is missed by at most 1/256 of the time (half a step to either side,
 * slope from none to all).
 *
 * Dispatch and combine by an expert-parallel kernel are priced as matrix_ep() does: at the kernel's
 * own rates where they are known, else as the all_to_all that they replace. */
#ifndef RG_PRICER_H
#define RG_PRICER_H

#include <stdint.h>

#include "cost/collective.h"
#include "step/layout.h"
#include "step/traffic.h"

/* The groups of an axis under a placement, folded to those that differ.
 *
 * 100,000 ranks make 12,500 tp groups that nearly all look alike.  Two groups are alike when
 * everything that prices them is equal: shape, the ways between members, and the exceptions of the
 * matrix that slow them; one of each kind is priced, so a slow NIC is never averaged away.
 *
 * Folding is O(ranks): first by who is on whose host, domain, leaf, rack, rail and NIC, position by
 * position, and with which exceptions (a hash); then the few that are left by their ways. */
struct group_kind {
    int index; /* the first group of this kind */
    int like;  /* how many groups are of it */
    /* Ways of a ring, of sendrecv in rank order, and of all pairs: a slow part may be on some of them only. */
    struct ways ring, next, across;
};

struct groups {
    struct span span;
    int total; /* groups */
    struct group_kind *kind;
    int kinds; /* of orders before this one, too: like is 0 then */
};

/* Endpoints of group `index`, in rank order; ids has room for span.size. */
static inline void groups_ids(const struct groups *g, const int *order, int index, int *ids)
{
    for (int i = 0; i < g->span.size; i++) {
        int rank = span_rank(&g->span, index, i);
        ids[i] = order ? order[rank] : rank;
    }
}

/* Per endpoint a number made of the exceptions of the matrix that touch it, 0: none; the caller
 * frees. */
uint64_t *places_marks(const struct matrix *m);

struct pricer; /* of one thread */

/* The first `ranks` ranks; the matrix must outlive it.  order: rank -> endpoint, NULL: rank i
 * is endpoint i.  More ranks than endpoints, or an order beyond them: EXIT_USAGE. */
int pricer_open(struct pricer **out, const struct matrix *m, const int *order, int ranks,
                struct err *err);
void pricer_close(struct pricer *p);
/* As many ranks in another order: only the groups of ranks that lie elsewhere are folded again, and
 * those that lie as one of an order before did are not priced again.  Curves of pricer_curve() are
 * asked for again; kinds that no group is of now have like 0. */
int pricer_reorder(struct pricer *p, const int *order, struct err *err);
/* Most orders to come differ little from the one of now: groups that are back where they lie in it
 * are not folded again. */
void pricer_base(struct pricer *p);

/* Seconds of one message on its slowest group: NAN when any group's cost is unknown, INFINITY when
 * a part is dead, 0 for groups of one rank.  Within 0.5 % of pricer_message_cost(). */
double pricer_message(struct pricer *p, const struct message *msg);
/* The same in two steps, for many sizes of the messages of a list: their curves, which the pricer
 * keeps (NULL for groups of one rank), and on them the prices sec[i] of msg[i] for each bit i of a
 * set; returns their sum. */
struct price_curve;
struct price_curve *pricer_curve(struct pricer *p, const struct message *msg);
double pricer_curves_at(const struct pricer *p, struct price_curve *const *curve,
                        const struct message *msg, uint64_t set, double *sec);
/* The same exactly; *mean: of all groups, which tells placements apart whose slowest groups are
 * alike. */
double pricer_message_mean(struct pricer *p, const struct message *msg, double *mean);
/* The same exactly, with words; *group: which one rules (-1 for groups of one rank). */
void pricer_message_cost(struct pricer *p, const struct message *msg, struct cost *out, int *group);
/* Seconds of one message on a group of these ways, wherever it lies. */
double pricer_ways(const struct matrix *m, const struct message *msg, const struct ways *ways);
/* The folded groups of a span of at least two ranks; the pricer keeps them. */
const struct groups *pricer_groups(struct pricer *p, struct span span);

#endif
