/* priced.h - collectives of a campaign compared with the prices of a cost matrix.
 *
 * The time of each group at each size, as the median of its epochs, is compared with the matrix's
 * cost for the same endpoints and the same number of groups at once.  A group is slow if the lowest
 * interval end of its epochs is above the interval of the cost.  Endpoints are matched by host and
 * index on it. */
#ifndef RG_PRICED_H
#define RG_PRICED_H

#include "matrix/matrix.h"
#include "measure/point.h"
#include <stdlib.h>
#include <string.h>

/* Result for one operation and size on the groups of a round. */
struct priced_row {
    enum op op;
    int ranks, groups, slow, fast;
    double bytes;
    double sec;           /* median of the groups */
    double price, lo, hi; /* cost for the group with the median ratio; NAN: unknown to the matrix */
    double ratio;         /* sec / price, median of the groups */
    int worst;            /* index, in the round, of the group with the largest ratio */
    double worst_sec, worst_ratio;
    const struct plan_group *group; /* group `worst` */
    char source[sizeof(((struct cost *)0)->source)];
};

struct priced {
    struct priced_row *row; /* ordered by round and size */
    int rows;
    int slow; /* number of rows with slow groups */
};

/* Compare points of this plan and topology with the matrix.  EXIT_DATA: the matrix lacks a host or
 * device.  Call priced_free() in every case. */
int priced_make(struct priced *p, const struct matrix *m, const char *name, const struct plan *plan,
                const struct point_row *row, int rows, const struct topo *t, struct err *err);
static inline void priced_free(struct priced *p)
{
    free(p->row);
    memset(p, 0, sizeof(*p));
}

#endif
