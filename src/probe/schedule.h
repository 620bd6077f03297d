/* schedule.h - which pairs meet when: the pair schedules behind plan_make().
 *
 * Order matters on routed fabrics: on destination-mod-k routing the circle method and shifts in
 * leaf order are free of contention while random matchings slow 61 % of the flows (research of this
 * project's simulator; the same argument as LLNL-TR-418522 for shifts). */
#ifndef RG_SCHEDULE_H
#define RG_SCHEDULE_H

#include "base/stats.h"
#include "probe/plan.h"

struct pairs {
    int (*pair)[2];
    int count;
};

/* Round r of the circle method over v[0..n-1]: n-1 rounds (n odd: n rounds, one sits out) meet
 * every pair once.  out is appended to. */
int schedule_circle_rounds(int n);
void schedule_circle(struct pairs *out, const int *v, int n, int r);

/* Everybody pairs with the one d places further on, alternating blocks of d: a shift as a matching.
 */
void schedule_shift(struct pairs *out, const int *v, int n, int d);

/* One matching of tier `tier`: as many disjoint pairs of that tier as a scan in leaf order from a
 * seeded distance finds. */
void schedule_matching(struct pairs *out, const struct topo *t, const int *order, int tier,
                       struct rng *rng);

/* Endpoint ids by rack, domain, host, index on the host; the caller frees. */
int *schedule_leaf_order(const struct topo *t);

#endif
