/* place_args.h - what was typed after railgauge place. */
#ifndef RG_PLACE_ARGS_H
#define RG_PLACE_ARGS_H

#include <stdbool.h>

#include "emit/export/rank_files.h"
#include "step/job.h"

struct place_args {
    struct job_opts job; /* place.nodes: the free ones, from --nodes or --nodes-file */
    const char *nodes_file, *exclude, *traffic, *output;
    struct written {
        const struct rank_file *form;
        const char *path; /* "-": standard output */
    } * write;
    int writes;
    double limit;
    int seed, per_node;
    bool json, no_scotch;
};

/* Ends the program after --help and on bad usage, as argp does.  The caller frees write. */
void place_args(struct place_args *a, int argc, char **argv);

#endif
