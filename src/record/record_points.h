/* record_points.h - make a campaign (topology, plan and points) from a recorded job.
 *
 * The groups of an axis and an operation are a round; a size is a point in up to PLAN_EPOCHS
 * epochs, equal parts of its calls in order.  The time of a call is from the last rank's start to
 * the last end, so that late ranks are not charged to the network.  Each note gives the share of
 * that time in which operations of other communicators ran on the same GPUs: such points are under
 * load, and no group is alone. */
#ifndef RG_RECORD_POINTS_H
#define RG_RECORD_POINTS_H

#include "record/import.h"
#include "record/record_job.h"

/* Call after record_clock_align().  overlap: from record_points_overlap().  The caller calls
 * import_end().  EXIT_DATA: no call is complete. */
int record_points(struct import *im, const struct record_job *j, const float *overlap,
                  struct err *err);
/* For each call the share of its time in which operations of other communicators ran on its
 * processes.  The caller frees. */
float *record_points_overlap(const struct record_job *j);
/* Time of a call, s; not positive: the clocks are not precise enough. */
static inline double record_points_seconds(const struct record_span *s)
{
    return (double)(s->end - s->last) / 1e9;
}

#endif
