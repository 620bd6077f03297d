/* plan.h - what will be measured, in which order: rounds of disjoint groups.
 *
 * plan.tsv is this structure as text; one line a round:
 *   round stage op bytes_from bytes_to factor epochs groups
 * groups: pairs "0>5 1>6", collectives "0-7 8-15,17" (separated by a space, run at the same time);
 * epochs: bit list "0,1,2,3,4".  All groups of a round run concurrently; rounds run one after
 * another. */
#ifndef RG_PLAN_H
#define RG_PLAN_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/err.h"
#include "base/op.h"
#include "probe/world.h"
#include "topo/topo.h"

enum {
    PLAN_EPOCHS = 8,
    PLAN_CURVE_EPOCHS = 5
}; /* blocks of time; in how many of them curves are measured */

/* Up to so many endpoints everybody meets 8 others in each tier, and each two racks meet by 4 pairs
 * in at most 16 rounds; beyond, 4 others, 2 pairs and 8 rounds, which are as many pairs of racks.
 * A tier is told by all of its pairs, thousands either way.  A part is told by its own: an endpoint
 * keeps 4 pairs in each tier and 8 more over its NIC, each both ways, two racks 4 values, where 3
 * are judged (PLAN_PARTNERS; seen.h), in several epochs; of the pairs of a class more than half
 * were never about a part that has no others. */
enum { PLAN_DENSE_TO = 4608, PLAN_PARTNERS = 3 };
static inline bool plan_is_sparse(const struct topo *t)
{
    return t->endpoints > PLAN_DENSE_TO;
}

enum stage {
    STAGE_CLASS,      /* class matchings: k partners per endpoint and tier */
    STAGE_TOURNAMENT, /* every pair, N-1 rounds of disjoint pairs (circle method, leaf order) */
    STAGE_SHIFT,      /* ring shift: everybody sends to rank + d, or to another leaf */
    STAGE_ISOLATED,   /* one pair at a time */
    STAGE_LADDER,     /* few pairs per tier over all sizes: the tier's curve */
    STAGE_COLLECTIVE,
    STAGE_RETEST, /* pairs that stood out, the same pairs again, alone */
    /* The same with NVLink left, through the NICs: pairs of class matchings or a tournament, the
     * ladders of their tiers (topo_nic_tier()), outliers alone. */
    STAGE_NIC,
    STAGE_NIC_LADDER,
    STAGE_NIC_RETEST,
    STAGE_RANDOM, /* pairs drawn at random, one at a time: what a pair gets alone */
    /* Suspects and controls again, with other partners, in mixed order: STAGE_FRESH_TX looks at the first
     * member of each pair, which sends; STAGE_FRESH_RX at the second, which receives. */
    STAGE_FRESH_TX,
    STAGE_FRESH_RX,
    STAGE_NIC_RANDOM,
    STAGE_NIC_FRESH_TX,
    STAGE_NIC_FRESH_RX,
    STAGE_COUNT
};
static inline bool stage_by_nic(enum stage s)
{
    return (s >= STAGE_NIC && s <= STAGE_NIC_RETEST) || s >= STAGE_NIC_RANDOM;
}
/* The endpoint that a point was measured for: 0 the first of the pair, 1 the second; -1: none of both. */
static inline int stage_looks_at(enum stage s)
{
    return s == STAGE_FRESH_TX || s == STAGE_NIC_FRESH_TX   ? 0
           : s == STAGE_FRESH_RX || s == STAGE_NIC_FRESH_RX ? 1
                                                            : -1;
}
/* True if earlier points decided that this pair is measured. */
static inline bool stage_is_retest(enum stage s)
{
    return s == STAGE_RETEST || s == STAGE_NIC_RETEST || stage_looks_at(s) >= 0;
}
extern const char *const stage_name[STAGE_COUNT + 1]; /* NULL ends it */

struct measure_opts; /* measure.h */

struct plan_group {
    int *members;
    int size;
};

struct round {
    int id; /* unique in the plan; with group index, size and epoch it keys a point */
    enum stage stage;
    enum op op;
    size_t first, last; /* sizes first, first*factor, ... <= last; see plan_size() */
    int factor;
    unsigned epochs; /* bit e: measured in epoch e */
    struct plan_group *group;
    int groups;
    int *block; /* where all members of its pairs are; NULL: each group has its own */
};

struct plan {
    struct round *round;
    int rounds;
};

struct plan_opts {
    size_t min_bytes, max_bytes; /* -b -e; max 0: 4 MiB for CPUs, 4 GiB for GPUs (64 MiB, 8 GiB with
                                  * full); GPUs that several ranks share: so much less; groups of
                                  * which larger ones are published: those, where four of them go
                                  * into the GPU's memory */
    size_t pair_max; /* end of the pairs' ladders; 0: as max_bytes where that is given or full, else
                      * 256 MiB for GPUs, where a pair has long been at its rate */
    int factor;      /* -f */
    size_t
        pair_bytes;   /* size of the bandwidth probe in pair matrices; 0: 256 KiB CPU, 64 MiB GPU */
    unsigned ops;     /* bit mask of enum op for collectives and pairs; default: all but reduce */
    enum stage pairs; /* schedule: CLASS, TOURNAMENT, SHIFT or ISOLATED; STAGE_COUNT: isolated
                       * to 16 endpoints, tournament to 32, class matchings above */
    int matchings;    /* k of class matchings; 0: 8, of more than PLAN_DENSE_TO endpoints 4 */
    int epochs;       /* 1..PLAN_EPOCHS */
    unsigned long long seed;
    bool full;     /* ladders on more groups and sizes */
    bool quick;    /* no ladders of pairs, whatever else is asked for */
    double cables; /* s for rounds that join as many pairs of NICs as fit; 0: none */
    bool nics;     /* where topo_hides_nics(): rounds through the NICs, for a second pass */
};
void plan_defaults(struct plan_opts *o);
/* What 0 stands for in max_bytes, pair_bytes and matchings, for these endpoints. */
void plan_fill_auto(struct plan_opts *o, const struct topo *t);
/* The preset of these GPUs; where the user gave sizes, or ranks share GPUs: none. */
struct fabric;
void plan_known(struct fabric *known, const struct topo *t, bool sized);
/* The end of a collective's ladder: the usual, or the largest size that is published of such a
 * group, which is what acceptance texts ask for, if the GPU's memory holds four of them. */
size_t plan_last_size(const struct fabric *known, const struct topo *t, enum op op,
                      const struct plan_group *g, size_t usual);

/* Rounds for pairs by o->pairs, ladders per tier (none where only latency and bandwidth of pairs are
 * asked for and no sizes), collectives per level (host, domain, rack,
 * growing numbers of the outermost level, one endpoint of each, world).  When nothing above the
 * host is visible, one endpoint of every host plays a tournament so that racks can be found by
 * measuring, pairs of hosts measure latency between any two of their endpoints so that rails can,
 * and the ladder of the last tier is that of near and far hosts.
 * Where no pair would cross a NIC and o->nics, rounds of the stages that do.
 * Where leaves or racks are visible, all of one send to another one at once, to three in turn, so
 * that uplinks can be found to be fewer than NICs.  o->cables adds pairs of NICs. */
int plan_make(struct plan *p, const struct topo *t, const struct plan_opts *o, struct err *err);
int plan_load(struct plan *p, const char *path, int endpoints, struct err *err);
int plan_save(const struct plan *p, const char *path, struct err *err);
/* The text of plan.tsv from memory and back; parse takes over text, which came from malloc. */
int plan_parse(struct plan *p, const char *path, char *text, int endpoints, struct err *err);
char *plan_text(const struct plan *p); /* the caller frees */
/* Collective: rank 0's plan, which may be empty, to everybody; `what` it is, for messages. */
int plan_share(struct plan *p, const char *what, struct world *w, int endpoints, struct err *err);
/* The epochs in which ladders and collectives are measured, as bits: PLAN_CURVE_EPOCHS of so many, spread. */
unsigned plan_curve_epochs(int epochs);
/* Append one round with room for `groups` groups; the plan owns it. */
struct round *plan_add(struct plan *p, enum stage stage, enum op op, int groups);
/* ... of pairs at one size: the first of each sends to the second. */
void plan_add_pairs(struct plan *p, enum stage stage, enum op op, size_t bytes, unsigned epochs,
                    const int (*pair)[2], int pairs);
/* Who is in the groups of pairs, which is asked for no more once they are measured: their rounds stay. */
void plan_forget_pairs(struct plan *p);
void plan_free(struct plan *p);

/* The ladder of a round: steps 0..plan_steps()-1; a group's size at a step is rounded up to whole
 * blocks, and 0 where that repeats the step before. */
int plan_steps(const struct round *r);
size_t plan_size(const struct round *r, int group_size, int step);
unsigned plan_crc(const struct plan *p); /* ties points.tsv to its plan */

/* --- what it will cost --- */

/* Points of one pass of a plan: (group, size, epoch); by_nic: of the rounds through the NICs. */
double plan_points(const struct plan *p, bool by_nic);

/* The time cap in force: `asked`, or for 0 one that lets the turns take no more than about 40 s
 * together, 20..100 ms; between CPUs 10 s, 5..20 ms. */
double plan_time_cap(const struct plan *p, const struct topo *t, double asked);

/* The longest message in force: `asked`, or for 0 what suits the endpoints. */
double plan_max_run(const struct topo *t, double asked);

/* "8 endpoints, 61 rounds, about 3410 points, 1.2 GiB moved, about 12 s to 40 s of measuring\n".
 * The time is a guess, for nothing is measured yet:
 *
 *   one message    alpha * ranks + bytes / rate, of a quiet machine and of a busy one (plan_cost.c)
 *   first time     as many runs as the stop rule wants when nothing disturbs, and warm-up; a quarter
 *                  of the time cap where groups run in parallel
 *   second time    every size up to its time cap, as on a busy machine; between CPUs the second stage, too
 *   both           what a turn takes beside its messages: opening groups, checks, exchanges; between
 *                  CPUs the start of MPI, too
 *
 *   pairs of NICs  (--cables) connecting, 0.2 s between GPUs, and every size up to its time cap
 *
 * Pictures come on top, and what starting ranks of GPUs takes.  A second line tells what of it the pass through
 * the NICs is, another how long suspects may take; plan_sees() and the pairs of NICs that are measured follow. */
void plan_cost_print(FILE *out, const struct plan *p, const struct topo *t,
                     const struct measure_opts *o);
json_t *plan_cost_json(const struct plan *p, const struct topo *t, const struct measure_opts *o);

/* Sentences on what the plan can see and what it cannot, for instance "one host: no NIC is measured"; the
 * caller frees.  plan_sees_log() shows them. */
json_t *plan_sees(const struct plan *p, const struct topo *t);
void plan_sees_log(const struct plan *p, const struct topo *t);

/* s for the pairs' communicators of this pass, where each is made when it is needed and `pool` of
 * them are kept; 0 of CPUs. */
enum { PLAN_POOL = 16 };
double plan_connect_seconds(const struct plan *p, const struct topo *t, int pool, bool by_nic);
/* The same of one round of pairs of NICs, both ways: connecting, and messages at the NIC's rate. */
double plan_cable_seconds(const struct topo *t, size_t bytes);

/* Pairs that cross NICs, and how many of them the plan measures. */
void plan_cables_seen(const struct plan *p, const struct topo *t, double *seen, double *all);

/* The second of them, s. */
double plan_seconds(const struct plan *p, const struct topo *t, const struct measure_opts *o);

/* Seconds, by the same guess, of --exact: latency and both ways' bandwidth at `bytes` of every
 * pair, once. */
double plan_exact_seconds(const struct topo *t, size_t bytes);

#endif
