/* nccl_pairs_impl.h - choice of the communicator for the messages of a pair.
 *
 *   own      a communicator of the two ranks, ncclCommInitRankConfig; the baseline for the others
 *   split    the same by ncclCommSplit of the communicator of all ranks: one call for all pairs of
 *            a round
 *   shared   the communicator of all ranks: only the connection of the two is made, with the first
 *            message
 *   auto     per tier of the plan's pairs, from a trial before the campaign
 *
 * The trial takes up to TRIAL_PAIRS pairs per tier and measures each with both kinds in turn,
 * TRIAL_ROUNDS times: latency of 8 bytes and bandwidth of the plan's size.  A tier uses `shared` if
 * every median of every pair lies within max(2 %, both half-widths) of the median with `own`, and
 * the half-widths are below 10 %.  Half-width: 95 % interval of a median of normal values, 1.96 *
 * 1.2533 sigma / sqrt(n), sigma by the MAD.  (Inside an NVLink domain a large communicator is 10 to
 * 20 times slower.)  Other tiers use `split` if the split took less time than the inits and
 * splitShare is not set, which would make parts use the channels of the whole.
 *
 * The default is auto if connecting pairs one by one (plan_connect_seconds()) would take longer
 * than PAIRS_PATIENCE, else own. */
#ifndef RG_NCCL_PAIRS_H
#define RG_NCCL_PAIRS_H

#include "measure/plan.h"
#include "measure/transports/transport.h"
#include "watch/world.h"

enum { TRIAL_PAIRS = 3, TRIAL_ROUNDS = 9 };
#define PAIRS_PATIENCE 60.0 /* s */

/* Collective over w, once per campaign (the transport's prepare()); by_nic: tiers of
 * topo_nic_tier(). */
int nccl_pairs_prepare(const struct transport *tr, struct world *w, const struct topo *topo,
                       const struct plan *plan, bool by_nic, struct err *err);
/* Collective over w (the transport's round()): make what the pairs of a round need. */
int nccl_pairs_round(struct world *w, const struct topo *topo, const struct round *r,
                     struct err *err);
/* True if this group is a pair that uses the communicator of all ranks.  The same on both ranks. */
bool nccl_pairs_shared(const struct group *g);

#endif
