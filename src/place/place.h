/* place.h - jobs on nodes: which of the free ones, and which rank where.
 *
 * One optimiser: free hosts and a step in; nodes and an order of ranks out, with the price, a time
 * that no order beats, and how it was found.  `railgauge place`, `railgauge nodes` and the node
 * queries of railgauge.h ask it, and all of them price an order by place_price(), as predict does.
 * Units: bytes, seconds. */
#ifndef RG_PLACE_H
#define RG_PLACE_H

#include "step/job.h"
#include "step/timing.h"

/* --- what is placed --- */

/* A step on a number of ranks, wherever they are. */
struct place_step {
    int ranks;
    bool trains; /* a step of a model, by all below; else `traffic` one after the other */
    struct traffic traffic;
    struct layout layout;
    struct recipe recipe;
    struct work work;
    struct coefficients coefficients;
};
/* Of a training job; the order of q is not looked at.  EXIT_UNJUDGED: no compute rate. */
int place_step_of(struct place_step *s, const struct question *q, struct err *err);

/* Seconds of the step in an order of ranks (rank -> endpoint).  NAN: it cannot be priced; INFINITY:
 * a part that it needs is dead; err, unless NULL, says which message and why.  *mean, unless NULL:
 * what is left when the slowest group of each message counts no more than the others. */
double place_price(const struct place_step *s, const struct matrix *m, const int *order,
                   double *mean, struct err *err);
/* The same in the order that a pricer has. */
struct pricer;
double place_price_by(const struct place_step *s, struct pricer *p, double *mean, struct err *err);

/* Bytes that ranks exchange in one step when there is no model: symmetric or not. */
struct demand {
    int ranks;
    struct flow {
        int src, dst;
        double bytes;
    } * flow;
    int flows;
};
/* A table "src dst bytes" (TSV with a header; ranks from 0, as many as it names) or a Matrix Market
 * coordinate file (real or integer, general or symmetric; row sends to column, from 1).  Bytes of
 * one step; equal pairs add up.  EXIT_DATA with file and line. */
int demand_load(struct demand *d, const char *path, struct err *err);
/* The same from memory; takes text over, path is for messages. */
int demand_parse(struct demand *d, char *text, size_t len, const char *path, struct err *err);
void demand_free(struct demand *d);

/* --- the optimiser --- */

struct place_ask {
    const struct place_step *step; /* NULL with demand */
    const struct demand *demand;
    const struct matrix *matrix;
    const int *host; /* free hosts, indices into matrix->topo; NULL: all */
    int hosts;
    const struct host_slots *slots; /* free endpoints; NULL: all */
    int need;     /* at most so many of them; 0: as many as are worth it; 0 with demand */
    int per_host; /* ranks of a host; 0: all its endpoints */
    int spread;   /* enum spread of the default order */
    double limit; /* seconds of search, about; 0: 0.1, up to 2,048 ranks 0.3, over 16,384 in
                     proportion more; of a demand 1 */
    double share; /* of that, 0: all of it */
    unsigned seed;
    bool scotch;   /* use it where it is installed */
    bool progress; /* a line on stderr while it lasts, where that is a terminal (log.h) */
};

struct placed {
    int *order; /* rank -> endpoint; on each host in ascending order, as launchers deal ranks */
    int *given; /* the default: hosts as given, ranks dealt by `spread` */
    int ranks;
    double sec;      /* of a step, predicted (demand: of its slowest endpoint) */
    double in_order; /* of the default */
    double random;   /* median of 9 random orders */
    double bound;    /* nothing can be faster; 0: nothing is claimed */
    long tried;      /* candidates priced */
    double took;     /* s */
    char how[256];   /* "tp,ep,dp_shard,pp: ep groups inside domains of 16 hosts; 3 moves" */
};

/* Candidates come from a closed form (orders of the mesh's axes x alignment of blocks with NVLink
 * domains and racks), greedy filling, optionally Scotch, moves of whole groups, and the cheapest
 * sets of hosts (place_sets()); the best is kept, so the answer is never worse than the default
 * order, nor than that of place_sets() for as many hosts.  Work is counted, not clocked: the same
 * question with the same seed has the same answer on every machine.
 *
 * Too few endpoints: EXIT_USAGE.  Nothing can be priced: EXIT_UNJUDGED.  placed_free() also after
 * an error. */
int place_run(struct placed *p, const struct place_ask *ask, struct err *err);
void placed_free(struct placed *p);

/* --- jobs in words, as schedulers ask ---
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
 * (order, nodes, segment, racks) are refused. */

enum { PLACE_TEXT_MAX = 64 << 10 };

/* Read once, then only looked at: threads may share it. */
struct place_job {
    struct matrix matrix; /* the caller's, with the job's FLOP/s; nothing of it is owned */
    char *text, *flops;   /* the words, cut up: opts points into them; where FLOP/s are from */
    struct job_opts opts;
    bool trains;        /* a step of a model; else `mix` */
    struct traffic mix; /* span.size 0: all ranks */
    int per_node;       /* 0: all endpoints */
    struct model model;
    struct constants constants;
    struct fabric fabric;
    struct host_slots slots;
};

/* The matrix must outlive the job.  EXIT_USAGE with the word that is wrong; place_job_close() also
 * after an error. */
int place_job_open(struct place_job *j, const struct matrix *m, const char *text, struct err *err);
void place_job_close(struct place_job *j);
/* Only the words: opts, trains, mix, per_node.  place_job_open() begins with it. */
int place_job_words(struct place_job *j, const char *text, struct err *err);
/* Its step where `given` endpoints may be filled. */
int place_job_step(struct place_step *s, const struct place_job *j, int given, struct err *err);

/* Seconds of a step with the ranks dealt over these hosts in turn.  NAN: err says why (a host that
 * is not there, listed twice, or that would be idle; too few endpoints; a rate that nobody knows).
 * INFINITY: a part is dead, err says what needs it.  Allocates and frees. */
double place_job_cost(const struct place_job *j, const int *host, int hosts, struct err *err);

/* Many lists, one after the other: what the one before has found out is kept, so that a list which lies
 * like another, or which differs in few hosts, is priced again in part only.  The answers are those of
 * place_job_cost(), to the bit.  Of one thread. */
struct place_list {
    const struct place_job *job;
    int *host, hosts; /* the last that was dealt; 0: none was */
    bool *taken;      /* scratch, of each host of the matrix */
    int *next;        /* scratch, as many */
    int *order;       /* rank -> endpoint, as many as the matrix has */
    struct place_step step;
    int given;             /* endpoints that step was made for; 0: none was */
    struct pricer *pricer; /* NULL: none yet */
};
void place_list_open(struct place_list *l, const struct place_job *j); /* the job outlives it */
double place_list_cost(struct place_list *l, const int *host, int hosts, struct err *err);
/* The last list with another host at position `at`, which becomes the last one unless the answer is NAN. */
double place_list_swap(struct place_list *l, int at, int host, struct err *err);
/* After memory ended in one of the two: what was kept goes, the last list stays. */
void place_list_forget(struct place_list *l);
void place_list_close(struct place_list *l);

/* place_run() for a job: `need` of these hosts (0: as many as are worth it), `limit` seconds of
 * search (0: as place_ask). */
int place_job_run(struct placed *p, const struct place_job *j, const int *host, int hosts, int need,
                  double limit, struct err *err);

/* One of several jobs that share the free hosts: a line "NAME NODES WORDS" of a file, where nodes
 * may be -: as many as the ranks of its layout fill. */
struct place_entry {
    char *name;
    int line;
    struct place_job *job;
    int need, ranks; /* hosts; ranks on them */
    struct placed placed;
    double alone; /* s of a step with all hosts to choose from */
    /* Groups of each place_level that it lies in, and as few as could hold it. */
    int touched[LEVEL_COUNT], fewest[LEVEL_COUNT];
};
/* What is left at a level that groups hosts: groups that are all free, those that are free in part,
 * with how many hosts, and the most free hosts of one. */
struct place_level {
    int level, groups, whole, split, nodes, largest;
};
struct place_pack {
    const char *path; /* set by the caller */
    struct place_entry *entry;
    int entries, free_hosts;
    struct place_level level[LEVEL_COUNT];
    int levels;
};
/* EXIT_DATA with file and line.  The matrix must outlive it; place_pack_free() also after an error.
 */
int place_pack_read(struct place_pack *p, const struct matrix *m, int hosts, struct err *err);
/* Each job on hosts of its own, by place_job_run() with `limit`: large jobs first or as listed,
 * whichever makes the sum of step / step alone smaller, then each again on what the others leave.
 * That jobs slow each other where they share uplinks is not priced.  A job that finds no place:
 * EXIT_USAGE or EXIT_UNJUDGED with its line. */
int place_pack(struct place_pack *p, const struct matrix *m, const int *host, int hosts,
               double limit, struct err *err);
void place_pack_free(struct place_pack *p);

struct place_sets {
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
 * several groups, and of moves between groups that help; at most so many patterns, 0: as many as
 * take about a second. */
int place_job_sets(struct place_sets *b, const struct place_job *j, const int *free_host, int frees,
                   int need, int k, long patterns, struct err *err);
void place_sets_free(struct place_sets *b);

#endif
