/* record_points.h - a recorded job as a campaign: topology, plan and points.
 *
 * The groups of an axis and an operation are a round; a size is a point in up to PLAN_EPOCHS epochs,
 * equal parts of its calls in their order.  A call takes from the last rank's start to the last end,
 * so that who comes late is not charged to the network.  Each note says how much of that time other
 * communicators' operations ran on the same GPUs: such points are loaded, none is a group alone. */
#ifndef RG_RECORD_POINTS_H
#define RG_RECORD_POINTS_H

#include "probe/import/import.h"
#include "probe/import/record_job.h"

/* After record_clock_align(); overlap: of record_points_overlap(); import_end() is the caller's.  EXIT_DATA: no call is whole. */
int record_points(struct import *im, const struct record_job *j, const float *overlap,
                  struct err *err);
/* Of each call the share of its time that operations of other communicators ran on its processes; the
 * caller frees. */
float *record_points_overlap(const struct record_job *j);
/* s; not positive: the clocks cannot tell. */
static inline double record_points_seconds(const struct record_span *s)
{
    return (double)(s->end - s->last) / 1e9;
}

#endif
