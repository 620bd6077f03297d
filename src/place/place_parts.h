/* place_parts.h - what the files of place share: free seats, rows of them, blocks of ranks, and a
 * placer that prices orders.
 *
 * Work is counted, not clocked: a search of the same question with the same seed prices the same
 * orders on every machine, however loaded it is. */
#ifndef RG_PLACE_PARTS_H
#define RG_PLACE_PARTS_H

#include "base/log.h"
#include "base/map.h"
#include "base/stats.h"
#include "place/place.h"
#include "step/rate.h"
#include "step/timing.h"
#include "step/traffic.h"
#include "step/work.h"

struct pool;
struct row;
enum { DIGITS = 8 };

/* --- what prices orders (place_price.c, place_bound.c, place_ties.c) --- */

/* Smaller is better, `most` first: the step (or its slowest endpoint), then what is left when the
 * slowest group counts no more than the others.  NAN: cannot be priced. */
struct verdict_of_order {
    double most, mean;
};
bool order_better(struct verdict_of_order a, struct verdict_of_order b);

/* Flows by rank: those of rank r are tie[start[r]] .. tie[start[r + 1] - 1]. */
struct ties {
    int *start;
    struct tie {
        int peer;
        double out, in; /* bytes to the peer and from it */
    } * tie;
};
struct placer {
    const struct place_ask *ask;
    const struct pool *pool;
    int ranks;
    struct traffic traffic; /* questions only, as the two below */
    struct work work;
    struct coefficients coefficients;
    int spans;                     /* different ones of traffic */
    double least_one[TRAFFIC_MAX]; /* of each message: its share of the bound */
    double least;                  /* the bound; 0 until placer_bound() */
    struct ties *ties; /* who talks to whom; of a question: from its traffic, when asked */
    struct progress progress;
    long tried;
    double spent, budget; /* work: a rank looked at in a group, 20 ns or so */
};
int placer_open(struct placer *pl, const struct place_ask *ask, struct err *err);
void placer_close(struct placer *pl);
struct verdict_of_order placer_order(struct placer *pl, const int *order);
/* Seconds that one rank's flows keep its endpoint busy, the longer of sending and receiving; *sum:
 * of sending.  at: its endpoint, wherever order says. */
double placer_busy(const struct placer *pl, const int *order, int rank, double *sum);
/* No order is faster; 0: nothing is claimed.  Of a question: of all ways to share the seats of a
 * domain out among the axes the cheapest one (place_bound.c); of a demand: every rank's largest
 * flows to its nearest peers. */
double placer_bound(struct placer *pl, const struct pool *p);
/* The ties of a question's traffic: neighbours of rings, and all pairs of small groups where all
 * talk to all.  Of a demand: they are there already. */
const struct ties *placer_ties(struct placer *pl);
double placer_unit(const struct placer *pl); /* what an order costs */
/* Ranks of a group that makes the order slow, by chance one of several; of a demand: of the busiest
 * endpoint and those that it talks to.  Returns how many. */
int placer_slowest(struct placer *pl, const int *order, struct rng *rng, int *rank);
bool placer_may(const struct placer *pl, double share); /* is less than this share spent? */

/* The best order so far, and the orders that were priced already. */
struct best {
    int *order, ranks;
    struct verdict_of_order verdict;
    struct map seen; /* hashes of orders */
    char how[256];
    int turn[DIGITS]; /* digits of the mesh in the order of the best plan */
};
/* Ranks of a host take its seats in ascending order, as launchers deal them. */
void order_settle(int *order, int ranks, const struct pool *p);
enum tried { TRIED_BEFORE, TRIED_WORSE, TRIED_BEST };
/* Settle it, price it unless an equal one was, and keep the better one; how NULL: as
 * the best so far, with a move; *v, unless NULL: its
 * verdict. */
enum tried best_try(struct best *b, struct placer *pl, int *order, const char *how,
                    struct verdict_of_order *v);

/* --- free seats (place_pool.c) --- */

struct pool {
    const struct matrix *matrix;
    int *host, hosts; /* as given */
    int *start;       /* seats of the i-th: endpoint[start[i]] .. endpoint[start[i + 1] - 1] */
    int *endpoint, seats;
    int *row;     /* of each host of the topology: its index here, -1: not free */
    int per_host; /* the most that one has */
    bool *slow;   /* of each host: a slow part touches it; of a slow pair of racks, one of both */
};
int pool_make(struct pool *p, const struct place_ask *ask, int ranks, struct err *err);
void pool_free(struct pool *p);
int pool_host_seats(const struct pool *p, int host);       /* i-th free host */
int pool_group(const struct pool *p, int host, int level); /* of the i-th; -1: not known */
/* Levels that group free hosts, near ones first; returns how many. */
int pool_levels(const struct pool *p, int level[LEVEL_COUNT]);
/* The most peers that a free seat has at this tier or a nearer one. */
int pool_peers(const struct pool *p, int tier);
/* Free seats in each group of a level; the caller frees. */
int *pool_group_seats(const struct pool *p, int level, bool healthy);

/* --- hosts in rows (place_row.c) --- */

enum row_how {
    ROW_NEAR,   /* near hosts are neighbours */
    ROW_LARGE,  /* then boxes with the most free seats first */
    ROW_HEALTHY /* the same, and hosts that a slow part touches come last */
};
enum { ROW_HOWS = ROW_HEALTHY + 1 };

/* Hosts in a row, cut into boxes: hosts of the same group at `level`. */
struct row {
    int level;
    int *host, hosts; /* indices into pool.host */
    int *first;       /* of each box; first[boxes] is hosts */
    int boxes;
    char name[64]; /* "hosts of a domain" */
};
/* within: an outer level and group that hosts must be of; -1: any. */
void row_make(struct row *r, const struct pool *p, int level, enum row_how how, int within,
              int group);
int row_seats(const struct row *r, const struct pool *p);
int row_largest(const struct row *r, const struct pool *p); /* seats of its largest box */
void row_free(struct row *r);
/* seat[0 .. ranks - 1]: blocks of block[0] seats go whole into boxes, in order; what is left of the
 * boxes takes blocks of block[1], and so on; the last is 1.  Each size divides the one before.
 * roomy: what is left is taken where most is left, so that a block that no box holds falls into few
 * parts. */
bool row_fill(const struct row *r, const struct pool *p, const int *block, int blocks, int ranks,
              bool roomy, int *seat);

/* --- ranks as digits (place_mesh.c) --- */

/* rank = sum of digit * stride; the digits of all groups of the traffic. */
struct mesh {
    int radix[DIGITS], stride[DIGITS];
    double weight[DIGITS]; /* bytes a rank moves along it in a step, roughly */
    int digits, ranks;
};
void mesh_of(struct mesh *m, const struct placer *pl);
/* The rank in seat `s` when digit turn[0] turns fastest. */
int mesh_rank(const struct mesh *m, const int *turn, int s);
/* Orders of the digits, those that keep heavy digits near first; the caller frees. */
int mesh_turns(const struct mesh *m, int (**turns)[DIGITS], int most);

/* --- searches; each keeps what is better in *b --- */

void place_closed(struct best *b, struct placer *pl, const struct pool *p);
void place_tidy(struct best *b, struct placer *pl, const struct pool *p); /* the same, regular */
void place_small(struct best *b, struct placer *pl, const struct pool *p);
/* Seats of the row in turn, each with the rank that has most to do with those nearby; box_of,
 * unless NULL: the box of each rank.  false: some rank found no seat. */
bool greedy_fill(struct placer *pl, const struct row *row, const int *box_of, int *order);
void place_greedy(struct best *b, struct placer *pl, const struct pool *p);
int place_scotch(struct best *b, struct placer *pl, const struct pool *p, struct err *err);
void place_moves(struct best *b, struct placer *pl, const struct pool *p, unsigned seed);

#endif
