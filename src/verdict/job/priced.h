/* priced.h - collectives of a campaign beside what a cost matrix says that they take.
 *
 * Each group's time at each size, the median of its epochs, is held against the matrix's price of
 * these very endpoints, as many groups at once.  Slow is what lies above: the least interval end of
 * the epochs is beyond the price's.  Endpoints are known by host and index on it. */
#ifndef RG_PRICED_H
#define RG_PRICED_H

#include "cost/matrix.h"
#include "probe/point.h"

/* An operation and size on the groups of a round. */
struct priced_row {
    enum op op;
    int ranks, groups, slow, fast;
    double bytes;
    double sec;           /* median of the groups */
    double price, lo, hi; /* of the middle group; NAN: the matrix does not know */
    double ratio;         /* sec / price, median of the groups */
    int worst;            /* group, of the round, with the largest ratio */
    double worst_sec, worst_ratio;
    const struct plan_group *group; /* that one */
    char source[sizeof(((struct cost *)0)->source)];
};

struct priced {
    struct priced_row *row; /* by round and size */
    int rows;
    int slow; /* rows with slow groups */
};

/* Of points of this plan and topology.  EXIT_DATA: the matrix lacks a host or device.  priced_free()
 * in any case. */
int priced_make(struct priced *p, const struct matrix *m, const char *name, const struct plan *plan,
                const struct point_row *row, int rows, const struct topo *t, struct err *err);
void priced_free(struct priced *p);

#endif
