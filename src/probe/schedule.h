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
static inline int schedule_circle_rounds(int n)
{
    return n - 1 + n % 2;
}
void schedule_circle(struct pairs *out, const int *v, int n, int r);

/* Everybody pairs with the one d places further on, alternating blocks of d: a shift as a matching.
 */
void schedule_shift(struct pairs *out, const int *v, int n, int d);

/* Rounds in which hosts, in the order in which they are listed, look for those that they share a
 * rack with.  Up to FIND_ROUNDS + 1 hosts all rounds of the circle method; of more hosts every pair
 * that is at most FIND_NEAR places apart, since neighbours in a list are mostly neighbours, then
 * rounds of the circle method by chance, the same ones each time: so many pairs of two racks meet
 * that groups can be told apart (cluster.h), and the campaign takes no longer than with FIND_ROUNDS
 * + 1 hosts.  Rounds in even steps would resonate with hosts that are dealt out over racks. */
enum { FIND_ROUNDS = 511, FIND_NEAR = 64, FIND_HOSTS_MAX = 4096 };
int schedule_find_rounds(int n);
void schedule_find(struct pairs *out, const int *v, int n, int r);

/* One matching of tier `tier`: as many disjoint pairs of that tier as a scan in leaf order from a
 * seeded distance finds; in groups of few endpoints first those of round `turn` of the circle method,
 * so that other turns find other partners.  by_nic: of topo_nic_tier(), two NICs a pair. */
void schedule_matching(struct pairs *out, const struct topo *t, const int *order, int tier,
                       bool by_nic, int turn, struct rng *rng);

/* Round r of the circle method over the groups of a level, and everybody of one with somebody of the other:
 * only so do all NICs of a group send out at once, as they do where what is above it is thinner than they
 * are.  Leaves meet others of their rail (where rails are not known, all), then those of other rails and the same
 * hosts, half of them sending to all others.  Leaves and racks meet others of their spine, so that nothing beyond
 * is loaded.  Empty where the level is not visible, where each of its groups is one of the level below it in this
 * order, and beyond the last round.  With UPLINK_PARTNERS others, what a leaf gets is told from what two of them
 * give each other. */
enum { UPLINK_PARTNERS = 3 };
void schedule_uplinks(struct pairs *out, const struct topo *t, const int *order, enum level level,
                      int r);

/* Round r of so many that join every two NICs once: everybody sends or receives in each.  NVLink
 * domains (hosts, where there are none) meet by the circle method, and all of their endpoints,
 * shifted by as much as the round says, so that any first rounds are spread over all pairs of
 * domains.  Of one domain, or of domains that differ in size: the circle method over everybody.
 * Returns how many rounds there are; r < 0: only that. */
int schedule_cables(struct pairs *out, const struct topo *t, const int *order, int r);

/* Round r of at most RACK_ROUNDS in which each two racks meet, RACK_MEETINGS endpoints of either over
 * their NICs, at once with as many other racks as endpoints suffice for: matchings leave most of many
 * pairs of racks out.  Where plan_is_sparse(), half of both.  False: it is the last. */
enum { RACK_ROUNDS = 16, RACK_MEETINGS = 4 };
bool schedule_racks(struct pairs *out, const struct topo *t, const int *order, int r);
/* Both halves of each rack, over NICs, d places shifted: what tells a rack from its uplinks. */
void schedule_within_racks(struct pairs *out, const struct topo *t, const int *order, int d);

/* Endpoint ids by rack, domain, host, index on the host; the caller frees. */
int *schedule_leaf_order(const struct topo *t);

/* --- what is measured again --- */

/* Looks at suspects and controls together, single pairs; with quick few, once.  RETEST_ROUNDS is above the
 * number of rounds that this makes. */
enum {
    RETEST_LOOKS = 1024,
    RETEST_PAIRS = 32,
    RETEST_QUICK = 8,        /* or as many looks as there are endpoints, */
    RETEST_MOST_QUICK = 256, /* up to this */
    RETEST_PAIRS_QUICK = 4,
    RETEST_ROUNDS = 2048
};

/* The second stage: what the judge suspects after the first (noise_suspects()) is measured again, and judged
 * by these looks alone, because those that chose it are slow by choice.
 *
 *   suspects   of a group 8 members by chance, only by the kinds of look that they are suspected for
 *   controls   one a suspect on its own leaf, elsewhere if the leaf is suspected, and 6 from anywhere
 *   looks      of each equally many, at most 48, each with another partner by chance that is neither; half of
 *              the partners on the same leaf, half of the looks alone, half receiving; over all blocks in
 *              mixed order (STAGE_FRESH_TX, _RX; one size)
 *   pairs      slower than both of their ends, at most RETEST_PAIRS, and for each tier one as usual: alone,
 *              once in each block (STAGE_RETEST)
 *
 * The same points of the first stage and the same plan give the same rounds.  quick: fewer looks; pairs in
 * one block.  by_nic: of the pairs that left NVLink, else of the others.  What the judge made of the points stays in
 * p->judged. */
struct points;
void schedule_retest(struct plan *out, const struct topo *t, struct points *p, bool by_nic,
                     bool quick);

/* Single pairs for schedule_retest(): at most `most` that the judge suspects or that lie furthest below what
 * their two ends explain, and for each tier among them one pair that is as usual. */
struct noise_input;
struct noise;
struct retest_how {
    enum stage stage;
    unsigned epochs;
    size_t bytes;
    int most;
};
void schedule_retest_pairs(struct plan *out, const struct noise_input *in,
                           const struct noise *noise, const struct retest_how *how);

#endif
