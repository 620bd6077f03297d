/* compare.h - two campaigns on the same machine: which figures changed, by how much, and is that more
 * than noise.
 *
 * A point of one campaign is matched with the point of the other that measured the same thing:
 * operation, the same endpoints by host name and number, size, stage, how many ran beside it, and
 * epoch.  What is compared are the logarithms of their ratios: noise of a pair or of a group stays out
 * of it, as both have it.  A figure is the median of them over a tier or over an operation and size
 * of group, its interval that of stats_median_ci(), its p-value that of Wilcoxon's signed-rank test
 * (1945; normal approximation with continuity correction, from 10 matched points on).  Of all figures
 * at once: Holm's step-down procedure (1979) at COMPARE_ALPHA, so that a comparison of two equal
 * campaigns gives an alarm in fewer than one of 1/COMPARE_ALPHA.  And the change must be larger than
 * the tolerance: machines drift by a little that is real and no fault. */
#ifndef RG_COMPARE_H
#define RG_COMPARE_H

#include "cost/matrix.h"
#include "probe/point.h"

#define COMPARE_ALPHA 0.001
enum { COMPARE_LEAST = 10 }; /* matched points of a figure that can be judged */

enum change { CHANGE_NONE, CHANGE_WORSE, CHANGE_BETTER, CHANGE_UNSURE, CHANGE_COUNT };

struct figure_change {
    char *what;           /* "tier rail, pair_bw", "all_reduce, 72 ranks, large" */
    double before, after; /* median B/s, of latencies seconds */
    bool rate;            /* which of these */
    bool tier;            /* of pairs */
    double ratio, lo, hi; /* of speed, after / before */
    double p;             /* of no change */
    int points;           /* matched */
    enum change is;
};

enum part_change_kind { PART_NEW, PART_GONE, PART_WORSE, PART_BETTER, PART_SAME, PART_CHANGES };
extern const char *const part_change_name[PART_CHANGES]; /* "new", "gone", "worse", ... */

struct part_change {
    char *what;           /* "endpoint 17 (r00n04:1), all NICs" */
    double before, after; /* share of its tier; 1: not odd; 0: dead or wrong */
    enum part_change_kind is;
};

struct version_change {
    char *what, *before, *after; /* "driver", "570.86.15", "580.11" */
};

struct compare {
    struct figure_change *figure;
    int figures;
    struct part_change *part;
    int parts;
    struct version_change *version;
    int versions;
    int matched;   /* points that both have */
    int unmatched; /* of the second campaign without one */
};

struct campaign {
    const char *path;
    const struct matrix *matrix;
    const struct topo *topo;
    const struct points *points;
};

/* compare_free() in any case.  tolerance: share, 0.01.  Unlike campaigns are EXIT_DATA with what
 * differs: transport, GPU, nothing measured in both. */
int compare_campaigns(struct compare *c, const struct campaign *before,
                      const struct campaign *after, double tolerance, struct err *err);
void compare_free(struct compare *c);
/* EXIT_BELOW: a figure or a part is worse, a part is new; EXIT_UNJUDGED: no figure could be judged;
 * else EXIT_GOOD. */
int compare_code(const struct compare *c);
char *compare_line(const struct compare *c); /* one sentence; the caller frees */

#endif
