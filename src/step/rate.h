/* rate.h - what this GPU computes at: data-sheet peak times calibrated efficiency, or measured.
 *
 * The efficiency depends on GPU generation and dtype, for dense products and experts apart; the
 * attention core, the scan of state-space layers and the output head run in bf16 whatever the
 * layers use (Transformer Engine has the layers only).  A rate measured on the machine
 * (matrix.compute) comes before all of these; what lies between products needs the fabric's memory
 * rate. */
#ifndef RG_RATE_H
#define RG_RATE_H

#include "cost/matrix.h"
#include "step/constants.h"
#include "step/recipe.h"
#include "step/work.h"

enum { RATE_SOURCE = 192 };

struct rate {
    double of[WORK_PARTS];    /* FLOP/s, B/s, kernels/s; INFINITY: takes no time */
    double error[WORK_PARTS]; /* shares, one standard deviation */
    char part_source[WORK_PARTS][RATE_SOURCE];
    double peak;    /* data sheet, FLOP/s of this dtype; 0: unknown */
    double hbm_Bps; /* 0: unknown */
    enum basis basis;
    char source[RATE_SOURCE]; /* all in one sentence */
};

/* fabric may be NULL.  Neither a measured rate nor a peak of that dtype: EXIT_UNJUDGED with the
 * reason. */
int rate_of(struct rate *r, const struct matrix *m, const struct fabric *f,
            const struct recipe *recipe, const struct constants *c, struct err *err);
/* "ampere", "hopper", "blackwell", "blackwell-ultra"; NULL when the name is of none of them. */
const char *rate_generation(const char *gpu);

#endif
