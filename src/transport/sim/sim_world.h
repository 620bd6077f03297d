/* sim_world.h - noise of a simulated fabric, as data: topo/worlds/NAME.json.
 *
 * A world describes how real fabrics differ from a formula: noise at each level, stray points,
 * heavy tails, other jobs, hashed and adaptive routing, oversubscription.  Sigmas are of the
 * logarithm of the time, shares are 0 .. 1, and 0 turns a kind off.  A kind is drawn once for each
 *
 *   sample        one run                          (also tail, modes, adaptive)
 *   point         one size of a group in an epoch  (also stray)
 *   ladder        all sizes of a group in a round and epoch
 *   group-epoch   the same members in an epoch
 *   pair          the same members, in the whole campaign
 *   turn          all groups that run at the same time
 *   host-epoch    a host in an epoch
 *   endpoint, host, host-latency   a part: the machine keeps it between campaigns
 *
 * Epochs are counted on through retests, which come later.  Formulas are in sim_noise.c. */
#ifndef RG_SIM_WORLD_H
#define RG_SIM_WORLD_H

#include "base/err.h"
#include "topo/topo.h"

struct sim_world {
    double sample, point, pair, ladder, group_epoch, host_epoch, turn; /* sigmas */
    double endpoint, host;                                             /* sigmas, bandwidth */
    double host_latency; /* sigma of the half normal that lengthens a host's latency */
    double drift;        /* share of the rate lost from the first turn to the last */
    double tick;         /* s, resolution of the clock; 0: exact */
    /* Points at `factor` of their rate: share of parallel points, and of points alone. */
    struct {
        double share, alone, factor;
    } stray;
    /* Samples that take 1 + v times as long, v of a Pareto distribution: scale * u^(-1 / shape), at
     * most `most`. */
    struct {
        double share, scale, shape, most;
    } tail;
    /* Samples at `factor` of their rate. */
    struct {
        double share, factor;
    } modes;
    /* Other jobs: in this share of (leaf, slot of `turns` turns) they leave least .. 1 of the rate
     * to flows that leave or enter the leaf. */
    struct {
        double share, least, turns;
    } jobs;
    /* Flows are hashed onto this number of uplinks per leaf, anew in each epoch or each
     * campaign. */
    struct {
        double uplinks, rehash; /* enum sim_rehash */
    } hashing;
    /* Adaptive routing: under load a sample between leaves gets 1 - |sigma N(0,1)| of its rate, but
     * not less than `least`. */
    struct {
        double sigma, least;
    } adaptive;
    double pxn; /* share of pairs whose traffic takes the NIC of a rail-mate */
    /* Each `of` consecutive groups of a level share uplinks with 1 / ratio of their NICs' rate. */
    struct sim_taper {
        double level, of, ratio; /* level: enum sim_taper_level */
    } taper[4];
    int tapers;
};

enum sim_rehash { REHASH_EPOCH, REHASH_CAMPAIGN };
/* A unit is the hosts that share leaves (a scalable unit, a group of a dragonfly+).  If no leaf is
 * known, leaves and units are racks. */
enum sim_taper_level { TAPER_LEAF, TAPER_RACK, TAPER_UNIT, TAPER_SPINE };

/* Load a shipped world by name, or a file.  EXIT_USAGE: no such world; EXIT_DATA: file, key,
 * value. */
int sim_world_load(struct sim_world *w, const char *name, struct err *err);
void sim_world_each(name_taker *take, void *to); /* names of the shipped worlds */
/* List the shipped worlds as text, each number with its source.  The caller frees. */
char *sim_world_list(struct err *err);

#endif
