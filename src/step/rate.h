/* rate.h - compute rates of this GPU: data-sheet peak times calibrated efficiency, or measured.
 *
 * The efficiency depends on GPU generation and dtype, separately for dense products and experts.
 * The attention core, the scan of state-space layers and the output head run in bf16 whatever dtype
 * the layers use (Transformer Engine covers the layers only).  Rates measured on the machine take
 * precedence: one rate for everything (matrix.compute.flops), or rates of products by shape
 * (matrix.compute.gemm) for linear layers and head: FLOPs of each of the model's products at this
 * layout, in all three passes, over the rate of that shape (compute_rate()), so the result is a
 * harmonic mean.  The same holds for other kernels that were measured (matrix.compute.kernel):
 * attention core, experts, traffic between products, optimizer.  An attention core that was not
 * measured remains a share of the data-sheet peak, or of the best measured rate if no data sheet is
 * known.  Time between products needs a memory rate.  Kernel launches rest on a fitted constant in
 * any case, because it stands for kernels that the work does not count. */
#ifndef RG_RATE_H
#define RG_RATE_H

#include "base/err.h"
#include "matrix/matrix.h"
#include "step/constants.h"
#include "step/work.h"

enum { RATE_SOURCE = 192 };

struct rate {
    double of[WORK_PARTS];    /* FLOP/s, B/s, kernels/s; INFINITY: takes no time */
    double error[WORK_PARTS]; /* as a share, one standard deviation */
    enum basis part_basis[WORK_PARTS];
    double adam_Bps, adam_error; /* memory rate of the optimizer as measured; 0: not measured */
    bool words;                  /* true: part_source and source are filled */
    char part_source[WORK_PARTS][RATE_SOURCE];
    double links; /* factor on messages that leave a domain of `domain` ranks */
    int domain;
    double host;    /* s of the host per kernel start */
    double peak;    /* data sheet, FLOP/s of this dtype; 0: unknown */
    double hbm_Bps; /* 0: unknown */
    enum basis basis;
    char source[RATE_SOURCE]; /* all sources in one sentence */
};

struct question;

/* Fill r from the question's matrix, fabric (may be NULL), model, layout, recipe and constants.
 * EXIT_UNJUDGED with the reason: neither a measured rate nor a peak of that dtype is known. */
int rate_make(struct rate *r, const struct question *q, bool words, struct err *err);
static inline int rate_of(struct rate *r, const struct question *q, struct err *err)
{
    return rate_make(r, q, true, err);
}
/* Same without source texts, for frequent calls. */
static inline int rate_numbers(struct rate *r, const struct question *q, struct err *err)
{
    return rate_make(r, q, false, err);
}

/* List the effects (effects.h) of a question's model, software and GPU on compute at this rate.  A
 * measured rate has none, because it was measured with its software.  Returns the number of
 * levels. */
int rate_effects(struct effect_level out[EFFECT_LEVELS], const struct rate *r,
                 const struct question *q);
/* Returns the factor on compute from these effects, an anchor and `shrink`. */
double rate_stretch(const struct rate *r, const struct question *q);

/* --- compute ---
 *
 * Compute rate measured on this host, for machines without a data sheet rate.
 *
 * A plain fp32 matrix product on one core, median of many runs: a conservative lower bound, not the
 * rate of a tuned library.  The sentence in `source` states this and accompanies every number built
 * on it. */

enum { COMPUTE_SIZE = 256 }; /* edge of the matrices; all three fit a 1 MiB cache */

struct compute {
    double flops;  /* FLOP/s, median; a multiply-add counts as two */
    double lo, hi; /* 95 % interval of the median */
    /* Standard deviation of single runs, as a share, from their 5th and 95th percentiles.  On a
     * busy host it covers the changes of the next minutes. */
    double spread;
    int runs;
    char source[160]; /* "fp32 matmul 256x256 measured on this host, 1 core, 91 runs" */
};

/* Measure for about `seconds` (0.01 .. 60, at least 5 runs), on the calling thread. */
int compute_measure(struct compute *c, double seconds, struct err *err);

#endif
