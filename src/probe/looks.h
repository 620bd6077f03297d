/* looks.h - measured points of pairs as looks for the judge of noise (noise.h). */
#ifndef RG_LOOKS_H
#define RG_LOOKS_H

#include "noise/noise.h"
#include "probe/point.h"

/* Return the looks of one pass, in the order of the points; the caller frees.  by_nic: of the rounds through
 * the NICs.  point_of: NULL, or receives the index of each look's point; the caller frees it, too.
 *
 *   turn     consecutive points of one round, epoch and size
 *   block    the epoch; of what earlier points decided to measure, PLAN_EPOCHS + epoch.  With fewer than five
 *            epochs, one of PLAN_EPOCHS stretches of time
 *   fresh    what earlier points decided to measure; same_pair: of it pairs that were measured before
 *   kind     latency, both ways; one way by size: LOOK_RATE at the size of most points, which is that of the
 *            pair matrix, LOOK_SMALL below it, LOOK_LARGE above it
 *   y        of the times as the file has them, so that a file gives the looks that its campaign had
 *
 * Points of ladders and collectives, and those with wrong data, are left out. */
struct look *looks_of(const struct points *p, const struct topo *t, bool by_nic, int **point_of,
                      int *count);
/* Fill the judge's table of tiers whose pairs cross NICs: by_nic: all of them. */
void looks_crossing(const struct topo *t, bool by_nic, bool crosses[TIER_MAX]);

#endif
