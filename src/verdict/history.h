/* history.h - campaigns on the same machine over time: figures that drift or have changed, and when
 * parts appeared and versions changed.
 *
 * Points that all campaigns have are matched (figure.h).  The mean of a point over the campaigns is
 * subtracted, so that differences between pairs or groups cancel; the rest, in logarithms, becomes
 * a level of each campaign with an interval from its blocks of time (epochs.h).
 *
 * Campaigns differ by more than their epochs show: routes are hashed anew, other jobs come and go.
 * So the units of evidence are campaigns.  The variance between them is estimated from their
 * levels, moderated by those of the other figures (stats_prior()), and is at least that shown by
 * the epochs.  All p-values of a kind pass stats_holm() over all figures, at the level given.
 *
 *   now    The last campaign against the baseline, the median of all others: a t test at
 *          COMPARE_ALPHA, and a change above the tolerance.
 *   drift  stats_slope() over the campaigns' times.  Requires a t test of the least-squares
 *          slope at COMPARE_ALPHA, the order of the campaigns (stats_trend() at HISTORY_ALPHA:
 *          one odd campaign at an end makes no drift), and a sum above the tolerance from the
 *          first campaign to the last.  Unsure if there are too few campaigns for the number of
 *          figures.
 *   step   Two levels, each of HISTORY_SIDE campaigns or more, split where the least variance
 *          remains: a t test times the number of splits at HISTORY_STEP, and a change above the
 *          tolerance.  A drift instead if a line leaves less variance than two levels.
 *
 * Campaigns that cannot be compared with the last, or have less than half of its points, are left
 * out. */
#ifndef RG_HISTORY_H
#define RG_HISTORY_H

#include "verdict/compare.h"
#include "verdict/versions.h"

/* Constants of the judgement; tests/unit/history.c has both sides of each edge.  HISTORY_STEP is
 * half of the level for the last campaign, because the variance at the best of several splits is
 * slightly too small. */
#define HISTORY_ALPHA 0.05
#define HISTORY_STEP 0.0025
enum {
    HISTORY_SIDE = 2,  /* campaigns on either side of a step; a single odd campaign is no step */
    HISTORY_LEAST = 3, /* campaigns */
    HISTORY_DF = 2     /* fewer degrees of freedom: t is 127 at p = 0.005 */
};

struct history_value {
    double value;         /* median: B/s, or s for latencies */
    double speed, lo, hi; /* relative to the baseline */
};

struct history_figure {
    char *what;
    bool rate, tier;
    int points;
    struct history_value *at; /* [campaign] */
    double baseline;          /* unit of the figure */
    double spread;            /* standard deviation between campaigns, share */
    double noise;             /* variance of a campaign's level according to its epochs */
    /* variance between the campaigns before the last; variance of all about the line */
    double wobble, rest;
    double slope, steps; /* least-squares slope; its variance / variance about the line */
    /* Log of speed per week, close to a share; NAN: no two times differ. */
    double week, week_lo, week_hi;
    int since;      /* first campaign at the new level; 0: no split is possible */
    double step;    /* log of the change of speed at that split */
    double inside;  /* variance about the two levels */
    bool by_levels; /* the two levels leave less variance than a line */
    double p_now, p_slope, p_trend, p_step;
    enum change now, drift, stepped;
};

/* A part with the campaigns that list it. */
struct history_part {
    char *what;
    enum part_kind kind;
    char **speed;             /* [campaign] "0.60", "no answer"; "-": not listed */
    bool returned;            /* listed, gone and listed again */
    enum part_change_kind is; /* change from the first campaign to the last */
};

struct history_left {
    const char *path;
    char *why;
};

struct history {
    const struct campaign **campaign; /* oldest first; owned by the caller */
    int campaigns;
    struct history_left *left;
    int lefts;
    struct history_figure *figure;
    int figures;
    struct history_part *part;
    int parts;
    struct versions versions; /* a row changed if a value differs from the previous one */
};

/* Analyse n >= HISTORY_LEAST campaigns in any order.  EXIT_DATA with the reason if too few can be
 * compared.  Call history_free() in every case, before freeing the campaigns. */
int history_make(struct history *h, const struct campaign *c, int n, double tolerance,
                 struct err *err);
void history_free(struct history *h);
/* Returns EXIT_BELOW if a figure is worse, drifts or stepped down, or a part is new, worse or
 * listed again; EXIT_UNJUDGED if no figure could be judged; else EXIT_GOOD. */
int history_code(const struct history *h);
char *history_line(const struct history *h); /* one sentence; the caller frees */

#endif
