/* observe.h - points of the same thing in several epochs and rounds as one observation. */
#ifndef RG_OBSERVE_H
#define RG_OBSERVE_H

#include <stdbool.h>

#include "probe/point.h"

struct obs {
    enum op op;
    int src, dst; /* pairs: endpoints; collectives: round and group in the plan */
    double bytes;
    bool by_nic;      /* with NVLink left: stage_by_nic() */
    bool alone;       /* flows == 1 */
    double sec;       /* median of the epoch medians; NAN: no epoch succeeded */
    double lo, hi;    /* medians of the epochs' intervals */
    int n;            /* samples */
    int epochs;       /* that succeeded */
    int failed;       /* that did not */
    int wrong;        /* with wrong data; not in sec */
    double range;     /* (max - min) / median of the epoch medians */
    double best;      /* the smallest of the epoch medians; NAN like sec */
    int flows;        /* most groups that ran at once */
    unsigned stages;  /* bit mask of 1 << enum stage */
    const char *note; /* of a failed or wrong one, or NULL; points into the points */
    /* filled in by the fit, pairs only */
    int tier;
    double residual; /* bandwidth / what is normal for the tier; NAN: not a bandwidth */
};

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
