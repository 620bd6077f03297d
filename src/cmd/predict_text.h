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

#endif
