/* constants.h - the global constants of the step model, one data file
 * (jobs/training/constants.json).
 *
 * Each has a value, its error (share of the value, one standard deviation) and where it came from.
 * Names: efficiency.GENERATION.DTYPE  share of the data-sheet peak that matrix products reach
 *   attention.GENERATION         the same for the attention core, of the bf16 peak
 *   experts.DTYPE                of that efficiency, what grouped products of experts reach
 *   release.NAME[.experts]       how much longer compute takes with that software (rate_release),
 *   release.default              where it is not stated, or not known
 *   the fixed list in constants.c
 * Names outside of that are refused, so that a typo cannot silently fall back to nothing. */
#ifndef RG_CONSTANTS_H
#define RG_CONSTANTS_H

#include <stdbool.h>

#include "base/err.h"

struct constant {
    char *name;
    double value, error;
    char *source;
};

struct constants {
    struct constant *constant;
    int count;
    char *path;
};

/* path NULL: the shipped file.  All names of the fixed list must be there.  constants_free() also
 * after an error. */
int constants_load(struct constants *c, const char *path, struct err *err);
void constants_free(struct constants *c);
/* NULL when it is not in the file. */
const struct constant *constants_find(const struct constants *c, const char *name);
/* One of the fixed list; asserts that it is there (constants_load checked). */
const struct constant *constants_get(const struct constants *c, const char *name);

/* Bounds of a constant that may be fitted to measured steps (calibrate.h); false: one that is not,
 * such as an error, or a size that the method itself gives. */
bool constants_fitted(const char *name, double *min, double *max);
/* A line per constant, in their order; path may be that which was loaded. */
int constants_save(const struct constants *c, const char *path, struct err *err);

#endif
