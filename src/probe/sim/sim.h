/* sim.h - a fabric that is a formula: the truth that everything else is tested against.
 *
 *   t = alpha + bytes / (Bps * left * share)    seconds of a pair, times exp(sigma * N(0,1))
 *
 *   alpha, Bps   s, bytes/s    of the pair's tier, from the preset (topo/fabrics)
 *   left         0 .. 1        what injected faults leave: the worst that concerns the pair
 *   share        0 .. 1        what others leave of the uplinks of its leaves
 *   sigma        share         --noise; lognormal, so that the median stays t
 *
 * A world (sim_world.h) adds noise of other kinds, and faults can have states.  A collective's part
 * that grows with its size is slowed as its slowest link is.  Every draw is a pure function of seeds
 * and of what it is for (round, group, epoch, op, bytes, turn), so a campaign is exactly
 * reproducible, also when it is resumed. */
#ifndef RG_SIM_H
#define RG_SIM_H

#include <stdbool.h>

#include "base/err.h"
#include "base/op.h"
#include "base/opt.h"
#include "base/stats.h"
#include "probe/sim/sim_world.h"
#include "probe/transport.h"
#include "topo/fabrics/fabric.h"
#include "topo/topo.h"

/* Ends are numbers, or names of hosts, leaves and racks. */
enum fault_kind {
    FAULT_SLOW_LINK,         /* slow-link=A-B:F      the pair A,B, both directions */
    FAULT_SLOW_CABLE,        /* slow-cable=A-B:F     the same of a pair that meets over NICs */
    FAULT_SLOW_NIC,          /* slow-nic=E:F[:tx|rx] endpoint E on tiers that cross NICs */
    FAULT_SLOW_GPU,          /* slow-gpu=E:F         endpoint E on tiers that do not (its NVLink
                                port) */
    FAULT_SLOW_HOST,         /* slow-host=H:F        every endpoint of host H, all tiers */
    FAULT_SLOW_LEAF,         /* slow-leaf=L:F        all that the ports of leaf L carry */
    FAULT_SLOW_UPLINKS,      /* slow-uplinks=L:F[:tx|rx] each flow that leaves leaf L (tx: up), or
                                comes down to it; where no leaf is known, rack L */
    FAULT_LOST_UPLINKS,      /* lost-uplinks=L:F     the same uplinks, F of them left */
    FAULT_SLOW_RACK,         /* slow-rack=R:F        all that the NICs of rack R carry */
    FAULT_SLOW_RACK_UPLINKS, /* slow-rack-uplinks=R:F[:tx|rx] what leaves or enters rack R */
    FAULT_SLOW_RACKS,        /* slow-racks=A-B:F     between racks A and B (domains when there are
                                no racks) */
    FAULT_SLOW_FABRIC,       /* slow-fabric=F        every tier that crosses NICs */
    FAULT_DEAD_HOST,         /* dead-host=H          no answer from host H */
    FAULT_CORRUPT,           /* corrupt=E            endpoint E receives wrong data */
    FAULT_LATE_NIC,          /* late-nic=E:TIME      added to each message over the NIC of E */
    FAULT_LATE_LEAF,         /* late-leaf=L:TIME     ... over the ports of leaf L */
    FAULT_LATE_RACK,         /* late-rack=R:TIME     ... over the NICs of rack R */
    FAULT_COUNT
};

/* States: "FAULT@STATE,STATE...".  A fault is there while all of its states hold. */
enum fault_state {
    ON_TIME,    /* time=S     in this share of the time, drawn for FAULT_SLOT turns at once */
    ON_SAMPLES, /* samples=S  in this share of the samples */
    ON_CHECKS,  /* checks=S   (corrupt) in this share of the verifications */
    ON_SINCE,   /* since=S    from this share of the plan's turns on */
    ON_AFTER,   /* after=T    once the group has sent for T seconds without a pause: throttling */
    ON_LOAD,    /* load       beside other groups of the same round */
    ON_BOTH,    /* both       in operations that send and receive at once */
    ON_FROM,    /* from=SIZE  messages of this size and above */
    ON_TO,      /* to=SIZE    messages up to this size */
    ON_ONE_OF,  /* one-of=K   flows that are hashed onto one bad uplink of K */
    ON_COUNT
};
enum { FAULT_SLOT = 4 };

/* Uplinks fail in two ways.  slow-uplinks: every one of them, or the way that flows are spread over
 * them, is bad, and each flow gets F of its rate, alone as well.  lost-uplinks: cables are down and
 * flows go over those that are left; one flow alone notices nothing, and a leaf whose NICs all send
 * out gets F of what they could. */

struct sim_fault {
    enum fault_kind kind;
    enum level level; /* of a and b, unless these are endpoints */
    bool ids;         /* they are */
    int a, b;         /* -1: there is none */
    double factor;    /* what is left of the rate, 0 < F <= 1; of lost uplinks, of their number */
    double added;     /* s, of late-...; else 0 */
    bool tx, rx;      /* slow-nic, uplinks */
    unsigned states;  /* bits of enum fault_state; 0: always there */
    double state[ON_COUNT];
};

/* When, and beside what, a group runs: what states and worlds depend on. */
struct sim_now {
    int turn, turns; /* as in struct group */
    int block;       /* of time: the epoch, counted on through retests and the pass through NICs */
    enum op op;
    size_t bytes;
    bool load;   /* other groups run at the same time */
    double busy; /* s that the group has sent for */
    int hit;     /* fault of ON_SAMPLES that this sample meets, from 1; 0: none */
};

struct sim {
    const struct fabric *fabric;
    const struct topo *truth; /* with every level visible, also when the measured side is blind */
    /* Seconds of a collective of a healthy group alone, and what to hand to it: whoever makes the
     * bed has the preset's cost matrix.  Only collectives need it. */
    double (*healthy)(const void *of, enum op op, const int *ids, int n, double bytes);
    const void *of;
    double noise; /* sigma, share */
    unsigned long long seed;
    const struct sim_world *world; /* NULL: none */
    unsigned long long machine;    /* seed of what the machine keeps from campaign to campaign */
    struct sim_fault *fault;
    int faults;
    bool varies;                 /* a world, or a fault with states */
    bool late;                   /* a fault adds time */
    bool by_nic;                 /* NVLink is left: pairs are of topo_nic_tier() */
    struct sim_uplinks *uplinks; /* of the round that was asked for last */
    struct sim_now now;
};

/* Parse one --fault argument against the truth. */
int sim_fault(struct sim *s, const char *text, struct err *err);
void sim_free(struct sim *s); /* what it allocated itself */

/* Noise-free seconds; share: what sim_share() says. */
double sim_pair(const struct sim *s, enum op op, int src, int dst, double bytes, double share);
double sim_collective(const struct sim *s, enum op op, const int *ids, int n, double bytes,
                      double share);
/* What the uplinks of leaves leave of the rate between domains of this group of the round, 0..1, 1
 * where it runs alone.  Rounds are told apart by address and id. */
double sim_share(struct sim *s, const struct round *r, int group, enum op op);

/* True if this fault is there now, by its states, for the flow src -> dst. */
bool sim_fault_on(const struct sim *s, const struct sim_fault *f, int src, int dst);
/* True if this fault slows src -> dst now.  nic: the pair's traffic crosses NICs. */
bool sim_concerns(const struct sim *s, const struct sim_fault *f, int src, int dst, bool nic);
/* Leaves, or racks where no leaf is known: whose uplinks are meant. */
static inline enum level sim_uplink_level(const struct topo *t)
{
    return t->group[LEVEL_LEAF].count ? LEVEL_LEAF : LEVEL_RACK;
}

/* --- draws (sim_noise.c) --- */

/* Key of a draw: each value changes all of it. */
static inline unsigned long long sim_mix(unsigned long long h, unsigned long long v)
{
    h ^= v + 0x9e3779b97f4a7c15ULL + (h << 6) + (h >> 2);
    return h * 0xff51afd7ed558ccdULL;
}
/* A number in [0, 1) for this key. */
static inline double sim_uniform(unsigned long long key)
{
    struct rng rng;

    rng_seed(&rng, key);
    return rng_uniform(&rng);
}
/* Which of K hashed uplinks the flow src -> dst takes. */
int sim_lane(const struct sim *s, int src, int dst, int lanes);
/* The endpoint whose NIC src sends to dst with: with PXN that of another GPU of its host, on dst's
 * rail. */
int sim_sender(const struct sim *s, int src, int dst);

/* What the world does to all samples of one point: factor on its time, share of the rate left. */
struct sim_luck {
    double time, rate;
};
struct sim_luck sim_noise_point(const struct sim *s, const struct group *g);
/* ... and to one sample of `sec` seconds. */
double sim_noise_sample(const struct sim *s, const struct group *g, struct rng *rng, double sec);

/* transport_sim gets its struct sim as group->comm: set world_solo.ctx to it. */

/* --- its options --- */

struct sim_opts {
    const char *fabric; /* preset or file; NULL: none asked */
    int racks;          /* 0: the preset's default */
    double noise;       /* sigma, share */
    unsigned long long seed;
    const char *world; /* shipped world or file; NULL: none */
    unsigned long long machine;
    bool blind;         /* the measured topology knows hosts only */
    const char **fault; /* --fault arguments, as typed */
    int faults;
};

/* --fabric --racks --noise --sim-seed --world --machine --fault --blind, into what started as all zeros. */
extern const struct opt sim_options[];
void sim_opts_free(struct sim_opts *o);

#endif
