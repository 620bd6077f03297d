/* score.h - how far predicted steps are from measured ones, and whether they come in the right
 * order.
 *
 * Errors are |predicted / measured - 1|.  Rows that were not predicted take no part and are counted
 * by the caller; an anchor is never scored by itself. */
#ifndef RG_SCORE_H
#define RG_SCORE_H

#include "step/score/batch.h"

/* What the prediction had to go by.  SCORE_NAIVE: no model at all, the anchor's tokens/s per GPU;
 * what a model must beat.  SCORE_SAME: dense models, an anchor of the same layout on another number
 * of GPUs.  SCORE_MEMORY: no step at all, but bytes that were read, as every row is read. */
enum score_with {
    SCORE_ALONE,
    SCORE_ANCHORED,
    SCORE_NAIVE,
    SCORE_SAME,
    SCORE_MEMORY,
    SCORE_WITH_COUNT
};
extern const char *const score_with_name[SCORE_WITH_COUNT];

/* Which rows: all, those whose split begins with "test_" or not, or those with `value` there. */
enum score_by {
    BY_ALL,
    BY_TEST,
    BY_REST,
    BY_SPLIT,
    BY_MODEL,
    BY_HARDWARE,
    BY_RELEASE,
    BY_LEFT,
    BY_KNOWN,
    BY_COUNT
};
extern const char *const score_by_name[BY_COUNT];
struct score_cut {
    enum score_by by;
    const char *value; /* NULL for the first three */
};
/* Different values of `by` among the predicted rows, in order of appearance; the caller frees the
 * list (not the texts). */
const char **score_values(const struct batch *b, enum score_by by, int *count);

/* A row's error, signed; NAN when it takes no part. */
double score_error(const struct batch *b, int row, enum score_with with);

struct score {
    int n;
    double median, mean, p90, max; /* shares; NAN when n is 0 */
    double bias;                   /* geometric mean of predicted / measured, less 1 */
    double inside;                 /* share of measured steps in lo .. hi, without an anchor */
};
void score_errors(struct score *s, const struct batch *b, enum score_with with,
                  struct score_cut cut);

/* Pairs of one family whose measured tokens/s per GPU differ by more than `margin` (log), at least
 * one of them in the cut: predicted in that order?  Equal predictions are wrong.  Pairs that ask
 * the same job of the same software no model can tell apart, and where a dtype is in doubt the two
 * may be of different recipes: counted, not judged. */
struct score_order {
    int pairs, right, same, doubt;
};
void score_order(struct score_order *o, const struct batch *b, enum score_with with,
                 struct score_cut cut, double margin);

/* Is a family's fastest row (tokens/s per GPU) among the three that were predicted fastest?  Only
 * families of at least SCORE_BEST_MIN different jobs: among three that would be no question. */
enum { SCORE_BEST_MIN = 4 };
struct score_best {
    const char *family;
    int best;      /* row */
    int rank;      /* different jobs that were predicted faster than it, plus 1 */
    int jobs;      /* different ones */
    bool has_test; /* holds rows of test splits */
};
/* One entry per family; the caller frees the list. */
struct score_best *score_best(const struct batch *b, enum score_with with, int *count);

/* What the figures are asked to be. */
struct score_target {
    const char *what;
    double figure, target;
    bool at_least; /* else at most */
    int n;         /* of what the figure was made; 0: nothing to judge */
};
enum { SCORE_TARGETS = 10 };
void score_targets(struct score_target t[SCORE_TARGETS], const struct batch *b);

static inline bool score_met(const struct score_target *t)
{
    return t->n > 0 && (t->at_least ? t->figure >= t->target : t->figure <= t->target);
}

#endif
