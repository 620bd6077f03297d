/* observe.h - points of the same thing in several epochs and rounds as one observation. */
#ifndef RG_OBSERVE_H
#define RG_OBSERVE_H

#include <stdbool.h>

#include "measure/point.h"

/* Of a large campaign nearly all are of one point each, of which the rest is here as well: the points lie
 * in another order. */
struct obs {
    double bytes;
    double sec; /* median of the epoch medians; NAN: no epoch succeeded */
    union {
        struct {
            struct point_time lo, hi;
        } point;                     /* one: of the only one, which succeeded */
        const struct obs_more *more; /* else */
    } of;
    int src, dst; /* pairs: endpoints; collectives: round and group in the plan */
    int n;        /* one: its samples; else: epochs that succeeded */
    enum op op : 5;
    bool one : 1;     /* one point and no more */
    bool by_nic : 1;  /* with NVLink left: stage_by_nic() */
    bool alone : 1;   /* flows == 1 */
    int tier : 5;     /* by the fit, pairs only */
    bool failed : 1;  /* did an epoch? */
    bool wrong : 1;   /* had one wrong data?  It is not in sec */
    bool outdone : 1; /* a latency beside other pairs, where most pairs have one alone: it counts
                             for nothing, for what else the CPUs did is in it */
    unsigned stages : 16; /* bit mask of 1 << enum stage */
};
_Static_assert(STAGE_COUNT <= 16 && TIER_MAX <= 16 && OP_COUNT <= 16, "it has no room for more");

struct obs_more {
    double lo, hi;    /* medians of the epochs' intervals; NAN like sec */
    double range;     /* (max - min) / median of the epoch medians */
    const char *note; /* of a failed or wrong one, or NULL; points into the points */
    int n;            /* samples */
};
/* Epochs that succeeded. */
static inline int obs_epochs(const struct obs *o)
{
    return o->one ? 1 : o->n;
}
static inline double obs_lo(const struct obs *o)
{
    return o->one ? point_sec(o->of.point.lo) : o->of.more->lo;
}
static inline double obs_hi(const struct obs *o)
{
    return o->one ? point_sec(o->of.point.hi) : o->of.more->hi;
}
static inline double obs_range(const struct obs *o)
{
    return o->one ? 0 : o->of.more->range;
}
static inline const char *obs_note(const struct obs *o)
{
    return o->one ? NULL : o->of.more->note;
}
static inline int obs_samples(const struct obs *o)
{
    return o->one ? o->n : o->of.more->n;
}

/* Is it a latency of the pair matrix, whose size is `bytes`, and does it count? */
static inline bool obs_is_latency(const struct obs *o, double bytes)
{
    return o->op == OP_PAIR_LATENCY && o->bytes == bytes && o->sec > 0 && !o->outdone;
}

/* All pair observations, or all collective ones, sorted by (op, src, dst, by_nic, bytes, alone).  The
 * caller frees *out, before the points; returns the count. */
int observe(struct obs **out, const struct points *p, bool pairs);
/* The size at which most pairs were measured with this op: that of the pair matrix; ties: the
 * larger.  0: none. */
double observe_size(const struct obs *o, int count, enum op op);

/* Standard error of o->sec, share: from the epochs' intervals, or from how far the epochs lie apart
 * where that is more. */
double observe_noise(const struct obs *o);

#endif
