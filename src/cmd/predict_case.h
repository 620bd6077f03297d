/* predict_case.h - railgauge predict --case: published claims and our verdicts. */
#ifndef RG_PREDICT_CASE_H
#define RG_PREDICT_CASE_H

#include "cmd/predict_args.h"

/* Judge a->cases in turn and print them; "all" stands for every shipped case.  EXIT_BELOW when a
 * verdict is not the expected one, else EXIT_GOOD; -1 after an error. */
int predict_cases(const struct predict_args *a, struct err *err);

#endif
