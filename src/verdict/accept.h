/* accept.h - one verdict: what was measured beside what it must reach (limits.h).
 *
 * A check is judged by its whole interval: it passes when all of it is on the good side of the bound,
 * fails when all of it is on the other, and warns where the bound lies inside of it, or between the
 * bound and `warn`.  The interval includes the noise between epochs where there are two or more.
 * Rates and times of a machine that is busy with other work (finding "busy": most measurements move by more
 * than 15 % between epochs) do not fail, they are unknown.  What was not measured, or has no figure to be compared with, is unknown, never
 * good.  Shares of the reference are taken of its tier of the same name, else of the same
 * coordinates, and of its curve of the same operation and shape at a size that it has: published
 * figures are not extrapolated. */
#ifndef RG_ACCEPT_H
#define RG_ACCEPT_H

#include <stdbool.h>

#include "cost/matrix.h"
#include "probe/point.h"
#include "verdict/limits.h"
#include "verdict/parts.h"

enum accept_is { ACCEPT_PASS, ACCEPT_WARN, ACCEPT_FAIL, ACCEPT_UNKNOWN, ACCEPT_IS_COUNT };
extern const char *const accept_name[ACCEPT_IS_COUNT]; /* "PASS", "WARN", "FAIL", "UNKNOWN" */

/* Pairs: of five, the middle one of their distances from the median is one of three, and noise of one epoch
 * in one pair moves it as far as a slow pair does. */
enum { ACCEPT_PAIRS = 6 };

struct accept_row {
    const struct limit *limit; /* of the limits that were given, which live as long */
    enum accept_is is;
    int part;             /* row of the parts that it judges; -1 */
    char *what;           /* "tier rail, bandwidth of a pair" */
    double value, lo, hi; /* in the unit of its check; NAN: not known */
    double bound;         /* the limit in that unit, shares multiplied out; NAN: not known */
    char *of;             /* "90.0 % of gb200-nvl72 (49.2 GB/s)", "" for absolute ones */
    char *why;            /* of WARN and UNKNOWN, else "" */
    bool left_out; /* UNKNOWN, but there is nothing to judge: the verdict does not rest on it */
};

struct accept {
    struct accept_row *row;
    int rows;
    int count[ACCEPT_IS_COUNT];
    enum accept_is verdict; /* FAIL where one fails, else UNKNOWN where one is, else WARN, PASS */
};

struct accept_input {
    const struct matrix *measured;
    const struct parts *parts;   /* of it */
    const struct points *points; /* NULL: only the matrix is at hand */
    const struct topo *topo; /* of the campaign, as it was declared; NULL: as the matrix has it */
    const struct matrix *reference;   /* NULL: none is known */
    const char *reference_name, *why; /* "gb200-nvl72"; why there is none */
    const struct limits *limits;
    const struct accept_noise *noise; /* accept_judge()'s own */
};

/* Does the verdict rest on it that this row is unknown?  Not of an optional one, but for parts that
 * are there and were not looked at. */
bool accept_lacks(const struct accept_row *r);
/* accept_free() is the caller's. */
void accept_judge(struct accept *a, const struct accept_input *in);
void accept_free(struct accept *a);
/* EXIT_GOOD (also with warnings), EXIT_BELOW, EXIT_UNJUDGED */
int accept_code(const struct accept *a);
/* "tier rail, bandwidth of a pair: 24.1 GB/s, limit 44.3 GB/s, 90.0 % of ...", or why it is unknown;
 * the caller frees. */
char *accept_text(const struct accept_row *r);

#endif
