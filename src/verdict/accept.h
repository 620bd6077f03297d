/* accept.h - one verdict on a campaign: its figures compared with the limits (limits.h).
 *
 * A check is judged by its whole interval: it passes if all of the interval keeps the bound, fails
 * if none of it does, and warns if the bound lies inside the interval or the value lies between the
 * bound and `warn`.  With two epochs or more the interval includes the noise between epochs.  On a
 * busy machine (finding "busy": most measurements move by more than 15 % between epochs) rates and
 * times are unknown instead of failed.  A figure that was not measured, or that has no figure to be
 * compared with, is unknown, never good.
 *
 * Shares of the reference use its tier of the same name, otherwise the tier of the same
 * coordinates, and its curve of the same operation and shape at a size on that curve: published
 * figures are not extrapolated. */
#ifndef RG_ACCEPT_H
#define RG_ACCEPT_H

#include <jansson.h>
#include <stdbool.h>

#include "matrix/matrix.h"
#include "measure/point.h"
#include "verdict/limits.h"
#include "verdict/parts.h"

enum accept_is { ACCEPT_PASS, ACCEPT_WARN, ACCEPT_FAIL, ACCEPT_UNKNOWN, ACCEPT_IS_COUNT };
extern const char *const accept_name[ACCEPT_IS_COUNT]; /* "PASS", "WARN", "FAIL", "UNKNOWN" */

/* Pairs needed for an interval from their spread.  With five, the middle one of their distances
 * from the median is one of three, so noise of one epoch in one pair moves it as far as a slow pair
 * does. */
enum { ACCEPT_PAIRS = 6 };

struct accept_row {
    const struct limit *limit; /* borrowed from the limits, which must live as long */
    enum accept_is is;
    int part;             /* index of the judged row of parts; -1: none */
    char *what;           /* "tier rail, bandwidth of a pair" */
    double value, lo, hi; /* measured, in the unit of the check; NAN: unknown */
    double bound;         /* limit in that unit, shares multiplied out; NAN: unknown */
    char *of;             /* "90.0 % of gb200-nvl72 (49.2 GB/s)"; "" for absolute bounds */
    char *why;            /* reason for WARN and UNKNOWN, else "" */
    bool left_out; /* UNKNOWN because there is nothing to judge; the verdict ignores the row */
};

struct accept {
    struct accept_row *row;
    int rows;
    int count[ACCEPT_IS_COUNT];
    /* FAIL if a row fails, else UNKNOWN if an accept_lacks() row exists, else WARN or PASS */
    enum accept_is verdict;
};

struct accept_input {
    const struct matrix *measured;
    const struct parts *parts;   /* parts of `measured` */
    const struct points *points; /* NULL: only the matrix is available */
    const struct topo *topo;     /* topology of the campaign, as declared; NULL: as in the matrix */
    const struct matrix *reference;   /* NULL: unknown */
    const char *reference_name, *why; /* "gb200-nvl72"; reason if there is no reference */
    const struct limits *limits;
    const struct accept_noise *noise; /* filled by accept_judge() */
};

/* True if the verdict is unknown because this row is.  Not for optional rows, except parts that
 * exist and were not checked. */
bool accept_lacks(const struct accept_row *r);
/* Fill a.  The caller calls accept_free(). */
void accept_judge(struct accept *a, const struct accept_input *in);
void accept_free(struct accept *a);
/* Returns the verdict of a rack (a group of the parts' topology): FAIL or WARN by the checks of the parts that lie in it, at
 * one end or both, FAIL for dead parts and wrong data; UNKNOWN if it has no such part and not all parts of the campaign
 * were judged. */
enum accept_is accept_rack(const struct accept *a, const struct parts *p, int rack);
/* Limits of a machine from n good campaigns of it, as the content of a limits file: railgauge's own rows, with bandwidth and
 * latency of tiers and bus bandwidth of collectives bounded so that one of a hundred campaigns like these misses a row.  Figures
 * that one of the campaigns lacks are left out.  from: words for title and sources.  New reference.  EXIT_USAGE: fewer than
 * ACCEPT_LEARN campaigns; EXIT_UNJUDGED: no figure is in all of them. */
enum { ACCEPT_LEARN = 3 };
int accept_learn(json_t **out, const struct matrix *const *m, int n, const char *from,
                 struct err *err);
/* Returns EXIT_GOOD (also with warnings), EXIT_BELOW or EXIT_UNJUDGED. */
int accept_code(const struct accept *a);
/* Returns "tier rail, bandwidth of a pair: 24.1 GB/s, limit 44.3 GB/s, 90.0 % of ...", or why the
 * row is unknown.  The caller frees. */
char *accept_text(const struct accept_row *r);

#endif
