/* observe.h - merge the points of one pair or collective, over epochs and rounds, into one observation. */
#ifndef RG_OBSERVE_H
#define RG_OBSERVE_H

#include <stdbool.h>

#include "measure/point.h"

/* In a large campaign nearly every observation has one point, whose values are copied here because the points lie
 * in another order. */
struct obs {
    double bytes;
    double sec; /* median of the epoch medians; NAN: no epoch succeeded */
    union {
        struct {
            struct point_time lo, hi;
        } point;                     /* interval of the only point; set if `one` is */
        const struct obs_more *more; /* set if `one` is not */
    } of;
    int src, dst; /* pairs: endpoints; collectives: round and group in the plan */
    int n;        /* number of samples of the only point; else number of epochs that succeeded */
    enum op op : 5;
    bool one : 1;         /* exactly one point */
    bool by_nic : 1;      /* with NVLink bypassed: stage_by_nic() */
    bool alone : 1;       /* flows == 1 */
    int tier : 5;         /* set by the fit, pairs only */
    bool failed : 1;      /* an epoch failed */
    bool wrong : 1;       /* an epoch had wrong data, which is not in sec */
    bool outdone : 1;     /* latency under load where most pairs were measured alone: ignored,
                             because it includes other work of the CPUs */
    unsigned stages : 16; /* bit mask of 1 << enum stage */
};
_Static_assert(STAGE_COUNT <= 16 && TIER_MAX <= 16 && OP_COUNT <= 16,
               "the bit fields hold no more");

struct obs_more {
    double lo, hi;    /* medians of the interval ends of all epochs; NAN like sec */
    double range;     /* (max - min) / median of the epoch medians */
    const char *note; /* note of a failed or wrong point, or NULL; owned by the points */
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

/* True if this is a latency at the size of the pair matrix (`bytes`) that counts. */
static inline bool obs_is_latency(const struct obs *o, double bytes)
{
    return o->op == OP_PAIR_LATENCY && o->bytes == bytes && o->sec > 0 && !o->outdone;
}

/* List all pair observations, or all collective ones, sorted by (op, src, dst, by_nic, bytes, alone).  Returns the
 * count.  The caller frees *out before it frees the points. */
int observe(struct obs **out, const struct points *p, bool pairs);
/* Return the size of the pair matrix: the size at which most pairs were measured with this op; ties: the larger.
 * 0: none.  The list is in the order of observe(). */
double observe_size(const struct obs *o, int count, enum op op);

/* Return the standard error of o->sec as a share: from the intervals of the epochs, or from the differences between
 * epochs if those are larger. */
double observe_noise(const struct obs *o);

#endif
