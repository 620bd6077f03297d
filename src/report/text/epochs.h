/* epochs.h - merge the epochs of a campaign's points.
 *
 * One entry per (round, group, size): the median of the epoch medians.  With one epoch the interval
 * is the 95 % interval of its median.  With more epochs it is the range of the epoch medians, which
 * is wider than any single interval if the fabric drifts. */
#ifndef RG_EPOCHS_H
#define RG_EPOCHS_H

#include "measure/point.h"

struct epochs_point {
    const struct point *first; /* point of the first epoch, for op, stage, group and members */
    size_t bytes;
    double sec, lo, hi; /* NAN: no epoch succeeded */
    int samples, epochs;
    int checked, wrong; /* epochs with verified data; epochs with wrong data */
};

/* Sorted by (round, group, bytes).  Returns the count.  The caller frees *out; p must live as
 * long. */
int epochs_merge(struct epochs_point **out, const struct points *p);

#endif
