/* epochs.h - the points of a campaign with their epochs put together.
 *
 * One entry a (round, group, size): the median of the epoch medians.  With one epoch the interval
 * is that epoch's 95 % interval of the median, with more it is the range of the epoch medians,
 * which is wider than any single interval when the fabric drifts. */
#ifndef RG_EPOCHS_H
#define RG_EPOCHS_H

#include "probe/point.h"

struct epochs_point {
    const struct point *first; /* op, stage, group, members: those of the first epoch */
    size_t bytes;
    double sec, lo, hi; /* NAN: no epoch succeeded */
    int samples, epochs;
    int checked, wrong; /* epochs whose data was verified; found wrong */
};

/* Sorted by (round, group, bytes); the caller frees *out; p must live as long.  Returns the count.
 */
int epochs_merge(struct epochs_point **out, const struct points *p);

#endif
