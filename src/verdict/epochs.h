/* epochs.h - how much a figure changed, judged by blocks of time: the epochs of a campaign.
 *
 * What disturbs a measurement lasts for a while and concerns many points at once: a busy minute, a job next
 * door, a slow communicator.  So points are not independent.  Sizes that a unit (a pair or a group) measured
 * in one epoch are one value, their median; an epoch is one value, the median over its units; a figure's
 * change is the mean over its epochs, and n of its t test is the number of epochs.
 *
 *     se^2 = s^2 / n + luck sum(w^2) + floor^2
 *
 *   s^2   variance between epochs, moderated: figures have few epochs each and much in common.  Variances are
 *         taken relative to what the spread between units leads to expect, and shrunk towards their usual
 *         ratio (stats_prior()) with at most as much weight as the figure's own.
 *   luck  variance between units that lasts for a whole campaign and is not the same in the next one (buffers
 *         and routes of a communicator).  No epoch shows it, so it is estimated from units of figures of the
 *         same kind; w is a unit's share of the figure's values.
 *
 * What differs between whole campaigns in all units alike is in neither. */
#ifndef RG_EPOCHS_H
#define RG_EPOCHS_H

#include "probe/plan.h"
#include "verdict/figure.h"

/* Constants of the judgement; both sides of each edge are in tests/unit/epochs.c.
 *
 *   COMPARE_ALPHA     false alarms of a comparison, of all its figures: half of the 1 % that is promised
 *   COMPARE_TOGETHER  part of it for all tiers together, which show a change of everything first; the rest is
 *                     for the figures (Holm), where a part's change is large beside the noise
 *   EPOCHS_LEAST      epochs; two leave one degree of freedom, and t is 127 at p = 0.005
 *   EPOCHS_UNITS      units in an epoch; fewer do not show how units differ
 *   EPOCHS_LUCK       units; the root of a variance of six is known within a factor of 1.6
 *   EPOCHS_PRIOR      degrees of freedom: least weight of the other figures' variances, because colliding flows
 *                     have a half or a third of a rate, and five epochs with the same share no variance
 *   EPOCHS_FLOOR      standard error: steps of clocks and frequencies, as logarithm */
#define COMPARE_ALPHA 0.005
#define COMPARE_TOGETHER 0.004
enum { EPOCHS_LEAST = 3, EPOCHS_UNITS = 3, EPOCHS_LUCK = 6, EPOCHS_PRIOR = 1 };
#define EPOCHS_FLOOR 5e-4

/* A figure in blocks of time.  Variances are NAN where too little was measured. */
struct epochs {
    int kind; /* pairs or groups, rate or time, over NICs or not: such share their luck */
    int blocks, units;
    double value[PLAN_EPOCHS]; /* of each block; NAN: not measured in it */
    double level;              /* their mean */
    double between;            /* variance between blocks */
    double within;             /* variance between units of a block */
    double cells;              /* values per block, mean */
    double share;              /* sum of w^2 */
    double *luck;              /* of each unit with several epochs: how far it is off in all */
    int lucks;
    double luck_noise; /* part of the variance of luck[] that noise between epochs explains */
    bool joined;       /* by epochs_join() */
    double se, df, p;  /* of level, by epochs_judge(); NAN with fewer than EPOCHS_LEAST blocks */
};

/* From y[point of the figure].  epochs_free() is the caller's, here and below. */
void epochs_of(struct epochs *e, const struct figures *all, const struct figure *g,
               const double *y);
/* The mean of n figures, over the blocks that all of them have.  Its variance is not moderated, so that its
 * p-value holds where an epoch is bad for all figures alike and their variances are one and the same draw. */
void epochs_join(struct epochs *e, const struct epochs *const *part, int n);
/* Fill in se, df and p of n figures that were measured together. */
void epochs_judge(struct epochs *e, int n);
void epochs_free(struct epochs *e);

#endif
