/* predict_parts.h - the inner halves of predict.c: terms with words for what timing.h computed. */
#ifndef RG_PREDICT_PARTS_H
#define RG_PREDICT_PARTS_H

#include "step/predict.h"
#include "step/timing.h"

/* Price the messages: one[i] on its slowest group, and terms[i] that names the group, the source
 * and the slow part; what is seen of it is not filled in yet. */
int predict_price(struct term *terms, double *one, const struct question *q, struct traffic *tr,
                  struct err *err);
/* Every summand of the step, in the order of the answer. */
void predict_terms(struct prediction *p, const struct question *q, const struct timing *t,
                   const struct work *w, const struct traffic *tr, struct term *messages);
void predict_note(struct prediction *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
