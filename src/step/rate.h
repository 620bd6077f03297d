/* rate.h - what the matrix products run at: data-sheet peak times calibrated efficiency, or
 * measured.
 *
 * The efficiency depends on GPU generation and dtype (research note of constants.json); the
 * attention core runs in bf16 whatever the products use.  A rate measured on the machine
 * (matrix.compute) comes before all. */
#ifndef RG_RATE_H
#define RG_RATE_H

#include "cost/matrix.h"
#include "step/constants.h"
#include "step/recipe.h"

struct rate {
    double linear, core;             /* FLOP/s of products with weights, of the attention core */
    double linear_error, core_error; /* shares, one standard deviation */
    double peak;                     /* data sheet, this dtype; 0: unknown */
    double hbm_Bps;                  /* 0: unknown */
    enum basis basis;
    char source[192];
};

/* fabric may be NULL.  Neither a measured rate nor a peak of that dtype: EXIT_UNJUDGED with the
 * reason. */
int rate_of(struct rate *rate, const struct matrix *m, const struct fabric *f, enum dtype dtype,
            const struct constants *c, struct err *err);
/* "hopper", "blackwell", "blackwell-ultra"; NULL when the name is of none of them. */
const char *rate_generation(const char *gpu);

#endif
