/* noise.h - which parts of a fabric stand out from measured pairs, with noise that is estimated from the
 * same campaign.
 *
 *   y = usual(class) + turn + min(effect of sender, effect of receiver) + block noise + point noise | stray
 *
 *   y       log of B/s; of latencies -log of s; of the spread -log(sec_p95 / sec)
 *   class   operation, size, tier, alone or beside other pairs
 *   turn    what is measured at the same time; block: a stretch of the campaign (an epoch)
 *   stray   a slow point that says nothing of its two ends
 *
 * Everything is a weighted median by a key, or a sum, so that a campaign costs O(points).  Nothing here knows
 * files, plans or the simulator.  Threads: no shared state. */
#ifndef RG_NOISE_H
#define RG_NOISE_H

#include <stdbool.h>

#include "topo/part.h"
#include "topo/topo.h"

/* What a look shows: bandwidth at the size of the pair matrix one way and both ways at once, bandwidth of a
 * small and of a large size, latency. */
enum look_kind { LOOK_RATE, LOOK_BOTH_WAYS, LOOK_SMALL, LOOK_LARGE, LOOK_LATENCY, LOOK_COUNT };

/* One measured pair. */
struct look {
    int turn, block; /* ascending in time; blocks of the second stage have numbers of their own */
    int src, dst;    /* endpoints */
    float y;         /* see above; -INFINITY: no answer */
    float tail;      /* log(sec_p95 / sec), 0 or more; NAN: not known */
    enum look_kind kind : 8;
    int tier : 8;       /* of the pair */
    int looks_at : 8;   /* second stage: the end it was measured for, 0: src, 1: dst; -1: both */
    bool alone : 1;     /* nothing else ran */
    bool fresh : 1;     /* measured in the second stage, among suspects and controls */
    bool same_pair : 1; /* second stage: the same pair again, because the pair stood out */
    bool
        unselected : 1; /* drawn at random to be measured alone: what "under load" is compared with */
};

/* A part that stands out, or that may. */
struct found {
    enum part part;
    enum side side;
    int a, b; /* as in struct exception; b: -1 for single parts */
    int tier; /* -1: every tier that crosses NICs */
    enum part_state state;
    enum look_kind kind; /* the looks that show it */
    double effect;  /* log of what is left; of latencies of (usual + added) / usual, negative */
    double sd;      /* its standard error */
    double share;   /* of looks or samples in which it shows, 1: all */
    double p;       /* chance that a healthy part looks so */
    double usual_s; /* LOOK_LATENCY: s that are usual */
    enum part also; /* what the looks cannot tell it apart from; PART_COUNT: nothing.  PART_LEAF of
                      * uplinks: no pair within the leaf was measured */
    int looks, alone, partners, blocks; /* evidence: looks with a partner that is fine */
};

struct noise_input {
    const struct topo *topo;
    const struct look *look;
    int looks;
    bool crosses[TIER_MAX]; /* tiers that cross NICs */
};

/* What is usual of a class, for prices and for accept. */
struct usual {
    enum look_kind kind;
    int tier;
    bool alone;
    double y, sigma; /* location and robust standard deviation of healthy looks, log */
    int looks;
};

struct noise {
    struct found
        *found; /* parts that are named, the widest first; of stage 1 alone without fresh looks */
    int founds;
    struct found
        *suspect; /* parts that stage 1 suspects, the surest first: what to measure again */
    int suspects;
    struct usual *usual;
    int usuals;
    /* parallel / alone by tier over pairs that nobody selected; NAN: not measured. */
    double loaded[TIER_MAX];
    /* Standard deviations by level of what a campaign does: of a look, between turns, between blocks of an
     * endpoint, between endpoints; log; NAN: too few. */
    double sd_look, sd_turn, sd_block, sd_part;
};

/* What stage 1 made of its looks, without them: stage 2 goes on from there. */
struct noise_court;

/* Stage 1 alone: fills suspect, usual and loaded; what to measure again.  The caller frees what is returned with
 * noise_court_free(). */
struct noise_court *noise_suspects(struct noise *n, const struct noise_input *in);
void noise_court_free(struct noise_court *c);
/* Both stages, as far as there are looks of the second.  kept: NULL, or from noise_suspects(); stage 1 is taken from
 * there if its looks and places are the same, and is judged again if not.  kept is empty afterwards.  The caller frees
 * with noise_free(). */
void noise_judge(struct noise *n, const struct noise_input *in, struct noise_court *kept);
void noise_free(struct noise *n);

#endif
