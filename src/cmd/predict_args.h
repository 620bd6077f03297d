/* predict_args.h - what was typed after railgauge predict. */
#ifndef RG_PREDICT_ARGS_H
#define RG_PREDICT_ARGS_H

#include <stdbool.h>

#include "step/job.h"

struct predict_args {
    struct job_opts job;
    const char *output, *table; /* table: of --batch */
    bool json, explain, score;
};

/* Ends the program after --help and on bad usage, as argp does. */
void predict_args(struct predict_args *a, int argc, char **argv);

#endif
