/* observe.h - points of the same thing in several epochs and rounds as one observation. */
#ifndef RG_OBSERVE_H
#define RG_OBSERVE_H

#include <stdbool.h>

#include "probe/point.h"

struct obs {
    double bytes;
    double sec;       /* median of the epoch medians; NAN: no epoch succeeded */
    double lo, hi;    /* medians of the epochs' intervals */
    double range;     /* (max - min) / median of the epoch medians */
    double best;      /* the smallest of the epoch medians; NAN like sec */
    const char *note; /* of a failed or wrong one, or NULL; points into the points */
    int src, dst;     /* pairs: endpoints; collectives: round and group in the plan */
    int n;            /* samples */
    int epochs;       /* that succeeded */
    enum op op : 8;
    int tier : 8;         /* by the fit, pairs only */
    unsigned stages : 16; /* bit mask of 1 << enum stage */
    bool by_nic : 1;      /* with NVLink left: stage_by_nic() */
    bool alone : 1;       /* flows == 1 */
    bool failed : 1;      /* did an epoch? */
    bool wrong : 1;       /* had one wrong data?  It is not in sec */
    bool
        outdone : 1; /* a latency beside other pairs, where most pairs have one alone: it counts for
                             nothing, for what else the CPUs did is in it */
};
_Static_assert(STAGE_COUNT <= 16 && TIER_MAX < 128, "an observation has no room for more");

/* All pair observations, or all collective ones, sorted by (op, src, dst, by_nic, bytes, alone).  The
 * caller frees *out; returns the count. */
int observe(struct obs **out, const struct points *p, bool pairs);
/* The size at which most pairs were measured with this op: that of the pair matrix; ties: the
 * larger.  0: none. */
double observe_size(const struct obs *o, int count, enum op op);

/* Standard error of o->sec, share: from the epochs' intervals, or from how far the epochs lie apart
 * where that is more. */
double observe_noise(const struct obs *o);

#endif
