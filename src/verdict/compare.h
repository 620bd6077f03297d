/* compare.h - two campaigns on the same machine: which figures changed, by how much, and is that more
 * than noise.
 *
 * What is compared are the logarithms of the ratios of a figure's matched points (figure.h).  Its change,
 * interval and p-value come from its blocks of time (epochs.h), of all figures at once stats_holm() at
 * COMPARE_ALPHA.  And the change must be larger than the tolerance: machines drift by a little that is
 * real and no fault.  What differs between two campaigns as a whole, as routes that are hashed anew, is
 * taken for a change: only history.h has more than one such difference to judge by.
 *
 * A part (parts.h) that one campaign alone names is new or gone if what both measured shows it; else noise has
 * named it, or hidden it, and it is the same.  A part that both have is worse or better when its state is, or when its speed changed by
 * more than the tolerance and beyond the intervals of both.  Order of states: late, slow under some
 * condition, slow at all times, dead or wrong. */
#ifndef RG_COMPARE_H
#define RG_COMPARE_H

#include "verdict/epochs.h"
#include "verdict/parts.h"

/* Constants of parts that one campaign alone names; both sides of each edge are in tests/unit/compare.c.
 *
 *   COMPARE_SHOWN   share of the part's loss that both must show: half way between no change and all of it
 *   COMPARE_CAUGHT  of points whose p95 shows slow messages: one message in ten is missed by a point of few */
#define COMPARE_SHOWN 0.5
#define COMPARE_CAUGHT 0.5

enum change { CHANGE_NONE, CHANGE_WORSE, CHANGE_BETTER, CHANGE_UNSURE, CHANGE_COUNT };

struct figure_change {
    char *what;           /* "tier rail, pair_bw", "all_reduce, 72 ranks, large" */
    double before, after; /* median B/s, of latencies seconds */
    bool rate;            /* which of these */
    bool tier;            /* of pairs */
    bool member;          /* of together */
    double ratio, lo,
        hi;             /* of speed, after / before, with its 95 % interval; NAN: too few blocks */
    double p;           /* of no change; NAN: too few blocks */
    int points, blocks; /* matched */
    enum change is;
};

enum part_change_kind { PART_NEW, PART_GONE, PART_WORSE, PART_BETTER, PART_SAME, PART_CHANGES };
extern const char *const part_change_name[PART_CHANGES]; /* "new", "gone", "worse", ... */

struct part_change {
    char *what; /* as parts.h names it */
    enum part_kind kind;
    double before, after;           /* share of its tier while the state shows; 1: none is missing,
                                       or not known; 0: dead or wrong */
    char *before_text, *after_text; /* "0.60", "no answer", "+3 us"; "-": it is no part then */
    enum part_change_kind is;
};

struct version_change {
    char *what, *before, *after; /* "driver", "570.86.15", "580.11" */
};

struct compare {
    struct figure_change
        together; /* bandwidth of pairs over NICs, all tiers; without what, before, after */
    struct figure_change *figure;
    int figures;
    struct part_change *part;
    int parts;
    struct version_change *version;
    int versions;
    int matched;   /* points that both have */
    int unmatched; /* of the second campaign without one */
};

/* compare_free() in any case.  tolerance: share, 0.01.  Unlike campaigns are EXIT_DATA with what
 * differs: transport, GPU, fabric, nothing measured in both. */
int compare_campaigns(struct compare *c, const struct campaign *before,
                      const struct campaign *after, double tolerance, struct err *err);
void compare_free(struct compare *c);
/* The same part, then and now: worse, better or the same. */
enum part_change_kind compare_part(const struct part_row *before, const struct part_row *after,
                                   double tolerance);
/* The part of one topology among those of another campaign, by its name or else its endpoints; NULL:
 * it is not there. */
const struct part_row *compare_find_part(const struct parts *in, const struct topo *t,
                                         const struct part_row *part, const struct topo *of);
/* A part, the campaign that names it and one that does not, with their columns among the figures. */
struct seen_part {
    const struct figures *all;
    const struct part_row *row;
    const struct campaign *by;
    int with;
    const struct campaign *than;
    int without;
};
/* True if what both have measured shows the part, or cannot: dead or wrong parts, nothing measured of it in both. */
bool compare_shows(const struct seen_part *s);
/* Its parts as they are compared: without what they cost.  parts_free() in any case. */
static inline int compare_list_parts(struct parts *p, const struct campaign *c, struct err *err)
{
    return parts_list(p,
                      &(struct parts_input){
                          .m = c->matrix, .topo = c->topo, .points = c->points, .no_cost = true},
                      err);
}
/* EXIT_BELOW: a figure or a part is worse, a part is new; EXIT_UNJUDGED: no figure could be judged;
 * else EXIT_GOOD. */
int compare_code(const struct compare *c);
char *compare_line(const struct compare *c); /* one sentence; the caller frees */

#endif
