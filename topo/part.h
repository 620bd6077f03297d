/* part.h - components that can be replaced or drained, and the ways in which they fail. */
#ifndef RG_PART_H
#define RG_PART_H

#include <stdbool.h>

/* Kinds of parts.  A leaf or rack stands for all traffic of its endpoints; a leaf in a tier beyond
 * leaves stands for its uplinks.  Rack uplinks: traffic between a rack and all others. */
enum part {
    PART_ENDPOINT,
    PART_HOST,
    PART_RACK_PAIR,
    PART_PAIR,
    PART_LEAF,
    PART_RACK,
    PART_RACK_UPLINKS,
    PART_COUNT
};
extern const char *const part_name[PART_COUNT];
extern const int part_level[PART_COUNT]; /* level of its groups; -1: an endpoint or a pair */
static inline bool part_is_two(enum part part)
{
    return part == PART_PAIR || part == PART_RACK_PAIR;
}
/* Kind of a part as a technician knows it. */
enum part_kind {
    PART_KIND_GPU,
    PART_KIND_CPU,
    PART_KIND_NIC,
    PART_KIND_HOST,
    PART_KIND_CABLE,
    PART_KIND_LINK,
    PART_KIND_LEAF,
    PART_KIND_UPLINKS,
    PART_KIND_RACK,
    PART_KIND_RACK_PAIR,
    PART_KIND_DOMAIN,
    PART_KIND_FABRIC,
    PART_KIND_COUNT
};
extern const char *const part_kind_name[PART_KIND_COUNT]; /* "gpu", ..., "rack-pair", "fabric" */
enum side { SIDE_BOTH, SIDE_TX, SIDE_RX, SIDE_COUNT };
extern const char *const side_name[SIDE_COUNT];

/* State of a faulty part.  STATE_SLOW is 0: the state of an exception that names no other. */
enum part_state {
    STATE_SLOW,         /* at all times, to every partner, at every size */
    STATE_INTERMITTENT, /* slow during a share of the time */
    STATE_LOADED,       /* slow only under load */
    STATE_BOTH_WAYS,    /* slow only while sending and receiving at once */
    STATE_SMALL,        /* slow only up to some size */
    STATE_LARGE,        /* slow only from some size on */
    STATE_SAMPLES,      /* normal median, but a share of the messages is slow */
    STATE_LOST_UPLINKS, /* fewer uplinks: slow only while many NICs behind them send */
    STATE_LATE,         /* adds latency */
    STATE_DEAD,         /* no data passes */
    STATE_WRONG,        /* wrong data in a share of the checks */
    STATE_COUNT
};
/* "slow", "intermittent", "under-load", "both-ways", "small-sizes", "large-sizes", "slow-samples",
 * "lost-uplinks", "late", "dead", "wrong" */
extern const char *const part_state_name[STATE_COUNT];
/* Bandwidth of a part that transfers can expect, relative to the tier: the factor in prices.
 * depth   bandwidth while the state shows
 * share   share of the time in which the state shows
 *
 *   intermittent            1 / (1 - share + share / depth), because times add up, not rates
 *   slow                    depth
 *   dead, wrong data        0
 *   all other states        1: some transfers are not affected */
static inline double part_factor(enum part_state state, double depth, double share)
{
    switch (state) {
    case STATE_SLOW:
        return depth;
    case STATE_INTERMITTENT:
        return depth > 0 ? 1 / (1 - share + share / depth) : share > 0 ? 0 : 1;
    case STATE_DEAD:
    case STATE_WRONG:
        return 0;
    default:
        return 1;
    }
}

/* Rank of a state: wrong data is worse than a dead part, and both are worse than slow. */
static inline int part_severity(enum part_state state)
{
    return state == STATE_WRONG ? 2 : state == STATE_DEAD;
}

#endif
