/* calibrate_search.h - the lowest point of a function of some numbers, without derivatives.
 *
 * Pattern search (Hooke and Jeeves 1961): each number in turn a step up or down, twice as far while
 * that helps; after a round the same way once more; when a round gains next to nothing the steps
 * are halved.  Nothing is drawn by chance, so equal input gives equal output. */
#ifndef RG_CALIBRATE_SEARCH_H
#define RG_CALIBRATE_SEARCH_H

#include <stdbool.h>

struct search_point {
    int n;
    double *x;                /* start, and the best when done */
    const double *low, *high; /* bounds */
    double step, least;       /* first and last size of a step, in units of x */
    double gain;              /* share of the value below which a round gains nothing */
    /* The value with x[i] replaced by v, all others as kept; keep() makes the last one asked for
     * the kept one.  i < 0: x as a whole has changed. */
    double (*value)(void *ctx, const double *x, int i, double v);
    void (*keep)(void *ctx);
    /* Called once a round with the share of the way that is done; false: stop here. */
    bool (*go_on)(void *ctx, double done);
    void *ctx;
};

/* Returns the lowest value found; *cut when go_on() stopped it. */
double search_lowest(struct search_point *s, bool *cut);

#endif
