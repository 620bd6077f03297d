/* score.h - errors of predicted steps against measured ones, and agreement of their order.
 *
 * Errors are |predicted / measured - 1|.  Rows that were not predicted are left out and counted by
 * the caller.  An anchor is never scored by itself. */
#ifndef RG_SCORE_H
#define RG_SCORE_H

#include "calibrate/batch.h"

/* Basis of the prediction.  SCORE_NAIVE: no model, only the anchor's tokens/s per GPU, as the
 * baseline that a model must beat.  SCORE_SAME: dense models, an anchor of the same layout on
 * another number of GPUs.  SCORE_MEMORY: memory readings instead of steps, of the kind that each
 * row reads. */
enum score_with {
    SCORE_ALONE,
    SCORE_ANCHORED,
    SCORE_NAIVE,
    SCORE_SAME,
    SCORE_MEMORY,
    SCORE_WITH_COUNT
};
extern const char *const score_with_name[SCORE_WITH_COUNT];

/* Selection of rows: all, those with or without a split that begins with "test_", or those with
 * `value` in that column. */
enum score_by {
    BY_ALL,
    BY_TEST,
    BY_REST,
    BY_SPLIT,
    BY_MODEL,
    BY_HARDWARE,
    BY_PUBLISHER,
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
/* Returns the distinct values of `by` among the predicted rows, in order of appearance.  The caller
 * frees the list, not the texts. */
const char **score_values(const struct batch *b, enum score_by by, int *count);

/* Returns a row's signed error; NAN if the row is left out. */
double score_error(const struct batch *b, int row, enum score_with with);

struct score {
    int n;
    double median, mean, p90, max; /* shares; NAN when n is 0 */
    double bias;                   /* geometric mean of predicted / measured, minus 1 */
    double inside;                 /* share of measured steps in lo .. hi, without an anchor */
};
void score_errors(struct score *s, const struct batch *b, enum score_with with,
                  struct score_cut cut);

/* Publishers count alike, however many rows they have: the median of their median errors, and the
 * mean of their shares inside the interval.  n: number of publishers. */
struct score_publishers {
    int n;
    double median, inside; /* NAN when n is 0 */
};
void score_publishers(struct score_publishers *s, const struct batch *b);

/* Order of pairs of one family whose measured tokens/s per GPU differ by more than `margin` (log),
 * at least one of them in the cut.  right: predicted in that order; equal predictions are wrong.
 * Counted but not judged: `same`, pairs with the same job and software, which no model can tell
 * apart; `doubt`, pairs with a doubtful dtype, which may have different recipes. */
struct score_order {
    int pairs, right, same, doubt;
};
void score_order(struct score_order *o, const struct batch *b, enum score_with with,
                 struct score_cut cut, double margin);

/* Rank of a family's fastest row (tokens/s per GPU) in the prediction; good if among the first
 * three.  Only families of at least SCORE_BEST_MIN different jobs, because with three the answer is
 * certain. */
enum { SCORE_BEST_MIN = 4 };
struct score_best {
    const char *family;
    int best;      /* index of the row */
    int rank;      /* number of different jobs predicted to be faster, plus 1 */
    int jobs;      /* number of different jobs */
    bool has_test; /* holds rows of test splits */
};
/* Returns one entry per family.  The caller frees the list. */
struct score_best *score_best(const struct batch *b, enum score_with with, int *count);

/* Target of a figure. */
struct score_target {
    const char *what;
    double figure, target;
    bool at_least; /* true: figure >= target; false: figure <= target */
    int n;         /* number of values behind the figure; 0: nothing to judge */
};
enum { SCORE_TARGETS = 12 };
void score_targets(struct score_target t[SCORE_TARGETS], const struct batch *b);

static inline bool score_met(const struct score_target *t)
{
    return t->n > 0 && (t->at_least ? t->figure >= t->target : t->figure <= t->target);
}

#endif
