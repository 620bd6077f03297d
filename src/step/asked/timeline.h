/* timeline.h - a predicted step as a picture in time: Chrome trace events, which Perfetto and
 * chrome://tracing open ("Trace Event Format": complete events "X", microseconds, and names "M").
 *
 * A process is a pipeline stage, with the rank of it that the prediction is of.  Its first thread is
 * what the device does, without a hole: categories compute, message (waits that are seen), bubble,
 * optimizer and fixed, the kinds of the prediction's terms; on the slowest stage each adds up to what
 * the prediction has.  Below are messages by axis, and those of data parallelism in a stream of their
 * own: categories seen and hidden.  Messages of all layers of a microbatch are one event a pass, and
 * what is hidden is drawn beside the compute, where it is longer as long as that ("hidden_s" is the
 * truth).
 *
 * The order of work, and how long stages wait for each other, is that of pipeline.h.  Stages of zb-h2
 * begin and end one after another, so each has a step of its own there.
 *
 * Stages but the slowest have the mean of what the predicted bubble leaves them.  The bubble drawn
 * agrees with the predicted one but where the formulas leave the schedule (weights' gradients that
 * take longer than the inputs'; dualpipe where the two are not equal): what is missing is drawn as
 * bubble, and where the schedule takes longer so does the timeline, which "drawn_s" beside
 * "predicted_s" in otherData says. */
#ifndef RG_TIMELINE_H
#define RG_TIMELINE_H

#include "step/predict.h"

/* Written at once or not at all.  *drawn: s, the step as it is drawn.  EXIT_USAGE: more than two
 * million pieces of work. */
int timeline_save(const struct prediction *p, const struct layout *l, const struct recipe *r,
                  const char *path, double *drawn, struct err *err);

#endif
