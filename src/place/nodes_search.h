/* nodes_search.h - the inner half of nodes_best(): hosts folded to kinds, patterns of kinds, what
 * they cost.
 *
 * A set is the positions of its hosts in the free list, ascending.  Its pattern is the row of their
 * kinds; of all sets of a pattern the leftmost one stands for it. */
#ifndef RG_NODES_SEARCH_H
#define RG_NODES_SEARCH_H

#include <stdint.h>

#include "base/map.h"
#include "place/nodes.h"

/* Free hosts that are alike. */
struct host_kind {
    uint64_t
        inside; /* how its endpoints lie among each other, and the exceptions that touch them */
    int *key;   /* groups that it is in, level by level; index into kinds.slot */
    int keys;
    int *at; /* positions, ascending */
    int count;
};

struct kinds {
    struct host_kind *kind;
    int count;
    int *of;                   /* kind of each position */
    int *prev, *next;          /* the position of the same kind before and after; -1 and `frees` */
    int base[LEVEL_COUNT + 1]; /* keys of level l start at base[l] */
    struct label {
        unsigned stamp;
        int label;
    } * slot; /* scratch */
    unsigned stamp;
};

struct pattern {
    double sec;
    int left; /* free hosts that stay in the blocks that it uses */
    int *at;  /* [need] */
};

struct search {
    const struct nodes_job *job;
    struct nodes_step step;
    const int *host; /* the free list */
    int hosts, need;
    struct kinds kinds;
    int level;       /* of blocks: the finest that groups hosts; -1: none does */
    struct map memo; /* signature -> index into sec */
    double *sec;
    int secs;
    struct map known; /* hash of a pattern -> index into pool, MAP_NONE: it has no price */
    struct pattern *pool;
    int pools;
    int *row, *order, *ids; /* scratch: positions, endpoints, hosts */
    long priced, tried, budget;
    struct err why; /* of the last set without a price */
};

/* --- nodes_kinds.c --- */
void kinds_make(struct search *s);
void kinds_free(struct kinds *k);
/* Equal for sets that cost the same because their hosts lie alike, position by position. */
uint64_t kinds_signature(struct kinds *k, const int *at, int need);
/* How many patterns of `need` positions there are; more than `most`: INFINITY. */
double kinds_patterns(const struct kinds *k, int hosts, int need, double most);
/* The next pattern's leftmost set, in the order of positions; false: that was the last. */
bool kinds_next_pattern(const struct kinds *k, int hosts, int *at, int need);
/* The next set of the same pattern. */
bool kinds_next_set(const struct kinds *k, int hosts, int *at, int need);
/* The leftmost set of the same pattern. */
void kinds_leftmost(const struct kinds *k, int *at, int need);
/* The group of a kind's first endpoint at a level, -1: not known. */
int kinds_group(const struct kinds *k, int kind, int level);

/* --- nodes_best.c --- */
/* Price this set unless its pattern is known; positions need not be in order.  NAN: no price, or
 * none any more (s->priced reached s->budget). */
double search_consider(struct search *s, const int *at);
/* --- nodes_greedy.c --- */
void search_fill(struct search *s);
void search_moves(struct search *s);

#endif
