/* epochs.h - change of a figure, judged by blocks of time: the epochs of a campaign.
 *
 * A disturbance lasts for a while and affects many points at once: a busy minute, a job next door,
 * a slow communicator.  So points are not independent.  The sizes that a unit (a pair or a group)
 * measured in one epoch are one value, their median; an epoch is one value, the median over its
 * units; a figure's change is the mean over its epochs, and n of its t test is the number of
 * epochs.
 *
 *     se^2 = s^2 / n + luck sum(w^2) + floor^2
 *
 *   s^2   variance between epochs, moderated because figures have few epochs each and much in
 *         common.  Variances are taken relative to the value expected from the spread between
 *         units, and shrunk towards their usual ratio (stats_prior()) with at most the weight of
 *         the figure's own.
 *   luck  variance between units that lasts for a whole campaign and differs in the next one
 *         (buffers and routes of a communicator).  No epoch shows it, so it is estimated from
 *         units of figures of the same kind; w is a unit's share of the figure's values.
 *
 * Neither covers a difference between whole campaigns that all units share. */
#ifndef RG_EPOCHS_H
#define RG_EPOCHS_H

#include "measure/plan.h"
#include "verdict/figure.h"

/* Constants of the judgement; tests/unit/epochs.c has both sides of each edge.
 *
 *   COMPARE_ALPHA     false alarms of a comparison over all figures: half of the promised 1 %
 *   COMPARE_TOGETHER  part of it for all tiers together, which show a change of everything
 *                     first; the rest is for single figures (Holm), where a part's change is
 *                     large against noise
 *   EPOCHS_LEAST      epochs; two leave one degree of freedom, and t is 127 at p = 0.005
 *   EPOCHS_UNITS      units in an epoch; fewer do not show how units differ
 *   EPOCHS_LUCK       units; the root of a variance of six is known within a factor of 1.6
 *   EPOCHS_PRIOR      degrees of freedom: least weight of the other figures' variances, because
 *                     colliding flows have a half or a third of a rate, and five epochs with the
 *                     same share show no variance
 *   EPOCHS_FLOOR      standard error, as logarithm: steps of clocks and frequencies */
#define COMPARE_ALPHA 0.005
#define COMPARE_TOGETHER 0.004
enum { EPOCHS_LEAST = 3, EPOCHS_UNITS = 3, EPOCHS_LUCK = 6, EPOCHS_PRIOR = 1 };
#define EPOCHS_FLOOR 5e-4

/* A figure in blocks of time.  Variances are NAN if too little was measured. */
struct epochs {
    /* pairs or groups, rate or time, over NICs or not; figures of a kind share their luck */
    int kind;
    int blocks, units;
    double value[PLAN_EPOCHS]; /* mean of each block; NAN: not measured in it */
    double level;              /* mean of value */
    double between;            /* variance between blocks */
    double within;             /* variance between units of a block */
    double cells;              /* values per block, mean */
    double share;              /* sum of w^2 */
    double *luck;              /* per unit with several epochs: its offset common to all epochs */
    int lucks;
    double luck_noise; /* part of the variance of luck[] that noise between epochs explains */
    bool joined;       /* made by epochs_join() */
    /* standard error of level; by epochs_judge(); NAN with fewer than EPOCHS_LEAST blocks */
    double se, df, p;
};

/* Fill e from y[point of the figure].  After this and epochs_join() the caller calls
 * epochs_free(). */
void epochs_of(struct epochs *e, const struct figures *all, const struct figure *g,
               const double *y);
/* Average n figures over the blocks that all of them have.  The variance is not moderated, so that
 * its p-value holds if an epoch is bad for all figures alike and their variances are one and the
 * same draw. */
void epochs_join(struct epochs *e, const struct epochs *const *part, int n);
/* Fill se, df and p of n figures that were measured together. */
void epochs_judge(struct epochs *e, int n);
void epochs_free(struct epochs *e);

#endif
