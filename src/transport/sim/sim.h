/* sim.h - simulated fabric from formulas: the truth that everything else is tested against.
 *
 *   t = alpha + bytes / (Bps * left * share)    seconds of a pair, times exp(sigma * N(0,1))
 *
 *   alpha, Bps   s, bytes/s    of the pair's tier, from the preset (topo/fabrics)
 *   left         0 .. 1        rate that injected faults leave: the worst that concerns the pair
 *   share        0 .. 1        part of the leaf uplinks that other flows leave
 *   sigma        share         --noise; lognormal, so that the median stays t
 *
 * A world (sim_world.h) adds noise of other kinds, and faults can have states.  The part of a
 * collective that grows with its size is slowed like its slowest link.  Every draw is a pure
 * function of seeds and of its purpose (round, group, epoch, op, bytes, turn), so that a campaign
 * is exactly reproducible, also when it is resumed. */
#ifndef RG_SIM_H
#define RG_SIM_H

#include <stdbool.h>

#include "base/err.h"
#include "base/op.h"
#include "base/opt.h"
#include "base/stats.h"
#include "measure/transports/transport.h"
#include "topo/fabrics/fabric.h"
#include "topo/topo.h"
#include "transport/sim/sim_world.h"

/* Kinds of faults, as NAME=ENDS:F.  Ends are numbers, or names of hosts, leaves and racks.  Uplinks
 * of L are those of rack L if no leaf is known; slow-racks means domains if there are no racks. */
enum fault_kind {
    FAULT_SLOW_LINK,    /* slow-link=A-B:F      the pair A,B, both directions */
    FAULT_SLOW_CABLE,   /* slow-cable=A-B:F     the same for a pair connected over NICs */
    FAULT_SLOW_NIC,     /* slow-nic=E:F[:tx|rx] endpoint E on tiers that cross NICs */
    FAULT_SLOW_GPU,     /* slow-gpu=E:F         endpoint E on other tiers (its NVLink port) */
    FAULT_SLOW_HOST,    /* slow-host=H:F        every endpoint of host H, all tiers */
    FAULT_SLOW_LEAF,    /* slow-leaf=L:F        all traffic of the ports of leaf L */
    FAULT_SLOW_UPLINKS, /* slow-uplinks=L:F[:tx|rx] each flow that leaves (tx) or enters leaf L */
    FAULT_LOST_UPLINKS, /* lost-uplinks=L:F     the same uplinks, F of them left */
    FAULT_SLOW_RACK,    /* slow-rack=R:F        all traffic of the NICs of rack R */
    FAULT_SLOW_RACK_UPLINKS, /* slow-rack-uplinks=R:F[:tx|rx] leaving or entering rack R */
    FAULT_SLOW_RACKS,        /* slow-racks=A-B:F     between racks A and B */
    FAULT_SLOW_FABRIC,       /* slow-fabric=F        every tier that crosses NICs */
    FAULT_DEAD_HOST,         /* dead-host=H          no answer from host H */
    FAULT_CORRUPT,           /* corrupt=E            endpoint E receives wrong data */
    FAULT_LATE_NIC,          /* late-nic=E:TIME      added to each message over the NIC of E */
    FAULT_LATE_LEAF,         /* late-leaf=L:TIME     ... over the ports of leaf L */
    FAULT_LATE_RACK,         /* late-rack=R:TIME     ... over the NICs of rack R */
    FAULT_COUNT
};

/* States: "FAULT@STATE,STATE...".  A fault is active while all of its states hold. */
enum fault_state {
    ON_TIME,    /* time=S     in this share of the time, drawn for FAULT_SLOT turns at once */
    ON_SAMPLES, /* samples=S  in this share of the samples */
    ON_CHECKS,  /* checks=S   (corrupt) in this share of the verifications */
    ON_SINCE,   /* since=S    from this share of the plan's turns on */
    ON_AFTER,   /* after=T    once the group has sent for T seconds without a pause: throttling */
    ON_LOAD,    /* load       while other groups of the same round run */
    ON_BOTH,    /* both       in operations that send and receive at once */
    ON_FROM,    /* from=SIZE  messages of this size and above */
    ON_TO,      /* to=SIZE    messages up to this size */
    ON_ONE_OF,  /* one-of=K   for flows hashed onto one bad uplink of K */
    ON_COUNT
};
enum { FAULT_SLOT = 4 };

/* Uplinks fail in two ways.  slow-uplinks: all of them, or the distribution of flows over them, is
 * bad, and each flow gets F of its rate, also alone.  lost-uplinks: cables are down and flows use
 * the remaining ones; a single flow is not slower, and a leaf whose NICs all send out gets F of the
 * normal rate. */

struct sim_fault {
    enum fault_kind kind;
    enum level level; /* level of a and b, unless they are endpoints */
    bool ids;         /* a and b are endpoints */
    int a, b;         /* -1: no such end */
    double factor;    /* remaining rate, 0 < F <= 1; lost uplinks: remaining share of links */
    double added;     /* s, for late-...; else 0 */
    bool tx, rx;      /* direction, for slow-nic and uplinks */
    unsigned states;  /* bits of enum fault_state; 0: always active */
    double state[ON_COUNT];
};

/* Circumstances under which a group runs; states and worlds depend on them. */
struct sim_now {
    int turn, turns; /* as in struct group */
    int block;       /* block of time: the epoch, counted on through retests and the NIC pass */
    enum op op;
    size_t bytes;
    bool load;   /* other groups run at the same time */
    double busy; /* s that the group has sent for */
    int hit;     /* active fault of ON_SAMPLES in this sample, from 1; 0: none */
};

struct sim {
    const struct fabric *fabric;
    const struct topo *truth;       /* every level visible, even if the measured side is blind */
    const struct topo_tiers *tiers; /* of truth, or NULL */
    /* Seconds of a collective on a healthy group alone, and its first argument, from the preset's
     * cost matrix.  Needed for collectives only. */
    double (*healthy)(const void *of, enum op op, const int *ids, int n, double bytes);
    const void *of;
    double noise; /* sigma, share */
    unsigned long long seed;
    const struct sim_world *world; /* NULL: none */
    unsigned long long machine;    /* seed of properties that the machine keeps between campaigns */
    struct sim_fault *fault;
    int faults;
    bool varies;                 /* true with a world, or a fault with states */
    bool late;                   /* a fault adds time */
    bool by_nic;                 /* NVLink is bypassed: pairs belong to topo_nic_tier() */
    struct sim_uplinks *uplinks; /* uplinks of the last round */
    struct sim_now now;
};

/* Parse one --fault argument against the truth. */
int sim_fault(struct sim *s, const char *text, struct err *err);
void sim_free(struct sim *s); /* frees what sim allocated itself */

/* Noise-free seconds; share: result of sim_share(). */
double sim_pair(const struct sim *s, enum op op, int src, int dst, double bytes, double share);
double sim_collective(const struct sim *s, enum op op, const int *ids, int n, double bytes,
                      double share);
/* Share of the rate between domains, 0..1, that the uplinks of leaves leave to this group of the
 * round; 1 if the group runs alone.  Rounds are identified by address and id. */
double sim_share(struct sim *s, const struct round *r, int group, enum op op);

/* True if this fault is active now, by its states, for the flow src -> dst. */
bool sim_fault_on(const struct sim *s, const struct sim_fault *f, int src, int dst);
/* True if this fault slows src -> dst now.  nic: the pair's traffic crosses NICs. */
bool sim_concerns(const struct sim *s, const struct sim_fault *f, int src, int dst, bool nic);
/* Level of the groups with uplinks: leaves, or racks if no leaf is known. */
static inline enum level sim_uplink_level(const struct topo *t)
{
    return t->group[LEVEL_LEAF].count ? LEVEL_LEAF : LEVEL_RACK;
}

/* --- draws (sim_noise.c) --- */

/* Key of a draw; each value changes all of it. */
static inline unsigned long long sim_mix(unsigned long long h, unsigned long long v)
{
    h ^= v + 0x9e3779b97f4a7c15ULL + (h << 6) + (h >> 2);
    return h * 0xff51afd7ed558ccdULL;
}
/* Number in [0, 1) for this key. */
static inline double sim_uniform(unsigned long long key)
{
    struct rng rng;

    rng_seed(&rng, key);
    return rng_uniform(&rng);
}
/* Number of the hashed uplink (0..K-1) that the flow src -> dst takes. */
int sim_lane(const struct sim *s, int src, int dst, int lanes);
/* Endpoint whose NIC src uses to send to dst: with PXN that of another GPU of its host, on dst's
 * rail. */
int sim_sender(const struct sim *s, int src, int dst);

/* Effect of the world on all samples of a point: factor on the time, share of the rate left. */
struct sim_luck {
    double time, rate;
};
struct sim_luck sim_noise_point(const struct sim *s, const struct group *g);
/* Effect on one sample of `sec` seconds. */
double sim_noise_sample(const struct sim *s, const struct group *g, struct rng *rng, double sec);

/* transport_sim gets its struct sim as group->comm: set world_solo.ctx to it. */

/* --- options --- */

struct sim_opts {
    const char *fabric; /* preset or file; NULL: not requested */
    int racks;          /* 0: the preset's default */
    double noise;       /* sigma, share */
    unsigned long long seed;
    const char *world; /* shipped world or file; NULL: none */
    unsigned long long machine;
    bool blind;         /* the measured topology knows hosts only */
    const char **fault; /* --fault arguments, as typed */
    int faults;
};

/* --fabric --racks --noise --sim-seed --world --machine --fault --blind.  The target must start as
 * zeros. */
extern const struct opt sim_options[];
void sim_opts_free(struct sim_opts *o);

#endif
