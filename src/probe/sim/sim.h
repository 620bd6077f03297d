/* sim.h - a fabric that is a formula: the truth that everything else is tested against.
 *
 *   t = alpha + bytes / (Bps * left * share)    seconds of a pair, times exp(sigma * N(0,1))
 *
 *   alpha, Bps   s, bytes/s    of the pair's tier, from the preset (topo/fabrics)
 *   left         0 .. 1        what injected faults leave: the worst that concerns the pair
 *   share        0 .. 1        what others leave of the uplinks of its leaves
 *   sigma        share         --noise; lognormal, so that the median stays t
 *
 * A collective's part that grows with its size is slowed as its slowest link is.  Every draw is a
 * pure function of (seed, round, group, epoch, op, bytes), so a campaign is exactly reproducible.
 * */
#ifndef RG_SIM_H
#define RG_SIM_H

#include <stdbool.h>

#include "base/err.h"
#include "base/op.h"
#include "base/opt.h"
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
    FAULT_COUNT
};

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
    bool tx, rx;      /* slow-nic, uplinks */
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
    struct sim_fault *fault;
    int faults;
    bool by_nic;                 /* NVLink is left: pairs are of topo_nic_tier() */
    struct sim_uplinks *uplinks; /* of the round that was asked for last */
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

/* Does this fault slow src -> dst?  nic: the pair's traffic crosses NICs. */
bool sim_concerns(const struct sim *s, const struct sim_fault *f, int src, int dst, bool nic);
/* Leaves, or racks where no leaf is known: whose uplinks are meant. */
enum level sim_uplink_level(const struct topo *t);

/* transport_sim gets its struct sim as group->comm: set world_solo.ctx to it. */

/* --- its options --- */

struct sim_opts {
    const char *fabric; /* preset or file; NULL: none asked */
    int racks;          /* 0: the preset's default */
    double noise;       /* sigma, share */
    unsigned long long seed;
    bool blind;         /* the measured topology knows hosts only */
    const char **fault; /* --fault arguments, as typed */
    int faults;
};

/* --fabric --racks --noise --sim-seed --fault --blind, into what started as all zeros. */
extern const struct opt sim_options[];
void sim_opts_free(struct sim_opts *o);

#endif
