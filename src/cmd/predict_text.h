/* predict_text.h - a prediction for people. */
#ifndef RG_PREDICT_TEXT_H
#define RG_PREDICT_TEXT_H

#include <stdbool.h>
#include <stdio.h>

#include "step/predict.h"

/* Total, one line per term, notes; with `explain` each term's source, group and formula below it.
 */
void predict_text(FILE *out, const struct prediction *p, const struct matrix *m,
                  const struct recipe *r, bool explain);

/* The line that comes before all others where the job does not fit; nothing where it does. */
void predict_text_unfit(FILE *out, const struct memory *m);

#endif
