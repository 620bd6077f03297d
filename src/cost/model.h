/* model.h - a collective from nothing but tiers: used where no curve was measured or published, for
 * the expected value, and to carry slow parts into measured curves. */
#ifndef RG_COST_MODEL_H
#define RG_COST_MODEL_H

#include "cost/matrix.h"

/* The ways that a group's traffic takes, O(n). */
struct ways {
    struct shape shape;
    int inner, outer;       /* slowest tier inside a domain and between domains; -1: none */
    int crossings;          /* consecutive members on tier `outer` that lie in different racks */
    int at_once;            /* groups like this one that run at the same time */
    double share[TIER_MAX]; /* of the other members, by tier as that one sees them which has the
                               fewest of them in its domain */
    double inner_factor, outer_factor; /* slowest part that the group uses; 1: healthy */
    double alpha_add;
    int exception; /* which one rules, -1 */
};

/* With `healthy`, exceptions are not looked at. */
void ways_of(struct ways *w, const struct matrix *m, const int *ids, int n, enum op op,
             bool healthy);
/* As many ranks inside one healthy domain; false: these ways are of one already, or no domain has
 * so many endpoints. */
bool ways_near(struct ways *near, const struct matrix *m, const struct ways *w);
/* The same ways without slow parts. */
struct ways ways_healthy(const struct ways *w);
/* Seconds; NAN when a tier that is needed has no curve, INFINITY when a part is dead. */
double model_time(const struct matrix *m, const struct ways *w, enum op op, double bytes);
/* The formula and its numbers in words. */
void model_words(const struct matrix *m, const struct ways *w, enum op op, char *text, size_t size);

#endif
