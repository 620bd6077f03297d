/* looks.h - convert measured points of pairs to looks, the input of the noise judge (noise.h). */
#ifndef RG_LOOKS_H
#define RG_LOOKS_H

#include "measure/point.h"
#include "noise/noise.h"

/* Return the looks of one pass, in the order of the points.  by_nic: use the rounds through the
 * NICs.  point_of, unless NULL, receives the index of each look's point.  The caller frees both.
 *
 *   turn     consecutive points of one round, epoch and size
 *   block    the epoch; for points that earlier points decided to measure, PLAN_EPOCHS + epoch.
 *            With fewer than five epochs, one of PLAN_EPOCHS stretches of time
 *   fresh    earlier points decided to measure it; same_pair: and the pair was measured before
 *   kind     latency, both ways; one way by size: LOOK_RATE at the size of most points (the size of
 *            the pair matrix), LOOK_SMALL below it, LOOK_LARGE above it
 *   y        from the times as the file has them, so that a file gives the same looks as its
 *            campaign
 *
 * Points of ladders and collectives, and points with wrong data, are left out. */
struct look *looks_of(const struct points *p, const struct topo *t, bool by_nic, int **point_of,
                      int *count);
/* Mark the tiers whose pairs cross NICs in the judge's table; with by_nic, all tiers. */
void looks_crossing(const struct topo *t, bool by_nic, bool crosses[TIER_MAX]);

#endif
