/* predict_impl.h - what the files of railgauge predict share. */
#ifndef RG_PREDICT_IMPL_H
#define RG_PREDICT_IMPL_H

#include <stdbool.h>
#include <stdio.h>

#include "step/job.h"

/* What was typed. */
struct predict_args {
    struct job_opts job;
    const char *output, *table; /* table: of --batch */
    const char *anchor, *save_anchor, *release;
    double measured;    /* s; 0: not given */
    const char **cases; /* --case: predict their jobs instead of one from the options */
    int case_count;
    bool json, explain, score, markdown;
};

/* --batch TABLE: every row of a table of steps.  Prints rows as TSV, with a->json all of it as JSON,
 * with a->score how good the predictions were, as tables. */
int predict_batch(const struct predict_args *a, struct err *err);

/* Judge a->cases in turn and print them; "all" stands for every shipped case.  EXIT_BELOW when a
 * verdict is not the expected one, else EXIT_GOOD; -1 after an error. */
int predict_cases(const struct predict_args *a, struct err *err);

/* The line that comes before all others where the job does not fit; nothing where it does. */
void predict_unfit(FILE *out, const struct memory *m);

#endif
