/* plan.h - plan of a campaign: ordered rounds of disjoint groups.
 *
 * plan.tsv is this structure as text, one line per round:
 *   round stage op bytes_from bytes_to factor epochs groups
 * groups: pairs "0>5 1>6", collectives "0-7 8-15,17" (separated by a space, run at the same time);
 * epochs: bit list "0,1,2,3,4".  All groups of a round run concurrently; rounds run one after
 * another.
 *
 * Example:
 *
 *     struct plan p;
 *     struct plan_opts o;
 *     struct topo t;
 *     int rc = topo_load(&t, "topology.json", err);
 *
 *     plan_defaults(&o);
 *     if (rc == 0 && plan_make(&p, &t, &o, err) == 0) {
 *         rc = plan_save(&p, "plan.tsv", err);        // then measure_plan() (measure.h)
 *         plan_free(&p);
 *     }
 *     topo_free(&t);
 *     return rc; */
#ifndef RG_PLAN_H
#define RG_PLAN_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/err.h"
#include "base/op.h"
#include "topo/topo.h"
#include "watch/world.h"

enum {
    PLAN_EPOCHS = 8,
    PLAN_CURVE_EPOCHS = 5
}; /* epochs of a plan; epochs in which curves are measured */

/* Up to PLAN_DENSE_TO endpoints, each endpoint is paired with 8 partners in each tier, and each two
 * racks by 4 pairs in at most 16 rounds.  Above: 4 partners, 2 pairs and 8 rounds, which cover the
 * same number of rack pairs.  A tier has thousands of pairs either way.  A part is judged from at
 * least PLAN_PARTNERS = 3 pairs of its own (fit/coverage.c): an endpoint keeps 4 pairs in each
 * tier and 8 more over its NIC, in both directions, and two racks keep 4 values, in several
 * epochs.  In the dense plan, more than half of the class pairs concern only parts with other
 * pairs. */
enum { PLAN_DENSE_TO = 4608, PLAN_PARTNERS = 3 };
/* Largest number of endpoints of which every pair is measured, in parallel and alone.  Every pair of
 * 4,608 is 32 million points, a plan.tsv of 0.4 GB and a points.tsv of 5 GB; alone, every pair of
 * 1,024 is half a million turns of each kind. */
enum { PLAN_EVERY_TO = 4608, PLAN_ALONE_TO = 1024 };
static inline bool plan_is_sparse(const struct topo *t)
{
    return t->endpoints > PLAN_DENSE_TO;
}

enum stage {
    STAGE_CLASS,      /* class matchings: k partners per endpoint and tier */
    STAGE_TOURNAMENT, /* every pair, N-1 rounds of disjoint pairs (circle method, leaf order) */
    STAGE_SHIFT,      /* ring shift: every rank sends to rank + d, or to another leaf */
    STAGE_ISOLATED,   /* one pair at a time */
    STAGE_LADDER,     /* few pairs per tier over all sizes: the curve of the tier */
    STAGE_COLLECTIVE,
    STAGE_RETEST, /* outlier pairs again, alone */
    /* The same with NVLink bypassed, through the NICs: pairs of class matchings or a tournament,
     * the ladders of their tiers (topo_nic_tier()), outliers alone. */
    STAGE_NIC,
    STAGE_NIC_LADDER,
    STAGE_NIC_RETEST,
    STAGE_RANDOM, /* random pairs, one at a time: speed of a pair measured alone */
    /* Suspects and controls again, with other partners, in mixed order.  STAGE_FRESH_TX looks at
     * the first member of each pair, which sends; STAGE_FRESH_RX at the second, which receives. */
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
/* Index of the pair's member that a point was measured for: 0 or 1; -1: neither. */
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
extern const char *const stage_name[STAGE_COUNT + 1]; /* ends with NULL */

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
    int *block; /* common array for all pairs of the round; NULL: each group has its own */
    bool lent;  /* group and block belong to the round before */
};

struct plan {
    struct round *round;
    int rounds;
};

struct plan_opts {
    /* -b -e.  max_bytes 0: 4 MiB for CPUs, 4 GiB for GPUs (64 MiB, 8 GiB with full), divided by the
     * number of ranks that share a GPU.  If a larger size is published for a group, the ladder ends
     * there, provided four buffers of that size fit into GPU memory. */
    size_t min_bytes, max_bytes;
    /* end of the pair ladders; 0: max_bytes if given or full, else 256 MiB for GPUs, where a pair
     * has long reached its rate */
    size_t pair_max;
    int factor;        /* -f */
    size_t pair_bytes; /* bandwidth probe of pair matrices; 0: 256 KiB CPU, 64 MiB GPU */
    unsigned ops;      /* bit mask of enum op for collectives and pairs; default: all but reduce */
    /* schedule: CLASS, TOURNAMENT, SHIFT or ISOLATED; STAGE_COUNT: isolated up to 16 endpoints,
     * tournament up to 32 (quick: up to PLAN_EVERY_TO), class matchings above.  A schedule of every
     * pair of more endpoints than PLAN_EVERY_TO or PLAN_ALONE_TO is refused with its cost. */
    enum stage pairs;
    int matchings; /* k of class matchings; 0: 8, above PLAN_DENSE_TO endpoints 4 */
    int epochs;    /* 1..PLAN_EPOCHS */
    unsigned long long seed;
    bool full;     /* ladders on more groups and sizes */
    bool quick;    /* no pair ladders, whatever else is requested */
    double cables; /* s for rounds that connect as many NIC pairs as fit; 0: none */
    bool nics;     /* if topo_hides_nics(): add rounds through the NICs, for a second pass */
};
void plan_defaults(struct plan_opts *o);
/* Replace 0 in max_bytes, pair_bytes and matchings by the values for these endpoints. */
void plan_fill_auto(struct plan_opts *o, const struct topo *t);
/* Find the preset of these GPUs.  None if the user gave sizes or ranks share GPUs. */
struct fabric;
void plan_known(struct fabric *known, const struct topo *t, bool sized);
/* Last size of a collective's ladder: `usual`, or the largest size published for the same kind of
 * group (acceptance texts ask for it) if GPU memory holds four buffers of that size. */
size_t plan_last_size(const struct fabric *known, const struct topo *t, enum op op,
                      const struct plan_group *g, size_t usual);

/* Make a plan:
 *
 *   pairs        rounds by o->pairs
 *   ladders      per tier; none if only latency and bandwidth of pairs are requested without sizes
 *   collectives  per level: host, domain, rack, growing numbers of the outermost level, one
 *                endpoint of each, world
 *   hosts only   if no level above the host is visible, one endpoint of each host plays a
 *                tournament to find racks, pairs of hosts measure latency between any two of their
 *                endpoints to find rails, and the ladder of the last tier covers near and far hosts
 *   NICs         with o->nics, if no pair would cross a NIC: rounds of the NIC stages
 *   uplinks      if leaves or racks are visible: all endpoints of one send to another at once, to
 *                three in turn, which shows if there are fewer uplinks than NICs
 *   cables       o->cables adds pairs of NICs */
int plan_make(struct plan *p, const struct topo *t, const struct plan_opts *o, struct err *err);
int plan_load(struct plan *p, const char *path, int endpoints, struct err *err);
int plan_save(const struct plan *p, const char *path, struct err *err);
/* The text of plan.tsv from memory and back.  plan_parse() takes ownership of text (from
 * malloc). */
int plan_parse(struct plan *p, const char *path, char *text, int endpoints, struct err *err);
char *plan_text(const struct plan *p); /* the caller frees */
/* Collective: send rank 0's plan, possibly empty, to all ranks; `what` is its name in messages. */
int plan_share(struct plan *p, const char *what, struct world *w, int endpoints, struct err *err);
/* Bit mask of the epochs in which ladders and collectives are measured: PLAN_CURVE_EPOCHS of
 * `epochs`, spread evenly. */
unsigned plan_curve_epochs(int epochs);
/* Append a round with room for `groups` groups, owned by the plan. */
struct round *plan_add(struct plan *p, enum stage stage, enum op op, int groups);
/* What a round of pairs measures. */
struct plan_pairs {
    enum stage stage;
    enum op op;
    size_t bytes;
    unsigned epochs; /* bit mask */
};
/* Append a round of pairs; the first of each pair sends to the second. */
void plan_add_pairs(struct plan *p, const struct plan_pairs *what, const int (*pair)[2], int pairs);
/* Free the members of pair groups, which are not needed once measured.  Their rounds stay. */
void plan_forget_pairs(struct plan *p);
void plan_free(struct plan *p);

/* The ladder of a round has steps 0..plan_steps()-1.  The size of a group at a step is rounded up
 * to whole blocks; 0 if that repeats the step before. */
int plan_steps(const struct round *r);
size_t plan_size(const struct round *r, int group_size, int step);
unsigned plan_crc(const struct plan *p); /* ties points.tsv to its plan */

/* --- expected cost --- */

/* Number of points of one pass of a plan: (group, size, epoch).  by_nic: of the rounds through the
 * NICs. */
double plan_points(const struct plan *p, bool by_nic);

/* Time cap in force: `asked`; for 0, between 20 and 100 ms, so that the turns take at most about 40
 * s together (between CPUs 10 s, 5 to 20 ms). */
double plan_time_cap(const struct plan *p, const struct topo *t, double asked);

/* Longest message time in force, s: `asked`; for 0, the default of these endpoints. */
double plan_max_run(const struct topo *t, double asked);

/* Print "8 endpoints, 61 rounds, about 3410 points, 1.2 GiB moved, about 12 s to 40 s of
 * measuring\n".  The time is a guess, because nothing is measured yet:
 *
 *   one message    alpha * ranks + bytes / rate, of a quiet machine and of a busy one (plan_cost.c)
 *   first time     as many runs as the stop rule wants on an undisturbed machine, and warm-up; a
 *                  quarter of the time cap where groups run in parallel
 *   second time    every size up to its time cap, as on a busy machine; between CPUs the second
 *                  stage, too
 *   both           the rest of a turn: opening groups, checks, exchanges; between CPUs the start of
 *                  MPI, too
 *   pairs of NICs  (--cables) connecting, 0.2 s between GPUs, and every size up to its time cap
 *
 * Pictures and starting ranks of GPUs come on top.  A second line gives the share of the NIC pass,
 * another the time for suspects; plan_sees() and the number of measured NIC pairs follow. */
void plan_cost_print(FILE *out, const struct plan *p, const struct topo *t,
                     const struct measure_opts *o);
json_t *plan_cost_json(const struct plan *p, const struct topo *t, const struct measure_opts *o);

/* Sentences on what the plan can and cannot detect, for instance "one host: no NIC is measured".
 * plan_sees_log() shows them.  The caller frees. */
json_t *plan_sees(const struct plan *p, const struct topo *t);
void plan_sees_log(const struct plan *p, const struct topo *t);

/* Seconds to make the pair communicators of this pass on demand, while `pool` communicators are
 * kept; 0 for CPUs. */
enum { PLAN_POOL = 16 };
double plan_connect_seconds(const struct plan *p, const struct topo *t, int pool, bool by_nic);
/* Seconds of a round of NIC pairs in both directions: connecting, and messages at the NIC's
 * rate. */
double plan_cable_seconds(const struct topo *t, size_t bytes);

/* Number of pairs that cross NICs (all), and of those that the plan measures (seen). */
void plan_cables_seen(const struct plan *p, const struct topo *t, double *seen, double *all);

/* The second time of plan_cost_print(), s. */
double plan_seconds(const struct plan *p, const struct topo *t, const struct measure_opts *o);

/* EXIT_USAGE with the cost of measuring every pair, and what to do instead. */
int plan_refuse_every(const struct topo *t, bool alone, size_t bytes, struct err *err);

/* Guessed seconds of --exact: latency, and bandwidth both ways at `bytes`, of every pair once. */
double plan_exact_seconds(const struct topo *t, size_t bytes);

#endif
