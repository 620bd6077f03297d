/* search_args.h - what was typed after railgauge search. */
#ifndef RG_SEARCH_ARGS_H
#define RG_SEARCH_ARGS_H

#include <stdbool.h>

#include "step/job.h"

struct search_args {
    struct job_opts job;
    const char **constraint; /* as typed, in order */
    int constraints;
    int top;
    const char *output, *tsv;
    const char *anchor, *release;
    bool json;
};

/* Ends the program after --help and on bad usage, as argp does.  The caller frees constraint. */
void search_args(struct search_args *a, int argc, char **argv);

#endif
