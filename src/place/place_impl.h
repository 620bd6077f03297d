/* place_impl.h - shared by the files of place: free slots, rows and classes of hosts, ranks as
 * digits, and a placer that prices orders.
 *
 * Work is counted, not clocked: a search with equal input and seed prices the same orders on every
 * machine, whatever its load. */
#ifndef RG_PLACE_IMPL_H
#define RG_PLACE_IMPL_H

#include "base/log.h"
#include "base/map.h"
#include "base/stats.h"
#include "place/place.h"

enum { DIGITS = 8 };

/* --- place_pool.c: free slots by host, and hosts in rows --- */

struct node_pool {
    const struct matrix *matrix;
    const struct host_slots *of; /* all slots of all hosts */
    int *host, hosts;            /* as given */
    int *start; /* slots of free host i: endpoint[start[i]] .. endpoint[start[i + 1] - 1] */
    int *endpoint, slots;
    int *row;     /* per host of the topology: its index in `host`; -1: not free */
    int *row_of;  /* per endpoint: index in `host`, if the slot is free */
    int per_host; /* most free slots of one host */
    int asked;    /* requested per_host; 0: all */
    /* Per free host: true if a slow part touches it.  For a slow pair of racks, the hosts of one of
     * them. */
    bool *slow;
};
/* Fill p.  host NULL: all hosts.  EXIT_USAGE: a host does not exist or is listed twice.  Call
 * node_pool_free() even then. */
int node_pool_make(struct node_pool *p, const struct matrix *m, const struct host_slots *of,
                   const int *host, int hosts, int per_host, struct err *err);
void node_pool_free(struct node_pool *p);

/* Number of free slots of the free host at this index. */
static inline int node_pool_slots(const struct node_pool *p, int host)
{
    return p->start[host + 1] - p->start[host];
}

/* Fill level[] with the levels that group free hosts, narrow ones first.  Returns their number. */
int node_pool_levels(const struct node_pool *p, int level[LEVEL_COUNT]);
/* Returns the largest number of peers that a free slot has at this tier or a nearer one. */
int node_pool_peers(const struct node_pool *p, int tier);
/* Returns the number of free slots in each group of a level.  The caller frees. */
int *node_pool_group_slots(const struct node_pool *p, int level, bool healthy);
/* Make the ranks of each host take its slots in ascending order, as launchers do. */
void node_pool_in_slot_order(const struct node_pool *p, int *order, int ranks);

enum row_how {
    ROW_NEAR,   /* near hosts are adjacent */
    ROW_LARGE,  /* same, boxes with the most free slots first */
    ROW_HEALTHY /* same, hosts touched by a slow part last */
};
enum { ROW_HOWS = ROW_HEALTHY + 1 };

/* Hosts in a row, cut into boxes: the hosts of one group at `level`. */
struct row {
    int level;
    int *host, hosts; /* indices into pool.host */
    int *first;       /* index of the first host of each box; first[boxes] is hosts */
    int boxes;
};
/* Make a row.  within, group: outer level and group that the hosts must belong to; -1: any. */
void row_make(struct row *r, const struct node_pool *p, int level, enum row_how how, int within,
              int group);
/* slots of a box; -1: of all */
int row_slots(const struct row *r, const struct node_pool *p, int box);
int row_largest(const struct row *r, const struct node_pool *p); /* slots of the largest box */
/* True if row[i] equals an earlier one.  Common, because on most machines racks are domains and no
 * host is slow. */
bool row_again(const struct row *row, int i);
void row_free(struct row *r);
/* Fill slot[0 .. ranks - 1]: blocks of block[0] slots go whole into boxes, in order; the rest of
 * the boxes takes blocks of block[1], and so on; the last is 1.  Each size divides the previous
 * one.  roomy: take the rest from the box with the most room, so that a block too large for any box
 * is split into few parts. */
bool row_fill(const struct row *r, const struct node_pool *p, const int *block, int blocks,
              int ranks, bool roomy, int *slot);
/* Fill slots with parts of lines: each takes a number of units of `unit` slots from the rest of its
 * box.  The parts must fit. */
struct row_part {
    int box, units;
};
void row_fill_parts(const struct row *r, const struct node_pool *p, int unit,
                    const struct row_part *part, int parts, int *slot);

/* --- place_cut.c: lines cut into parts, each inside one box --- */

/* Lines of an axis (all ranks are in one) to be cut over domains with given numbers of slots. */
struct cut_lines {
    int ranks, size, few; /* ranks of a line; few: minimum ranks of a part */
    /* beside: slots needed per member (P); whole: those of lines side by side that are cut
     * alike (W) */
    long beside, whole;
    const int *of, slots; /* of[c]: number of domains with c slots, c <= slots */
};
/* False: no such cut exists.  True: one may exist. */
bool cut_possible(const struct cut_lines *l);

/* Cutting problem and its progress. */
struct cutting {
    int lines, units, boxes; /* number of lines, units per line, boxes */
    int *room;               /* free units of each box */
    /* parts in order of lines; room for two per line, in cut_equally() for one per box */
    struct row_part *part;
    int parts;
    /* few: minimum units of a part; use[n]: units that such parts can fill of n free ones */
    int few, *use;
    struct map tried; /* states of room without a solution */
    long looks;       /* number of boxes examined */
};
enum { CUT_LOOKS = 1 << 16 };
/* Cut each line whole or into two parts, with the smallest part as large as the search finds.
 * Result in c->part, line by line.  False: no solution found. */
bool cut_largely(struct cutting *c);

/* --- place_classes.c: free hosts grouped into classes of equal ones --- */

struct host_class {
    /* Hash of the positions of its endpoints relative to each other, and of the exceptions that
     * touch them. */
    uint64_t inside;
    int *key; /* groups that contain it, level by level; indices into host_classes.label */
    int keys;
    int *at; /* positions in the pool, ascending */
    int count;
};

struct host_classes {
    struct host_class *list;
    int count, hosts;
    int *of; /* class of each position */
    /* previous and next position of the same class; -1 and `hosts` at the ends */
    int *prev, *next;
    int base[LEVEL_COUNT + 1]; /* keys of level l start at base[l] */
    struct host_label {
        unsigned stamp;
        int label;
    } * label; /* scratch */
    unsigned stamp;
};
void host_classes_make(struct host_classes *k, const struct node_pool *p);
void host_classes_free(struct host_classes *k);
/* Returns the group of a class's first endpoint at a level; -1: unknown. */
static inline int host_classes_group(const struct host_classes *k, int of, int level)
{
    const struct host_class *one = &k->list[of];

    for (int i = 0; i < one->keys; i++)
        if (one->key[i] >= k->base[level] && one->key[i] < k->base[level + 1])
            return one->key[i] - k->base[level];
    return -1;
}

/* Hash of a set of `need` positions, ascending.  Equal for sets that cost the same because their
 * hosts are alike, position by position. */
uint64_t host_classes_signature(struct host_classes *k, const int *at, int need);
/* Returns the number of patterns; INFINITY: more than `most`. */
double host_classes_patterns(const struct host_classes *k, int need, double most);
/* Step to the leftmost set of the next pattern, in the order of positions.  False: that was the
 * last. */
bool host_classes_next_pattern(const struct host_classes *k, int *at, int need);
/* Step to the next set of the same pattern. */
bool host_classes_next_set(const struct host_classes *k, int *at, int need);
/* Set at[from ..] to the leftmost positions of the same classes behind at[from - 1].  False: there
 * are none. */
bool host_classes_leftmost(const struct host_classes *k, int *at, int from, int need);

enum { SLOWER = 9 }; /* number of distinct factors of slow NICs, including -1 */

/* Properties of the free slots that limit any placement. */
struct room {
    int slots, nics; /* largest number in one domain */
    int domains;
    double factor[SLOWER]; /* -1 and the factors of slow NICs, ascending */
    int factors;
    /* [factors][slots + 1]: number of domains with each number of slots above the factor */
    int *of_size;
    int rack;            /* largest number of slots in one rack; 0: racks unknown */
    int reach[TIER_MAX]; /* most ranks that rings with one member per domain can join over a tier */
};
/* Fill r.  The caller frees of_size. */
void room_make(struct room *r, const struct node_pool *p);
static inline bool tier_between_domains(const struct tier *t)
{
    return !(t->rule.same & (1u << LEVEL_HOST | 1u << LEVEL_DOMAIN));
}

/* --- place_price.c: prices of orders --- */

/* Price of an order; smaller `most` is better, then smaller `mean`.  most: the step, or its slowest
 * endpoint.  mean: the step if the slowest group counted no more than the others.  NAN: no
 * price. */
struct place_sec {
    double most, mean;
};
bool place_better(struct place_sec a, struct place_sec b);
/* Set a pricer to the next order; opened with the first one. */
int place_reorder(struct pricer **p, const struct matrix *m, const int *order, int ranks,
                  struct err *err);
/* Seconds of the step if message i takes one[i]. */
double place_step_sec(const struct place_step *s, const double *one);

/* Flows by rank: those of rank r are tie[start[r]] .. tie[start[r + 1] - 1]. */
struct ties {
    int *start;
    struct tie {
        int peer;
        double out, in; /* bytes to the peer; bytes from it */
    } * tie;
};
struct placer {
    const struct place_ask *ask;
    const struct place_step *step; /* empty for a demand */
    struct node_pool *pool;
    int ranks;
    int spans;   /* number of different spans in the traffic */
    int telling; /* index of the message that last showed an order to be too slow */
    double least_one[TRAFFIC_MAX]; /* per message: its time at the optimum of the bound */
    double floor_one[TRAFFIC_MAX]; /* per message: lower bound independent of the others */
    double least;                  /* lower bound on the step; 0 until placer_bound() */
    struct pricer *pricer;         /* shared by all orders; NULL until the first */
    /* flows between ranks; for a step made from its traffic on first use */
    struct ties *ties;
    struct progress progress;
    long tried;
    double spent, budget; /* work units: one rank examined in a group, about 20 ns */
    double unit;          /* work units per order */
};
/* Open a placer.  pool: the free hosts, owned by the caller. */
void placer_open(struct placer *pl, const struct place_ask *ask, struct node_pool *pool);
void placer_close(struct placer *pl);
/* Price an order.  limit: an order that takes longer is useless and may get any price above limit;
 * INFINITY: none. */
struct place_sec placer_within(struct placer *pl, const int *order, double limit);
static inline struct place_sec placer_order(struct placer *pl, const int *order)
{
    return placer_within(pl, order, INFINITY);
}
/* True if less than this share of the budget is spent. */
static inline bool placer_may(const struct placer *pl, double share)
{
    return pl->spent < share * pl->budget;
}

/* Collect the ranks of a group that makes the order slow, chosen at random among several; for a
 * demand, those of the busiest endpoint and its peers.  Returns their number. */
int placer_slowest(struct placer *pl, const int *order, struct rng *rng, int *rank);

/* --- place_bound.c --- */
/* Returns a lower bound for all orders; 0: unknown.  For a step: the cheapest way to divide the
 * slots of a domain among the axes.  For a demand: every rank's largest flows to its nearest
 * peers. */
double placer_bound(struct placer *pl);

/* --- place_demand.c --- */
/* Returns the ties, owned by the placer.  For a step's traffic: neighbours of rings, and all pairs
 * in small all-to-all groups.  For a demand: its flows. */
const struct ties *placer_ties(struct placer *pl);

/* --- place_price.c: the best order so far, and the orders already priced --- */

struct place_best {
    int *order, ranks;
    struct place_sec sec;
    struct map seen; /* hashes of orders */
    char how[256];
    int turn[DIGITS]; /* order of the mesh's digits in the best plan */
};
enum place_tried { TRIED_BEFORE, TRIED_WORSE, TRIED_BEST };
/* Sort the slots of each host, price the order unless an equal one was priced, and keep it if it is
 * better.  how NULL: description of the best order so far, plus a move.  *sec, unless NULL:
 * receives the price; it is exact up to the larger of the best price and the previous *sec,
 * otherwise only known to be above that. */
enum place_tried place_try(struct place_best *b, struct placer *pl, int *order, const char *how,
                           struct place_sec *sec);

/* --- place_mesh.c: ranks as digits --- */

/* rank = sum of digit * stride; the digits describe all groups of the traffic. */
struct mesh {
    int radix[DIGITS], stride[DIGITS];
    double weight[DIGITS]; /* approximate bytes per rank and step along the digit */
    int digits, ranks;
};
void mesh_of(struct mesh *m, const struct placer *pl);
/* Returns the rank in slot `s` if digit turn[0] varies fastest. */
int mesh_rank(const struct mesh *m, const int *turn, int s);

/* --- searches; each keeps better orders in *b --- */

void place_mesh(struct place_best *b, struct placer *pl);
void place_exhaust(struct place_best *b, struct placer *pl); /* price all orders if few exist */
/* make the best order regular at equal price */
void place_normalise(struct place_best *b, struct placer *pl);
/* Fill the slots of the row in order, each with the rank that exchanges most with those nearby.
 * box_of, unless NULL: box of each rank.  False: a rank found no slot. */
bool greedy_fill(struct placer *pl, const struct row *row, const int *box_of, int *order);
void place_greedy(struct place_best *b, struct placer *pl);

/* --- place_sets.c --- */

#define SETS_RANKS_PRICED 1e7 /* ranks of sets priced in about a second */

/* Find the k cheapest sets of `need` hosts of the pool (see place.h); all hosts must have the same
 * number of slots.  Hosts are numbered as in the topology. */
int place_sets_find(struct place_sets *out, const struct place_step *s, const struct node_pool *p,
                    int spread, int need, int k, long patterns, struct err *err);

#endif
