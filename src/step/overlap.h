/* overlap.h - which part of the messages is seen: the inner half of predict.c.
 *
 * Messages inside a layer (tp, cp) and between stages (pp) keep a calibrated share of their time.
 * Data-parallel messages run beside the layers: of L in a row, the first all_gather of a forward
 * pass and the last reduction of a backward pass have nothing to hide behind; each of the other L-1
 * is seen for max(exposed.dp * c, c - overlap.dp * w), c being the messages of a layer and w its
 * compute in that pass (prefetch one layer ahead: Zhao et al. 2023, 3.3). */
#ifndef RG_OVERLAP_H
#define RG_OVERLAP_H

#include "step/predict.h"

/* Seconds of one rank and microbatch. */
struct compute_time {
    double linear, core;      /* forward and backward, with recompute */
    double forward, backward; /* linear + core, split the other way */
};

/* Prices the traffic and appends one term per message. */
int predict_messages(struct prediction *p, const struct question *q, const struct compute_time *t,
                     struct err *err);
void predict_note(struct prediction *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
