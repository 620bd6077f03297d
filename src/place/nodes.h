/* nodes.h - what a job costs on a list of nodes, and which of the free ones are best: the
 * scheduler's questions.
 *
 * A job is words, in clauses between ';' or ends of lines.  Either the step of a training job, by
 * the keys of job.h and recipe.h,
 *   model=llama3.1-70b layout=tp=4,dp=auto batch=288
 * or the collectives of a step, on all ranks or at the same time on groups of neighbours,
 *   all_gather 64M x 12; all_to_all 8M x 4 groups of 8; all_reduce 1G groups of 4 apart 8
 * where sizes are as in op.h, ep_dispatch and ep_combine are operations too, and a rank of a group
 * of N apart S is S ranks after the one before.  With both: per_node=N ranks on each node (default:
 * all its endpoints) and spread=cyclic (default: a node is filled before the next).
 *
 * Words may come from a user of the cluster: they name no files, and keys that say where ranks are
 * (order, nodes, segment, racks) are refused.  Seconds throughout. */
#ifndef RG_NODES_H
#define RG_NODES_H

#include "step/job.h"
#include "step/timing.h"

enum { NODES_TEXT_MAX = 64 << 10 };

/* Read once, then only looked at: threads may share it. */
struct nodes_job {
    struct matrix matrix; /* the caller's, with the job's FLOP/s; nothing of it is owned */
    char *text, *flops;   /* the words, cut up: opts points into them; where FLOP/s are from */
    struct job_opts opts;
    bool trains;        /* a step of a model; else `mix` */
    struct traffic mix; /* span.size 0: all ranks */
    int per_node;       /* 0: all endpoints */
    struct model model;
    struct constants constants;
    struct fabric fabric;
    int *first, *endpoint; /* those of host h are endpoint[first[h]] .. [first[h + 1] - 1] */
};

/* The matrix must outlive the job.  EXIT_USAGE with the word that is wrong; nodes_job_close() also
 * after an error. */
int nodes_job_open(struct nodes_job *j, const struct matrix *m, const char *text, struct err *err);
void nodes_job_close(struct nodes_job *j);
/* Only the words: opts, trains, mix, per_node.  nodes_job_open() begins with it. */
int nodes_job_words(struct nodes_job *j, const char *text, struct err *err);

/* Seconds of a step with the ranks dealt over these hosts in turn.  NAN: err says why (a host that
 * is not there, listed twice, or that would be idle; too few endpoints; a rate that nobody knows).
 * INFINITY: a part is dead, err says what needs it.  Allocates and frees. */
double nodes_cost(const struct nodes_job *j, const int *host, int hosts, struct err *err);

/* The step on a number of ranks, before anything is placed. */
struct nodes_step {
    int ranks;
    struct layout layout;
    struct recipe recipe;
    struct work work;
    struct traffic traffic;
    struct coefficients coefficients;
};
/* `given`: endpoints that may be filled. */
int nodes_step(struct nodes_step *s, const struct nodes_job *j, int given, struct err *err);
double nodes_price(const struct nodes_job *j, const struct nodes_step *s, const int *order,
                   struct err *err);
/* Ranks that a host takes. */
int nodes_room(const struct nodes_job *j, int host);
/* order has room for the sum of nodes_room(). */
void nodes_deal(const struct nodes_job *j, const int *host, int hosts, int *order);
/* Known, each once, with room for per_node ranks; -1 with the reason, else the sum of rooms. */
int nodes_check(const struct nodes_job *j, const int *host, int hosts, struct err *err);
/* All ranks find room in `given`, and none of the hosts is without one. */
int nodes_fill(const struct nodes_job *j, const struct nodes_step *s, const int *host, int hosts,
               int given, struct err *err);

struct nodes_best {
    int *host;   /* [count][need], each in the order of the free list */
    double *sec; /* [count], ascending */
    int count;   /* fewer than k: there are no more */
    bool exact;  /* no other set is cheaper than the last one */
    long priced; /* steps that were priced for it */
};

/* The k cheapest sets of `need` of the free hosts, ranks in the order of the free list; sets with a
 * dead part are left out.  Equal costs: sets that differ in more than alike hosts come first, then
 * those that leave the fewest free hosts in the groups that they use, then the earliest.
 *
 * Hosts are alike that lie alike at every level and that no exception tells apart: swapping them
 * changes nothing.  Each pattern of alike hosts is priced once.  Where there are few patterns all
 * of them are (exact); else those of filling group after group from each start, of equal shares of
 * several groups, and of moves between groups that help. */
int nodes_best(struct nodes_best *b, const struct nodes_job *j, const int *free_host, int frees,
               int need, int k, struct err *err);
/* The same with at most so many patterns looked at, 0: as many as take about a second. */
int nodes_best_of(struct nodes_best *b, const struct nodes_job *j, const int *free_host, int frees,
                  int need, int k, long patterns, struct err *err);
void nodes_best_free(struct nodes_best *b);

#endif
