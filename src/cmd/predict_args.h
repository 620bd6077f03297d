/* predict_args.h - what was typed after railgauge predict. */
#ifndef RG_PREDICT_ARGS_H
#define RG_PREDICT_ARGS_H

#include <stdbool.h>

#include "step/job.h"

struct predict_args {
    struct job_opts job;
    const char *output, *table; /* table: of --batch */
    const char *anchor, *save_anchor, *release;
    double measured;    /* s; 0: not given */
    const char **cases; /* --case: predict their jobs instead of one from the options */
    int case_count;
    bool json, explain, score, markdown;
};

/* cases is the caller's to free.  Ends the program after --help and on bad usage, as argp does. */
void predict_args(struct predict_args *a, int argc, char **argv);

#endif
