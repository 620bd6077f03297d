/* predict_batch.h - railgauge predict --batch TABLE: every row of a table, and how good it was. */
#ifndef RG_PREDICT_BATCH_H
#define RG_PREDICT_BATCH_H

#include "cmd/predict_args.h"
#include "step/score/batch.h"

/* Prints rows as TSV, with a->json all of it as JSON, with a->score the score as text. */
int predict_batch(const struct predict_args *a, struct err *err);
/* The score as tables. */
void predict_score(FILE *out, const struct batch *b);

#endif
