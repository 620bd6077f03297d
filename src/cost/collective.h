/* collective.h - a collective on one group resolved once: which curves answer for it and which
 * parts slow it.  Then any size is a few multiplications, without words and without allocation;
 * matrix_collective() is the same with words. */
#ifndef RG_COLLECTIVE_H
#define RG_COLLECTIVE_H

#include "cost/model.h"

/* Curves that may stand in for the group: same op, same domain pattern; below and above in ranks.
 */
struct found {
    const struct collective *same, *below, *above;
    bool gpus; /* of a matrix of GPUs: rings are pipelined */
};

struct quote {
    enum op op;
    struct ways ways;
    struct found found;
};

/* ways: ways_of() of the group and op, at_once set.  A collective of at least two ranks.  The
 * matrix must outlive the quote. */
void quote_of(struct quote *q, const struct matrix *m, enum op op, const struct ways *ways);
/* Seconds: what matrix_collective_beside() says.  NAN when unknown, INFINITY when a part is dead.
 */
double quote_time(const struct quote *q, const struct matrix *m, double bytes);

#endif
