/* nccl_pairs.h - whose communicator a pair's messages are on.
 *
 *   own      one of two ranks, ncclCommInitRankConfig: what the others are compared with
 *   split    the same by ncclCommSplit of that of all ranks: a round's pairs by one call
 *   shared   that of all: nothing is made but the connection of the two, with its first message
 *   auto     for each tier of the plan's pairs what was found out before the campaign
 *
 * auto takes up to TRIAL_PAIRS pairs a tier and gives each both ways in turn, TRIAL_ROUNDS times:
 * latency of 8 bytes and bandwidth of the plan's size.  A tier shares where every median of every
 * pair lies within max(2 %, both half-widths) of that of the own one, and those are below 10 %: of
 * the 95 % interval of a median of normal values, 1.96 * 1.2533 sigma / sqrt(n), sigma by the MAD; inside an NVLink domain a large communicator is 10 to 20 times slower.  The
 * others are split where the split took less than the inits, and splitShare is not set, which makes
 * parts use the channels of the whole.
 *
 * Nothing said, it is auto where connecting pairs one by one, PAIRS_CONNECT each, would take longer
 * than PAIRS_PATIENCE (plan_connect_steps()), else own. */
#ifndef RG_NCCL_PAIRS_H
#define RG_NCCL_PAIRS_H

#include "probe/plan.h"
#include "probe/transport.h"
#include "probe/world.h"

enum { TRIAL_PAIRS = 3, TRIAL_ROUNDS = 9 };
#define PAIRS_PATIENCE 60.0 /* s */

/* Collective over w, once a campaign (the transport's prepare()); by_nic: tiers of
 * topo_nic_tier(). */
int nccl_pairs_prepare(const struct transport *tr, struct world *w, const struct topo *topo,
                       const struct plan *plan, bool by_nic, struct err *err);
/* Collective over w (the transport's round()): the pairs of a round get what they need. */
int nccl_pairs_round(struct world *w, const struct topo *topo, const struct round *r,
                     struct err *err);
/* Is this group a pair that shares?  The same on both. */
bool nccl_pairs_shared(const struct group *g);

#endif
