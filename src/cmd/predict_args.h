/* predict_args.h - what was typed after railgauge predict. */
#ifndef RG_PREDICT_ARGS_H
#define RG_PREDICT_ARGS_H

#include <stdbool.h>

#include "step/layout.h"
#include "step/recipe.h"

struct predict_args {
    const char *matrix, *fabric, *model, *layout, *order, *constants, *output;
    int racks, gpus;
    int mesh; /* enum mesh_order */
    double flops;
    bool json, explain;
    struct recipe recipe;
};

/* Ends the program after --help and on bad usage, as argp does. */
void predict_args(struct predict_args *a, int argc, char **argv);

#endif
