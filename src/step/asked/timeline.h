/* timeline.h - a predicted step drawn over time: Chrome trace events for Perfetto and
 * chrome://tracing ("Trace Event Format": complete events "X", microseconds, and names "M").
 *
 * A process is a pipeline stage, shown by the rank that the prediction is for.  Its first thread is
 * the work of the device without gaps, in categories like the prediction's terms: compute, message
 * (exposed waits), bubble, optimizer and fixed.  On the slowest stage each adds up to the predicted
 * time.  The other threads are messages by axis, and those of data parallelism in a stream of their
 * own: categories "seen" (exposed) and "hidden".  Messages of all layers of a microbatch are one
 * event per pass.  Hidden time is drawn beside the compute and cut to its length ("hidden_s" has
 * the real value).
 *
 * Order of work and waits between stages come from pipeline.h.  Stages of zb-h2 begin and end one
 * after another, so each has its own step there.
 *
 * Stages other than the slowest run at the mean pace that the predicted bubble leaves.  The drawn
 * bubble equals the predicted one except where the formulas differ from the schedule (weights'
 * gradients slower than inputs'; dualpipe with unequal forward and backward).  Missing time is drawn as bubble;
 * if the schedule takes longer, so does the timeline, which "drawn_s" beside "predicted_s" in
 * otherData shows. */
#ifndef RG_TIMELINE_H
#define RG_TIMELINE_H

#include "step/predict.h"

/* Write the file atomically.  *drawn: length of the drawn step, s.  EXIT_USAGE: more than two
 * million pieces of work. */
int timeline_save(const struct prediction *p, const struct layout *l, const struct recipe *r,
                  const char *path, double *drawn, struct err *err);

#endif
