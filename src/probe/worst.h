/* worst.h - the worst pair so far, for the progress line: slowest against the running median of its
 * class. */
#ifndef RG_WORST_H
#define RG_WORST_H

#include "probe/plan.h"
#include "probe/point.h"

struct worst {
    /* A running median per (tier, op): moved up or down by a fixed share with each value, good
     * enough for a line that people glance at. */
    double typical[TIER_MAX][OP_COUNT];
    size_t bytes[TIER_MAX][OP_COUNT];
    double share;  /* of the typical bandwidth, 1 at the start */
    char text[64]; /* "17>89 0.60x", "" while nothing stands out */
};

void worst_open(struct worst *w);
void worst_note(struct worst *w, const struct topo *t, const struct round *r,
                const struct point *p);

#endif
