/* place.h - placement of jobs: which of the free hosts, and which rank on which endpoint.
 *
 * One optimiser: free hosts and a step in; hosts and an order of ranks out, with the predicted
 * time, a lower bound that no order beats, and how it was found.  `railgauge place`, `railgauge
 * nodes` and the node queries of railgauge.h use it.  All of them price an order by place_price(),
 * as `predict` does.  Units: bytes, seconds.
 *
 * Example:
 *
 *     struct matrix m;
 *     struct place_job job;
 *     struct placed placed = {0};
 *     int host[18], rc = -1;                          // the free hosts
 *
 *     for (int i = 0; i < 18; i++)
 *         host[i] = i;
 *     if (matrix_load(&m, "campaign", MATRIX_PRICES, err) < 0)
 *         return -1;
 *     if (place_job_open(&job, &m, "model=llama3.1-70b layout=tp=4,dp=auto", err) == 0)
 *         rc = place_job_run(&placed, &job, host, 18, 0, 0, err);  // placed.order, placed.sec
 *     placed_free(&placed);
 *     place_job_close(&job);
 *     matrix_free(&m);
 *     return rc; */
#ifndef RG_PLACE_H
#define RG_PLACE_H

#include "step/job.h"
#include "step/search/eval.h"

/* --- the step to place --- */

/* A step on a number of ranks, independent of their place. */
struct place_step {
    int ranks;
    /* true: step of a model, described by the fields below; false: messages of `traffic` one after
     * the other */
    bool trains;
    struct traffic traffic;
    struct layout layout;
    struct recipe recipe;
    struct work work;
    struct coefficients coefficients;
};
/* Fill s from a training job; the order in q is ignored.  EXIT_UNJUDGED: compute rate unknown. */
int place_step_of(struct place_step *s, const struct question *q, struct err *err);

/* Seconds of the step in an order of ranks (rank -> endpoint).  NAN: no price; INFINITY: a part on
 * its paths is dead; err, unless NULL, names the message and the reason.  *mean, unless NULL: the
 * time if the slowest group of each message counted no more than the others. */
double place_price(const struct place_step *s, const struct matrix *m, const int *order,
                   double *mean, struct err *err);
/* Same for the order that a pricer has. */
struct pricer;
double place_price_by(const struct place_step *s, struct pricer *p, double *mean, struct err *err);

/* Bytes that ranks exchange in one step if there is no model; need not be symmetric. */
struct demand {
    int ranks;
    struct flow {
        int src, dst;
        double bytes;
    } * flow;
    int flows;
};
/* Read a table "src dst bytes" (TSV with a header; ranks from 0 to the largest named) or a Matrix
 * Market coordinate file (real or integer, general or symmetric; row sends to column, from 1).
 * Values are bytes of one step; equal pairs add up.  EXIT_DATA with file and line. */
int demand_load(struct demand *d, const char *path, struct err *err);
/* Same from memory.  Takes ownership of text; path is for messages. */
int demand_parse(struct demand *d, char *text, size_t len, const char *path, struct err *err);
void demand_free(struct demand *d);

/* --- the optimiser --- */

struct place_ask {
    const struct place_step *step; /* NULL if demand is given */
    const struct demand *demand;
    const struct matrix *matrix;
    const int *host; /* free hosts, indices into matrix->topo; NULL: all */
    int hosts;
    const struct host_slots *slots; /* free endpoints; NULL: all */
    /* number of free hosts to use at most; 0: as many as help; 0 if demand is given */
    int need;
    int per_host; /* ranks per host; 0: one per endpoint */
    int spread;   /* enum spread of the default order */
    /* Search time, s, approximate; 0: 0.1, up to 2,048 ranks 0.3, above 16,384 more in proportion;
     * with demand 1. */
    double limit;
    double share; /* share of that time to use; 0: all */
    bool chosen;  /* `host` was chosen by a search, not given; for the words of the result */
    unsigned seed;
    bool progress; /* show progress on stderr if it is a terminal (log.h) */
};

struct placed {
    int *order; /* rank -> endpoint; ascending on each host, as launchers assign ranks */
    int *given; /* the default order: hosts as given, ranks assigned by `spread` */
    int ranks;
    double sec;      /* predicted time of a step (demand: of its slowest endpoint) */
    double in_order; /* time of the default order */
    double random;   /* median of 9 random orders */
    double bound;    /* lower bound on the time of any order; 0: unknown */
    long tried;      /* number of orders priced */
    double took;     /* s */
    char how[256];   /* "tp,ep,dp_shard,pp: ep groups inside domains of 16 hosts; 3 moves" */
};

/* Find the best order.  Candidates: a closed form (orders of the mesh's axes x alignment of blocks
 * with NVLink domains and racks), greedy filling, moves of whole groups, and the
 * cheapest sets of hosts (place_sets()).  The best candidate is kept, so the result is never worse
 * than the default order, nor than that of place_sets() for the same number of hosts.  Work is
 * counted, not clocked: equal input and seed give the same result on every machine.
 *
 * EXIT_USAGE: too few endpoints.  EXIT_UNJUDGED: nothing can be priced.  Call placed_free() even
 * after an error. */
int place_run(struct placed *p, const struct place_ask *ask, struct err *err);
void placed_free(struct placed *p);

/* --- jobs in words, for schedulers ---
 *
 * A job is a list of clauses separated by ';' or line ends.  Either the step of a training job,
 * with the keys of job.h and recipe.h,
 *   model=llama3.1-70b layout=tp=4,dp=auto batch=288
 * or the collectives of a step, on all ranks or at the same time on groups of neighbours,
 *   all_gather 64M x 12; all_to_all 8M x 4 groups of 8; all_reduce 1G groups of 4 apart 8
 * with sizes as in op.h.  ep_dispatch and ep_combine are operations too.  In "groups of N apart S"
 * consecutive members are S ranks apart.  Both forms allow per_node=N, ranks on each node (default:
 * all its endpoints), and spread=cyclic (default: a node is filled before the next).
 *
 * The text may come from a user of the cluster, so it names no files, and keys that fix the place
 * of ranks (order, nodes, segment, racks) are refused. */

enum { PLACE_TEXT_MAX = 64 << 10 };

/* Immutable after opening: several threads may share it. */
struct place_job {
    /* copy of the caller's matrix with the job's FLOP/s; nothing in it is owned */
    struct matrix matrix;
    char *text, *flops; /* job text cut into words, used by opts; source of the FLOP/s */
    struct job_opts opts;
    bool trains;        /* true: step of a model; false: `mix` */
    struct traffic mix; /* span.size 0: all ranks */
    int per_node;       /* 0: all endpoints */
    struct model model;
    struct constants constants;
    struct fabric fabric;
    struct host_slots slots;
};

/* Parse a job.  The matrix must outlive it.  EXIT_USAGE names the wrong word.  Call
 * place_job_close() even after an error. */
int place_job_open(struct place_job *j, const struct matrix *m, const char *text, struct err *err);
void place_job_close(struct place_job *j);
/* Parse the text only: opts, trains, mix, per_node.  First part of place_job_open(). */
int place_job_words(struct place_job *j, const char *text, struct err *err);
/* Make the step of the job for `given` available endpoints. */
int place_job_step(struct place_step *s, const struct place_job *j, int given, struct err *err);

/* Seconds of a step with the ranks assigned to these hosts in order.  NAN: err has the reason (a
 * host that does not exist, is listed twice or would be idle; too few endpoints; an unknown rate).
 * INFINITY: a part is dead, err names what needs it.  Allocates and frees. */
double place_job_cost(const struct place_job *j, const int *host, int hosts, struct err *err);

/* Price many host lists one after the other.  Results of earlier lists are kept, so a list with the
 * same structure, or with few other hosts, is only partly priced again.  The results equal those of
 * place_job_cost(), bit for bit.  For one thread. */
struct place_list {
    const struct place_job *job;
    int *host, hosts; /* last list that was priced; 0: none */
    bool *taken;      /* scratch, per host of the matrix */
    int *next;        /* scratch, per host of the matrix */
    int *order;       /* rank -> endpoint, sized for all endpoints of the matrix */
    struct place_step step;
    int given;             /* number of endpoints that step was made for; 0: none */
    struct pricer *pricer; /* NULL: not made yet */
};
void place_list_open(struct place_list *l, const struct place_job *j); /* the job must outlive it */
double place_list_cost(struct place_list *l, const int *host, int hosts, struct err *err);
/* Price the last list with another host at position `at`.  It becomes the last list unless the
 * result is NAN. */
double place_list_swap(struct place_list *l, int at, int host, struct err *err);
/* Recover after an out-of-memory exit from one of the two calls above: drop cached results, keep
 * the last list. */
void place_list_forget(struct place_list *l);
void place_list_close(struct place_list *l);

/* place_run() for a job on `need` of these hosts (0: as many as help) with `limit` seconds of
 * search (0: as place_ask). */
int place_job_run(struct placed *p, const struct place_job *j, const int *host, int hosts, int need,
                  double limit, struct err *err);

/* One of several jobs that share the free hosts: a line "NAME NODES WORDS" of a file.  NODES may be
 * -: as many as the ranks of the layout fill. */
struct place_entry {
    char *name;
    int line;
    struct place_job *job;
    int need, ranks; /* number of hosts; number of ranks on them */
    struct placed placed;
    double alone; /* s of a step with all free hosts to itself */
    /* Number of groups of each place_level that the job lies in, and the smallest possible
     * number. */
    int touched[LEVEL_COUNT], fewest[LEVEL_COUNT];
};
/* Free hosts left at a level that groups hosts: number of completely free groups, of partly free
 * groups, free hosts in the latter, and the most free hosts of one group. */
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
/* Read the file.  EXIT_DATA with file and line.  The matrix must outlive p.  Call place_pack_free()
 * even after an error. */
int place_pack_read(struct place_pack *p, const struct matrix *m, int hosts, struct err *err);
/* Place each job on hosts of its own by place_job_run() with `limit`: large jobs first or as
 * listed, whichever makes the sum of step / step alone smaller, then each again on the hosts that
 * the others leave.  Slowdown of jobs that share uplinks is not modelled.  EXIT_USAGE or
 * EXIT_UNJUDGED with its line if a job finds no place. */
int place_pack(struct place_pack *p, const struct matrix *m, const int *host, int hosts,
               double limit, struct err *err);
void place_pack_free(struct place_pack *p);

struct place_sets {
    int *host;   /* [count][need], each in the order of the free list */
    double *sec; /* [count], ascending */
    int count;   /* fewer than k: no more exist */
    bool exact;  /* no other set is cheaper than the last one */
    long priced; /* number of steps priced */
};

/* Find the k cheapest sets of `need` free hosts, ranks in the order of the free list.  Sets with a
 * dead part are left out.  Order among equal costs: sets that differ in more than alike hosts, then
 * those that leave the fewest free hosts in the groups they use, then the earliest.
 *
 * Hosts are alike if they have the same position at every level and no exception distinguishes
 * them, so swapping them changes nothing.  Each pattern of alike hosts is priced once.  If there
 * are few patterns, all are priced (exact).  Otherwise patterns come from filling group after group
 * from each start, from equal shares of several groups, and from moves between groups that improve
 * the cost.  patterns: maximum number to price; 0: about a second's worth. */
int place_job_sets(struct place_sets *b, const struct place_job *j, const int *free_host, int frees,
                   int need, int k, long patterns, struct err *err);
void place_sets_free(struct place_sets *b);

#endif
