/* search_kept.h - what a search keeps of the candidates that it meets: the
 * fastest, those that no other beats in both time and memory, and the fastest
 * of each family.
 *
 * Equal times are told apart by `serial`, so what is kept depends neither on
 * the order in which candidates come nor on how they were shared out. */
#ifndef RG_SEARCH_KEPT_H
#define RG_SEARCH_KEPT_H

#include "step/layout.h"

struct candidate {
    struct layout layout;
    struct recipe recipe;
    double sec;   /* of a step, by table */
    double bytes; /* of a GPU */
    long serial;  /* ascends in the order of the walk: equal times are listed in it
                   */
};

/* A family: which of FAMILY_AXES axes are above 1, and the strategy. */
enum { FAMILY_AXES = 4, FAMILIES = STRATEGY_COUNT << FAMILY_AXES };
int family_of(const struct candidate *c);
/* "tp pp zero1" */
void family_text(char *buf, size_t size, const struct candidate *c);

struct kept {
    struct candidate *best; /* ascending in time, at most top */
    int bests, top;
    struct candidate *front; /* ascending in time, descending in bytes */
    int fronts;
    struct candidate family[FAMILIES]; /* sec 0: none yet */
};

/* Room for the `top` best; kept_free() frees it. */
void kept_init(struct kept *k, int top);
void kept_add(struct kept *k, const struct candidate *c);
/* All that `from` keeps, into `to`; both have the same top. */
void kept_join(struct kept *to, const struct kept *from);
/* Their order: sooner by time, then by serial. */
bool candidate_sooner(const struct candidate *a, const struct candidate *b);
void kept_free(struct kept *k);

#endif
