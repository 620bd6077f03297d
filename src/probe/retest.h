/* retest.h - which pairs of the parallel stages are measured again, alone.
 *
 * An outlier of a parallel round can be a bad link or the neighbours' traffic; only the same pair
 * alone tells which.  Chosen are pairs slower than their (op, size, tier) class by max(10 %, 5
 * * 1.4826 * MAD), and RETEST_PARTNERS pairs of an endpoint whose bandwidths are low in the middle,
 * worst first, at most RETEST_PER_ENDPOINT for one endpoint, and one healthy pair of each class so
 * that "alone" can be compared with "in parallel". */
#ifndef RG_RETEST_H
#define RG_RETEST_H

#include "probe/plan.h"
#include "probe/point.h"

enum { RETEST_PER_ENDPOINT = 6, RETEST_PARTNERS = 3, RETEST_MAX = 256 };

/* out gets rounds of one pair each, stage RETEST, every epoch; none when nothing stands out. */
void retest_plan(struct plan *out, const struct topo *t, const struct points *p);

#endif
