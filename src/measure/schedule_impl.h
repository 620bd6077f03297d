/* schedule_impl.h - pair schedules behind plan_make(): which pairs run together in a round.
 *
 * Order matters on routed fabrics: with destination-mod-k routing, the circle method and shifts in
 * leaf order are free of contention, while random matchings slow 61 % of the flows (measured on
 * this project's simulator; LLNL-TR-418522 argues the same for shifts). */
#ifndef RG_SCHEDULE_H
#define RG_SCHEDULE_H

#include "base/stats.h"
#include "measure/plan.h"

struct pairs {
    int (*pair)[2];
    int count;
};

/* Append round r of the circle method over v[0..n-1] to out.  Its n-1 rounds (n odd: n rounds, one
 * endpoint idle in each) cover every pair once. */
static inline int schedule_circle_rounds(int n)
{
    return n - 1 + n % 2;
}
void schedule_circle(struct pairs *out, const int *v, int n, int r);

/* Pair each endpoint with the one d places further on, in alternating blocks of d: a shift as a
 * matching. */
void schedule_shift(struct pairs *out, const int *v, int n, int d);

/* Append round r of a search for racks among hosts in listed order.  Up to FIND_ROUNDS + 1 hosts,
 * use all rounds of the circle method.  For more hosts, first pair all hosts at most FIND_NEAR
 * places apart, because neighbours in a list are mostly neighbours in a rack, then add randomly
 * chosen rounds of the circle method (the same ones in every run).  Enough pairs of each two racks
 * are measured to tell the groups apart (cluster.h), and the campaign takes no longer than with
 * FIND_ROUNDS + 1 hosts.  Rounds at even steps would resonate with hosts that are listed
 * round-robin over the racks. */
enum { FIND_ROUNDS = 511, FIND_NEAR = 64, FIND_HOSTS_MAX = 4096 };
int schedule_find_rounds(int n);
void schedule_find(struct pairs *out, const int *v, int n, int r);

/* Append one matching of tier `tier`: as many disjoint pairs as a scan in leaf order from a seeded
 * distance finds.  In groups of few endpoints, pairs of round `turn` of the circle method come
 * first, so that other turns give other partners.  by_nic: use topo_nic_tier(), two NICs per
 * pair. */
void schedule_matching(struct pairs *out, const struct topo *t, const int *order, int tier,
                       bool by_nic, int turn, struct rng *rng);

/* Append round r of the circle method over the groups of a level.  Each endpoint of a group is
 * paired with an endpoint of the partner group, because thinner uplinks show only when all NICs of
 * a group send at once.
 *
 *   leaves  are paired with leaves of the same rail (any leaf if rails are not known), then with
 *           leaves of other rails and the same hosts, half of them sending to all others
 *   both    leaves and racks are paired within their spine, so that no load goes beyond the spine
 *
 * Empty if the level is not visible, if each group equals a group of the level below in this order,
 * or beyond the last round.  UPLINK_PARTNERS partners are enough to tell a slow leaf from a slow
 * partner, because the partners are paired with each other as well. */
enum { UPLINK_PARTNERS = 3 };
void schedule_uplinks(struct pairs *out, const struct topo *t, const int *order, enum level level,
                      int r);

/* Append round r of a series that connects every two NICs once; every endpoint sends or receives in
 * each round.  NVLink domains (hosts, if there are no domains) are paired by the circle method, and
 * their endpoints are shifted by an amount that depends on the round, so that any first rounds are
 * spread over all pairs of domains.  For a single domain, or domains of different sizes: the circle
 * method over all endpoints.  Returns the number of rounds; r < 0: return it only. */
int schedule_cables(struct pairs *out, const struct topo *t, const int *order, int r);

/* Append round r of at most RACK_ROUNDS in which each two racks are paired, by RACK_MEETINGS
 * endpoints of each over their NICs, with as many other racks at once as endpoints suffice for.
 * Matchings alone would leave out most pairs of many racks.  Both numbers are halved if
 * plan_is_sparse().  False: this was the last round. */
enum { RACK_ROUNDS = 16, RACK_MEETINGS = 4 };
bool schedule_racks(struct pairs *out, const struct topo *t, const int *order, int r);
/* Pair the two halves of each rack, over NICs, shifted by d places.  These pairs tell a slow rack
 * from slow uplinks. */
void schedule_within_racks(struct pairs *out, const struct topo *t, const int *order, int d);

/* Endpoint ids sorted by rack, domain, host and index on the host.  The caller frees. */
int *schedule_leaf_order(const struct topo *t);

/* --- second stage: repeated measurements --- */

/* Limits of looks at suspects and controls, and of single pairs; with quick few looks, once.
 * RETEST_ROUNDS is above the number of rounds that result. */
enum {
    RETEST_LOOKS = 1024,
    RETEST_PAIRS = 32,
    RETEST_QUICK = 8,        /* with quick: the larger of this and the number of endpoints, */
    RETEST_MOST_QUICK = 256, /* at most this */
    RETEST_PAIRS_QUICK = 4,
    RETEST_ROUNDS = 2048
};

/* Plan the second stage.  Suspects of the first stage (noise_suspects()) are measured again and
 * judged by the new looks alone, because the looks that chose a suspect are slow by selection.
 *
 *   suspects   for a group, 8 random members; only the kinds of look that raised the suspicion
 *   controls   per suspect, one on the same leaf (elsewhere if the leaf is suspected), and 6 from
 *              anywhere
 *   looks      equally many for each, at most 48, each with another random partner that is neither
 *              suspect nor control; half of the partners on the same leaf, half of the looks alone,
 *              half receiving; over all blocks in mixed order (STAGE_FRESH_TX, _RX; one size)
 *   pairs      slower than both of their ends, at most RETEST_PAIRS, and one normal pair per tier:
 *              alone, once in each block (STAGE_RETEST)
 *
 * The same points of the first stage and the same plan give the same rounds.  quick: fewer looks,
 * and pairs in one block only.  by_nic: use pairs with NVLink bypassed, else the others.  The
 * result of the judge stays in p->judged. */
struct points;
void schedule_retest(struct plan *out, const struct topo *t, struct points *p, bool by_nic,
                     bool quick);

/* Single pairs for schedule_retest(): at most `most` pairs that the judge suspects or that lie
 * furthest below what their two ends explain, and one normal pair for each tier among them. */
struct noise_input;
struct noise;
void schedule_retest_pairs(struct plan *out, const struct noise_input *in,
                           const struct noise *noise, const struct plan_pairs *what, int most);

#endif
