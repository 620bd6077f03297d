/* compare.h - changes between two campaigns on the same machine: size and significance of each.
 *
 * A figure's change is taken from the logarithms of the ratios of its matched points (figure.h).
 * Its change, interval and p-value come from its blocks of time (epochs.h); all figures together
 * pass stats_holm() at COMPARE_ALPHA.  The change must also exceed the tolerance, because machines
 * drift slightly without a fault.  A difference between two campaigns as a whole, such as routes
 * hashed anew, counts as a change: only history.h has several such differences to judge by.
 *
 * A part (parts.h) that only one campaign names is new or gone if the points measured in both show
 * it; otherwise noise named or hid it, and it is the same.  A part named in both is worse or better
 * if its state is, or if its speed changed by more than the tolerance and beyond the intervals of
 * both.  Order of states: late, slow under some condition, slow at all times, dead or wrong. */
#ifndef RG_COMPARE_H
#define RG_COMPARE_H

#include "verdict/epochs.h"
#include "verdict/parts.h"

/* Constants for parts that only one campaign names; tests/unit/compare.c has both sides of each
 * edge.
 *
 *   COMPARE_SHOWN   share of the part's loss that both must show: half way between no change and
 *                   all
 *   COMPARE_CAUGHT  share of points whose p95 shows slow messages: a point of few messages
 *                   misses one slow message in ten */
#define COMPARE_SHOWN 0.5
#define COMPARE_CAUGHT 0.5

enum change { CHANGE_NONE, CHANGE_WORSE, CHANGE_BETTER, CHANGE_UNSURE, CHANGE_COUNT };

struct figure_change {
    char *what;           /* "tier rail, pair_bw", "all_reduce, 72 ranks, large" */
    double before, after; /* median: B/s, or s for latencies */
    bool rate;            /* true: B/s; false: s */
    bool tier;            /* figure of pairs */
    bool member;          /* belongs to compare.together */
    double ratio, lo, hi; /* Speed after / before with its 95 % interval; NAN: too few blocks. */
    double p;             /* p-value of no change; NAN: too few blocks */
    int points, blocks;   /* number of matched ones */
    enum change is;
};

enum part_change_kind { PART_NEW, PART_GONE, PART_WORSE, PART_BETTER, PART_SAME, PART_CHANGES };
extern const char *const part_change_name[PART_CHANGES]; /* "new", "gone", "worse", ... */

struct part_change {
    char *what; /* name from parts.h */
    enum part_kind kind;
    /* Share of its tier while the state shows; 1: not listed, or unknown; 0: dead or wrong. */
    double before, after;
    /* "0.60", "no answer", "+3 us"; "-": not listed in that campaign */
    char *before_text, *after_text;
    enum part_change_kind is;
};

struct version_change {
    char *what, *before, *after; /* "driver", "570.86.15", "580.11" */
};

struct compare {
    /* Bandwidth of pairs over NICs, all tiers; what, before and after are unset. */
    struct figure_change together;
    struct figure_change *figure;
    int figures;
    struct part_change *part;
    int parts;
    struct version_change *version;
    int versions;
    int matched;   /* points in both campaigns */
    int unmatched; /* points of the second campaign without a match */
};

/* Compare two campaigns.  tolerance: share, such as 0.01.  EXIT_DATA names the difference if they
 * cannot be compared: transport, GPU, fabric, nothing measured in both.  Call compare_free() in
 * every case. */
int compare_campaigns(struct compare *c, const struct campaign *before,
                      const struct campaign *after, double tolerance, struct err *err);
void compare_free(struct compare *c);
/* Compare a part that both campaigns name: PART_WORSE, PART_BETTER or PART_SAME. */
enum part_change_kind compare_part(const struct part_row *before, const struct part_row *after,
                                   double tolerance);
/* Find `part` of topology `of` among the parts of another campaign (`in`, topology t), by name,
 * else by endpoints.  NULL: not listed. */
const struct part_row *compare_find_part(const struct parts *in, const struct topo *t,
                                         const struct part_row *part, const struct topo *of);
/* A part, the campaign that names it and one that does not, with their columns among the
 * figures. */
struct seen_part {
    const struct figures *all;
    const struct part_row *row;
    const struct campaign *by;
    int with;
    const struct campaign *than;
    int without;
};
/* True if the points measured in both campaigns show the part, or cannot show it: dead or wrong
 * parts, or none of its pairs measured in both. */
bool compare_shows(const struct seen_part *s);
/* List the parts of a campaign for comparison, without their cost.  Call parts_free() in every
 * case. */
static inline int compare_list_parts(struct parts *p, const struct campaign *c, struct err *err)
{
    return parts_list(p,
                      &(struct parts_input){
                          .m = c->matrix, .topo = c->topo, .points = c->points, .no_cost = true},
                      err);
}
/* Returns EXIT_BELOW if a figure or part is worse or a part is new, EXIT_UNJUDGED if no figure
 * could be judged, else EXIT_GOOD. */
int compare_code(const struct compare *c);
char *compare_line(const struct compare *c); /* one sentence; the caller frees */

#endif
