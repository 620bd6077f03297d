/* place_impl.h - what the files of place share: free slots, rows and classes of hosts, ranks as
 * digits, and a placer that prices orders.
 *
 * Work is counted, not clocked: a search of the same question with the same seed prices the same
 * orders on every machine, however loaded it is. */
#ifndef RG_PLACE_IMPL_H
#define RG_PLACE_IMPL_H

#include "base/log.h"
#include "base/map.h"
#include "base/stats.h"
#include "place/place.h"
#include "step/pricer.h"

enum { DIGITS = 8 };

/* --- place_pool.c: free slots by host, and hosts in rows --- */

struct node_pool {
    const struct matrix *matrix;
    const struct host_slots *of; /* all slots of all hosts */
    int *host, hosts;            /* as given */
    int *start; /* slots of the i-th: endpoint[start[i]] .. endpoint[start[i + 1] - 1] */
    int *endpoint, slots;
    int *row;     /* of each host of the topology: its index here, -1: not free */
    int *row_of;  /* of each free slot, by endpoint: that index */
    int per_host; /* the most that one has */
    int asked;    /* per_host as it was asked for, 0: all */
    bool *slow;   /* of each host: a slow part touches it; of a slow pair of racks, one of both */
};
/* host NULL: all.  A host that is not there, or twice: EXIT_USAGE.  node_pool_free() also after that. */
int node_pool_make(struct node_pool *p, const struct matrix *m, const struct host_slots *of,
                   const int *host, int hosts, int per_host, struct err *err);
void node_pool_free(struct node_pool *p);

/* i-th free host */
static inline int node_pool_slots(const struct node_pool *p, int host)
{
    return p->start[host + 1] - p->start[host];
}

/* Levels that group free hosts, near ones first; returns how many. */
int node_pool_levels(const struct node_pool *p, int level[LEVEL_COUNT]);
/* The most peers that a free slot has at this tier or a nearer one. */
int node_pool_peers(const struct node_pool *p, int tier);
/* Free slots in each group of a level; the caller frees. */
int *node_pool_group_slots(const struct node_pool *p, int level, bool healthy);
/* Ranks of a host take its slots in ascending order, as launchers deal them. */
void node_pool_in_slot_order(const struct node_pool *p, int *order, int ranks);

enum row_how {
    ROW_NEAR,   /* near hosts are neighbours */
    ROW_LARGE,  /* then boxes with the most free slots first */
    ROW_HEALTHY /* the same, and hosts that a slow part touches come last */
};
enum { ROW_HOWS = ROW_HEALTHY + 1 };

/* Hosts in a row, cut into boxes: hosts of the same group at `level`. */
struct row {
    int level;
    int *host, hosts; /* indices into pool.host */
    int *first;       /* of each box; first[boxes] is hosts */
    int boxes;
};
/* within: an outer level and group that hosts must be of; -1: any. */
void row_make(struct row *r, const struct node_pool *p, int level, enum row_how how, int within,
              int group);
int row_slots(const struct row *r, const struct node_pool *p, int box); /* of a box; -1: of all */
int row_largest(const struct row *r, const struct node_pool *p); /* slots of its largest box */
/* Is row[i] one of those before it?  Racks are domains, and no host is slow, in most machines. */
bool row_again(const struct row *row, int i);
void row_free(struct row *r);
/* slot[0 .. ranks - 1]: blocks of block[0] slots go whole into boxes, in order; what is left of the
 * boxes takes blocks of block[1], and so on; the last is 1.  Each size divides the one before.
 * roomy: what is left is taken where most is left, so that a block that no box holds falls into few
 * parts. */
bool row_fill(const struct row *r, const struct node_pool *p, const int *block, int blocks,
              int ranks, bool roomy, int *slot);
/* Parts of lines, of so many units of `unit` slots in turn, each from what is left of its box; they fit. */
struct row_part {
    int box, units;
};
void row_fill_parts(const struct row *r, const struct node_pool *p, int unit,
                    const struct row_part *part, int parts, int *slot);

/* --- place_cut.c: lines that fall into parts, of one box each --- */

/* Lines of an axis, all the ranks in them, over domains of so many slots. */
struct cut_lines {
    int ranks, size, few; /* size of a line; few: of the smallest part of any */
    long beside,
        whole; /* slots that each member needs; ranks of lines beside each other that lie alike */
    const int *of, slots; /* of[c]: domains of c slots, up to `slots` */
};
/* false: there is no such order.  true: there may be one. */
bool cut_possible(const struct cut_lines *l);

/* What is cut, and how far it is. */
struct cutting {
    int lines, units, boxes; /* units of a line */
    int *room;               /* units left in each box */
    struct row_part *part;   /* room for two of each line; cut_equally(): for one in each box */
    int parts;
    int few, *use; /* the fewest units of a part; of so many left, those that such parts can fill */
    struct map tried; /* what was left, in vain */
    long looks;       /* at boxes */
};
enum { CUT_LOOKS = 1 << 16 };
/* Whole or in two parts, the smallest of which is as large as it can be, as far as is looked; false: no
 * way was found.  Line by line in c->part. */
bool cut_largely(struct cutting *c);

/* --- place_classes.c: free hosts folded to those that differ --- */

struct host_class {
    uint64_t
        inside; /* how its endpoints lie among each other, and the exceptions that touch them */
    int *key;   /* groups that it is in, level by level; index into host_classes.label */
    int keys;
    int *at; /* positions in the pool, ascending */
    int count;
};

struct host_classes {
    struct host_class *class;
    int count, hosts;
    int *of;                   /* class of each position */
    int *prev, *next;          /* the position of the same class before and after; -1 and `hosts` */
    int base[LEVEL_COUNT + 1]; /* keys of level l start at base[l] */
    struct host_label {
        unsigned stamp;
        int label;
    } * label; /* scratch */
    unsigned stamp;
};
void host_classes_make(struct host_classes *k, const struct node_pool *p);
void host_classes_free(struct host_classes *k);
/* The group of a class's first endpoint at a level, -1: not known. */
static inline int host_classes_group(const struct host_classes *k, int class, int level)
{
    const struct host_class *one = &k->class[class];

    for (int i = 0; i < one->keys; i++)
        if (one->key[i] >= k->base[level] && one->key[i] < k->base[level + 1])
            return one->key[i] - k->base[level];
    return -1;
}

/* Of sets of `need` positions, ascending.  Equal for sets that cost the same because their hosts lie
 * alike, position by position. */
uint64_t host_classes_signature(struct host_classes *k, const int *at, int need);
/* How many patterns there are; more than `most`: INFINITY. */
double host_classes_patterns(const struct host_classes *k, int need, double most);
/* The next pattern's leftmost set, in the order of positions; false: that was the last. */
bool host_classes_next_pattern(const struct host_classes *k, int *at, int need);
/* The next set of the same pattern. */
bool host_classes_next_set(const struct host_classes *k, int *at, int need);
/* at[from ..] to the leftmost positions of these classes behind at[from - 1]; false: there are none. */
bool host_classes_leftmost(const struct host_classes *k, int *at, int from, int need);

enum { SLOWER = 9 }; /* factors of slow NICs that are told apart, and -1 */

/* What the free slots allow. */
struct room {
    int slots, nics; /* the most of one domain */
    int domains;
    double factor[SLOWER]; /* -1 and the factors of slow NICs, ascending */
    int factors;
    int *of_size; /* [factors][slots + 1]: domains of each number of slots above the factor */
    int rack;     /* the most slots of one rack; 0: racks are not known */
    int reach[TIER_MAX]; /* the most ranks that rings of single members can join over a tier */
};
/* The caller frees of_size. */
void room_make(struct room *r, const struct node_pool *p);
static inline bool tier_between_domains(const struct tier *t)
{
    return !(t->rule.same & (1u << LEVEL_HOST | 1u << LEVEL_DOMAIN));
}

/* --- place_price.c: what prices orders --- */

/* Smaller is better, `most` first: the step (or its slowest endpoint), then what is left when the
 * slowest group counts no more than the others.  NAN: cannot be priced. */
struct place_sec {
    double most, mean;
};
bool place_better(struct place_sec a, struct place_sec b);
/* A pricer for one order after another, opened for the first. */
int place_reorder(struct pricer **p, const struct matrix *m, const int *order, int ranks,
                  struct err *err);
/* The step when message i takes one[i]. */
double place_step_sec(const struct place_step *s, const double *one);

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
    const struct place_step *step; /* of a demand: nothing */
    struct node_pool *pool;
    int ranks;
    int spans;   /* different ones of the traffic */
    int telling; /* a message of the one that last said that an order is too long */
    double least_one[TRAFFIC_MAX]; /* of each message: its share of the bound, */
    double floor_one[TRAFFIC_MAX]; /* and what it takes at least, whatever the others do */
    double least;                  /* the bound; 0 until placer_bound() */
    struct pricer *pricer;         /* of all orders; NULL until the first */
    struct ties *ties;             /* who talks to whom; of a step: from its traffic, when asked */
    struct progress progress;
    long tried;
    double spent, budget; /* work: a rank looked at in a group, 20 ns or so */
    double unit;          /* of it, an order */
};
/* pool: of the free hosts; the caller's. */
void placer_open(struct placer *pl, const struct place_ask *ask, struct node_pool *pool);
void placer_close(struct placer *pl);
/* limit: an order that takes longer is of no use, and may have any price above it; INFINITY: none. */
struct place_sec placer_within(struct placer *pl, const int *order, double limit);
static inline struct place_sec placer_order(struct placer *pl, const int *order)
{
    return placer_within(pl, order, INFINITY);
}
/* is less than this share spent? */
static inline bool placer_may(const struct placer *pl, double share)
{
    return pl->spent < share * pl->budget;
}

/* Ranks of a group that makes the order slow, by chance one of several; of a demand: of the busiest
 * endpoint and those that it talks to.  Returns how many. */
int placer_slowest(struct placer *pl, const int *order, struct rng *rng, int *rank);

/* --- place_bound.c --- */
/* No order is faster; 0: nothing is claimed.  Of a step: of all ways to share the slots of a domain
 * out among the axes the cheapest one; of a demand: every rank's largest flows to its nearest
 * peers. */
double placer_bound(struct placer *pl);

/* --- place_demand.c --- */
/* The ties of a step's traffic: neighbours of rings, and all pairs of small groups where all talk
 * to all.  Of a demand: its flows.  The placer keeps them. */
const struct ties *placer_ties(struct placer *pl);

/* --- place_price.c: the best order so far, and the orders that were priced already --- */

struct place_best {
    int *order, ranks;
    struct place_sec sec;
    struct map seen; /* hashes of orders */
    char how[256];
    int turn[DIGITS]; /* digits of the mesh in the order of the best plan */
};
enum place_tried { TRIED_BEFORE, TRIED_WORSE, TRIED_BEST };
/* Settle it, price it unless an equal one was, and keep the better one; how NULL: as the best so
 * far, with a move; *sec, unless NULL: its price, or what is more than *sec had where that is more than
 * the best has. */
enum place_tried place_try(struct place_best *b, struct placer *pl, int *order, const char *how,
                           struct place_sec *sec);

/* --- place_mesh.c: ranks as digits --- */

/* rank = sum of digit * stride; the digits of all groups of the traffic. */
struct mesh {
    int radix[DIGITS], stride[DIGITS];
    double weight[DIGITS]; /* bytes a rank moves along it in a step, roughly */
    int digits, ranks;
};
void mesh_of(struct mesh *m, const struct placer *pl);
/* The rank in slot `s` when digit turn[0] turns fastest. */
int mesh_rank(const struct mesh *m, const int *turn, int s);

/* --- searches; each keeps what is better in *b --- */

void place_mesh(struct place_best *b, struct placer *pl);
void place_exhaust(struct place_best *b, struct placer *pl);   /* all ways, where they are few */
void place_normalise(struct place_best *b, struct placer *pl); /* the same, regular */
/* Slots of the row in turn, each with the rank that has most to do with those nearby; box_of,
 * unless NULL: the box of each rank.  false: some rank found no slot. */
bool greedy_fill(struct placer *pl, const struct row *row, const int *box_of, int *order);
void place_greedy(struct place_best *b, struct placer *pl);
int place_scotch(struct place_best *b, struct placer *pl, struct err *err);

/* --- place_sets.c --- */

/* The k cheapest sets of `need` of the pool's hosts, as place.h says; all of them have the same
 * room.  hosts as the topology numbers them. */
int place_sets_find(struct place_sets *out, const struct place_step *s, const struct node_pool *p,
                    int spread, int need, int k, long patterns, struct err *err);

#endif
