/* classes_impl.h - devices of several kinds in one fabric: the bandwidth that a pair can reach with its declared
 * devices.
 *
 * A class is a GPU model and a NIC rate.  The class of most endpoints (in a tie, the class with faster NICs)
 * is the reference, whose pairs define the rate of a tier.  A pair belongs to the class of its slower end:
 *
 *   tiers over NICs     share = rate of the class's NICs / rate of the reference's NICs, as declared.  If three
 *                       or more hosts of a class agree on another rate, the class keeps that rate: a difference
 *                       between kinds of machines is not a fault
 *   tiers without NICs  share = measured rate of the class / that of the reference.  The rate of NVLink is not
 *                       declared, so GPUs are compared with GPUs of their model
 *
 * Unknown models and rates count as the reference's. */
#ifndef RG_CLASSES_H
#define RG_CLASSES_H

#include <stdlib.h>
#include <string.h>

#include "fit/observe.h"
#include "topo/topo.h"

enum { CLASSES_MAX = 16 }; /* kinds of devices; further ones count as the reference's */

struct device_class {
    const char *model; /* from the topology; "": unknown */
    double nic_Bps;    /* 0: unknown */
    int endpoints, hosts;
};

/* Zeros are one class: every share is 1. */
struct classes {
    struct device_class of[CLASSES_MAX]; /* [0]: the reference */
    int count;
    unsigned char *at;  /* class of each endpoint; NULL: all in class 0 */
    bool nic[TIER_MAX]; /* tier whose pairs cross NICs */
    bool own[TIER_MAX]
            [CLASSES_MAX]; /* the share was measured, because nothing is declared or because
                                        the class agrees on another rate */
    double share[TIER_MAX][CLASSES_MAX];
    double declared[TIER_MAX][CLASSES_MAX]; /* the share by NIC rates; NAN: nothing is declared */
    int pairs[TIER_MAX][CLASSES_MAX];
};

/* Fill c.  o: observations of pairs, used at the size `bytes` of the pair matrix.  The caller calls
 * classes_free(). */
void classes_make(struct classes *c, const struct topo *t, const struct obs *o, int count,
                  double bytes);
static inline void classes_free(struct classes *c)
{
    free(c->at);
    memset(c, 0, sizeof(*c));
}

static inline int classes_at(const struct classes *c, int endpoint)
{
    return c->at ? c->at[endpoint] : 0;
}

/* The class of a pair: that of its slower end. */
static inline int classes_pair(const struct classes *c, int src, int dst, int tier)
{
    int a = classes_at(c, src), b = classes_at(c, dst);

    return c->at && c->share[tier][b] < c->share[tier][a] ? b : a;
}

/* Bandwidth that a pair can reach / bandwidth of the reference; 1 if nothing else is known. */
static inline double classes_share(const struct classes *c, int src, int dst, int tier)
{
    return c->at ? c->share[tier][classes_pair(c, src, dst, tier)] : 1;
}

/* "NVIDIA A100-SXM4-80GB with NICs of 200 Gb/s" */
char *classes_name(const struct classes *c, int k); /* the caller frees */

#endif
