/* history.h - campaigns on the same machine over time: which figures drift, which are not what they
 * were, when parts appeared and versions changed.
 *
 * Points that all campaigns have are matched (figure.h).  Of each its mean over the campaigns is taken
 * away, so that what differs between pairs or groups stays out; what is left, in logarithms, becomes a level of
 * each campaign and its interval by way of blocks of time (epochs.h).
 *
 * Campaigns differ from each other by more than their epochs show: routes are hashed anew, other jobs come
 * and go.  So the pieces of evidence are campaigns, and the variance between them is estimated from their
 * levels, moderated by those of the other figures (stats_prior()), and at least what the epochs show.
 * Now: the last campaign against the baseline, the median of all others: a t test, of all figures
 * stats_holm() at COMPARE_ALPHA, and by more than the tolerance.
 * Drift: stats_slope() over the campaigns' times.  It is one when a t test of the least squares' slope says
 * so (as above), when the campaigns' order does (stats_trend(), of all figures stats_holm() at
 * HISTORY_ALPHA: one odd campaign at an end makes no drift), and when it adds up to more than the
 * tolerance from the first campaign to the last.  Too few campaigns for so many figures: unsure.
 * Step: two levels, one before and one from a campaign on, each of HISTORY_SIDE campaigns or more: the split that
 * leaves the least variance, a t test times the number of splits, of all figures stats_holm() at HISTORY_STEP,
 * and by more than the tolerance.  Where a line leaves less variance than two levels it is a drift.
 *
 * Campaigns that are unlike the last, or have less than half of its points, are left out. */
#ifndef RG_HISTORY_H
#define RG_HISTORY_H

#include "verdict/compare.h"
#include "verdict/versions.h"

/* Constants of the judgement; both sides of each edge are in tests/unit/history.c.  HISTORY_STEP is half of what the
 * last campaign is judged at: the variance at the best of several splits is a little too small. */
#define HISTORY_ALPHA 0.05
#define HISTORY_STEP 0.0025
enum {
    HISTORY_SIDE = 2,  /* campaigns on either side of a step; a single odd one is none */
    HISTORY_LEAST = 3, /* campaigns */
    HISTORY_DF = 2     /* fewer degrees of freedom: t is 127 at p = 0.005 */
};

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
    double spread;                 /* one deviation between campaigns, share */
    double noise;                  /* variance of a campaign's level that its epochs show */
    double wobble, rest;           /* variance between the others, and about the line of all */
    double slope, steps;           /* of least squares; its variance over that about the line */
    double week, week_lo, week_hi; /* log of its speed a week, as good as a share; NAN: no
                                      two times differ */
    int since;      /* campaign from which on its level is another one; 0: no split is possible */
    double step;    /* log of that change of speed */
    double inside;  /* variance about the two levels */
    bool by_levels; /* these leave less variance than a line */
    double p_now, p_slope, p_trend, p_step;
    enum change now, drift, stepped;
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
/* EXIT_BELOW: a figure is worse, drifts or stepped down, a part is new, worse or there again; EXIT_UNJUDGED:
 * no figure could be judged; else EXIT_GOOD. */
int history_code(const struct history *h);
char *history_line(const struct history *h); /* one sentence; the caller frees */

#endif
