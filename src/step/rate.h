/* rate.h - what this GPU computes at: data-sheet peak times calibrated efficiency, or measured.
 *
 * The efficiency depends on GPU generation and dtype, for dense products and experts apart; the
 * attention core, the scan of state-space layers and the output head run in bf16 whatever the
 * layers use (Transformer Engine has the layers only).  What was measured on the machine comes
 * first: one rate for everything (matrix.compute.flops), or the rates of products by shape
 * (matrix.compute.gemm), which stand for linear layers and head: FLOPs of each of the model's
 * products at this layout, in all three passes, over the rate of that shape (compute_gemm()), so
 * the whole is a harmonic mean.  The attention core stays a share of the data-sheet peak, or of the
 * best measured rate where no data sheet is known; what lies between products needs a memory rate.
 */
#ifndef RG_RATE_H
#define RG_RATE_H

#include "base/err.h"
#include "cost/matrix.h"
#include "step/constants.h"
#include "step/work.h"

enum { RATE_SOURCE = 192 };

struct rate {
    double of[WORK_PARTS];    /* FLOP/s, B/s, kernels/s; INFINITY: takes no time */
    double error[WORK_PARTS]; /* shares, one standard deviation */
    bool words;               /* is a source said?  These, and the one of all */
    char part_source[WORK_PARTS][RATE_SOURCE];
    double links; /* factor on messages that leave a domain of so many ranks */
    int domain;
    double host;    /* s of the host for a kernel that it starts */
    double peak;    /* data sheet, FLOP/s of this dtype; 0: unknown */
    double hbm_Bps; /* 0: unknown */
    enum basis basis;
    char source[RATE_SOURCE]; /* all in one sentence */
};

struct question;

/* Of the question's matrix, fabric (may be NULL), model, layout, recipe and constants.  Neither a
 * measured rate nor a peak of that dtype: EXIT_UNJUDGED with the reason. */
int rate_of(struct rate *r, const struct question *q, struct err *err);
/* The same without sources, for what asks often. */
int rate_numbers(struct rate *r, const struct question *q, struct err *err);

/* The effects (effects.h) of a question's model, software and GPU on compute at this rate; none where
 * it was measured: its software was, too.  Returns how many levels. */
int rate_effects(struct effect_level out[EFFECT_LEVELS], const struct rate *r,
                 const struct question *q);
/* How much longer compute takes: by those, by an anchor, shrunk. */
double rate_stretch(const struct rate *r, const struct question *q);

#endif
