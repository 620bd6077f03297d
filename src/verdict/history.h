/* history.h - campaigns on the same machine over time: which figures drift, which are not what they
 * were, when parts appeared and versions changed.
 *
 * Points that all campaigns have are matched (figure.h).  Of each its mean over the campaigns is taken
 * away, so that what differs between pairs or groups stays out; the median of what is left, in
 * logarithms, is the figure of a campaign, its interval that of stats_median_ci().
 *
 * Now: the last campaign against the baseline, the median of all others.  It is worse or better when
 * the points say so (each against its own median over the others: stats_signed_rank(), of all
 * figures stats_holm() at COMPARE_ALPHA), when it lies four deviations outside of what the others do
 * (stats_spread(), at least the median of all figures', and its own interval), and by more than the
 * tolerance.
 * Drift: stats_slope() over the campaigns' times.  It is one when the points' own slopes say so (as
 * above), when the campaigns' order does (stats_trend(), of all figures stats_holm() at
 * HISTORY_ALPHA: what wavers from day to day is no drift), and when it adds up to more than the
 * tolerance from the first campaign to the last.  Too few campaigns for so many figures: unsure.
 *
 * Campaigns that are unlike the last, or have less than half of its points, are left out. */
#ifndef RG_HISTORY_H
#define RG_HISTORY_H

#include "verdict/compare.h"
#include "verdict/versions.h"

#define HISTORY_ALPHA 0.05
enum { HISTORY_LEAST = 3 }; /* campaigns */

struct history_value {
    double value;         /* median B/s, of latencies seconds */
    double speed, lo, hi; /* of the baseline */
};

struct history_figure {
    char *what;
    bool rate, tier;
    int points;
    struct history_value *at;      /* [campaign] */
    double baseline;               /* in its unit */
    double spread;                 /* one deviation of the others' speeds, share */
    double week, week_lo, week_hi; /* log of its speed a week, as good as a share; NAN: no
                                      two times differ */
    double p_now, p_points, p_trend;
    enum change now, drift;
};

/* Since when a part is there, or is no more. */
struct history_part {
    char *what;
    enum part_kind kind;
    char **speed;             /* [campaign] "0.60", "no answer"; "-": it was none then */
    bool returned;            /* there, gone and there again */
    enum part_change_kind is; /* from the first campaign to the last */
};

struct history_left {
    const char *path;
    char *why;
};

struct history {
    const struct campaign **campaign; /* oldest first; the caller's */
    int campaigns;
    struct history_left *left;
    int lefts;
    struct history_figure *figure;
    int figures;
    struct history_part *part;
    int parts;
    struct versions versions; /* a row changed where a value differs from the one before */
};

/* In any order; n >= HISTORY_LEAST.  Fewer that are alike: EXIT_DATA with the reason.
 * history_free() in any case, before the campaigns'. */
int history_make(struct history *h, const struct campaign *c, int n, double tolerance,
                 struct err *err);
void history_free(struct history *h);
/* EXIT_BELOW: a figure is worse or drifts down, a part is new, worse or there again; EXIT_UNJUDGED:
 * no figure could be judged; else EXIT_GOOD. */
int history_code(const struct history *h);
char *history_line(const struct history *h); /* one sentence; the caller frees */

#endif
