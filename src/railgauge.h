/* railgauge.h - read a cost matrix from C: what does it cost to put these ranks there?
 *
 * A handle and a job are immutable: any number of threads may query them at once.  Sizes are bytes,
 * times are seconds; NAN means unknown, INFINITY that a part on the way is dead.  Where a function
 * takes err, it may be NULL, and holds a sentence whenever the answer is
 * -1, NAN or INFINITY.  railgauge(3) has examples; link with `pkg-config --libs railgauge`.
 */
#ifndef RAILGAUGE_H
#define RAILGAUGE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct railgauge;

/* Open a matrix.json, the one in a campaign's directory, or a preset: "preset:hgx-h100" or, with so many
 * racks, "preset:hgx-h100:8".  Returns 0, or -1 with a sentence in err; the caller closes. */
int railgauge_open(struct railgauge **out, const char *path, char err[256]);

/* 1 when the file is another one by now, or gone: open it anew, and close this handle when nobody asks it
 * any more.  A preset never changes: 0.  A look-up in the file system. */
int railgauge_changed(const struct railgauge *r);

/* --- endpoints and pairs: these allocate nothing --- */

/* Number of endpoints; ids are 0..count-1. */
int railgauge_count(const struct railgauge *r);

/* Endpoint id of GPU (or socket) number `gpu` on `host`, or -1. */
int railgauge_find(const struct railgauge *r, const char *host, int gpu);

/* Number of hosts; they are 0..count-1. */
int railgauge_host_count(const struct railgauge *r);

/* Name of a host, or NULL; it lives as long as r. */
const char *railgauge_host_name(const struct railgauge *r, int host);

/* The host of this name, or -1. */
int railgauge_host_find(const struct railgauge *r, const char *name);

/* Hosts whose bit is set, host h in bit h % 64 of bits[h / 64], which has one for every host: their
 * numbers, ascending.  Returns how many; hosts has room for railgauge_host_count(). */
int railgauge_hosts_in(const struct railgauge *r, const uint64_t *bits, int *hosts);

/* The group that an endpoint is in at a level: "host", "domain" (NVLink), "leaf", "rack", "rail" or
 * "spine".  NULL: no such id or level, or its group is not known.  Lives as long as r. */
const char *railgauge_level(const struct railgauge *r, int id, const char *level);

/* Seconds to move `bytes` one way from src to dst.  NAN: an id is out of range or the pair is
 * unknown; INFINITY: a part on the way is dead.  src == dst: 0. */
double railgauge_pair(const struct railgauge *r, int src, int dst, size_t bytes);

/* The same of n pairs, src[i] to dst[i], all of one size: seconds[i]. */
void railgauge_pairs(const struct railgauge *r, const int *src, const int *dst, size_t n,
                     size_t bytes, double *seconds);

/* Seconds for a collective ("all_gather", ...) on n endpoints; bytes as nccl-tests counts them (the
 * largest buffer of one rank).  NAN: unknown op or id, or n < 2. */
double railgauge_collective(const struct railgauge *r, const char *op, const int *ids, int n,
                            size_t bytes);

/* Endpoints first, first + step, ...: `count` of them. */
struct railgauge_range {
    int first, count, step; /* count and step >= 1 */
};

/* The endpoints of `count` hosts from host `first` on.  -1: there are no such hosts, or their endpoints do not follow
 * each other.  A look at each of them. */
int railgauge_hosts_range(const struct railgauge *r, int first, int count,
                          struct railgauge_range *range);

/* railgauge_collective() of the members of n ranges in this order, to the bit.  Where the ranges ascend and hosts,
 * domains and racks lie in each other, the time it takes grows with the ranges and with the slow parts in them, not
 * with the members, and it allocates nothing; elsewhere it looks at each.  NAN: unknown op, an endpoint that is not
 * there, fewer than two members or more than endpoints. */
double railgauge_collective_ranges(const struct railgauge *r, const char *op,
                                   const struct railgauge_range *ranges, int n, size_t bytes);

/* --- one group, any size --- */

struct railgauge_group;

/* A collective on n >= 2 endpoints in rank order, resolved once, in time that grows with n.  Returns 0, or
 * -1 with a sentence in err; the caller closes it before r. */
int railgauge_group_open(struct railgauge_group **out, const struct railgauge *r, const char *op,
                         const int *ids, int n, char err[256]);

/* What railgauge_collective() says of the group, to the bit, in time that does not grow with it; allocates nothing. */
double railgauge_group_time(const struct railgauge_group *g, size_t bytes);

/* A price with its interval and where it comes from. */
struct railgauge_price {
    double seconds;
    double low,
        high; /* measured curves: 95 % interval; models: nine of ten measured times lie within */
    const char
        *basis; /* "measured", "fitted", "preset" or "modelled"; lives as long as the library */
    char source
        [208]; /* "modelled: tree, LL, mnnvl inside and fabric between 8 domains, 2 x 3 hops, ..." */
};

/* railgauge_group_time() with the rest; some microseconds. */
void railgauge_group_price(const struct railgauge_group *g, size_t bytes,
                           struct railgauge_price *price);

void railgauge_group_close(struct railgauge_group *g); /* NULL is fine */

/* --- jobs on nodes: these allocate, and free what they took before they return --- */

struct railgauge_job;

/* A job in words: a training step, "model=llama3.1-70b layout=tp=4,dp=auto", or its collectives,
 * "all_gather 64M x 12; all_to_all 8M x 4 groups of 8"; railgauge(3) has the grammar.  Returns 0,
 * or -1 with a sentence in err; the caller closes the job before r. */
int railgauge_job_open(struct railgauge_job **out, const struct railgauge *r, const char *text,
                       char err[256]);

/* Only these GPUs (or sockets) are free: bit i of gpus[h] is number i of host h; NULL: all.  From now on
 * the calls below give ranks to no others, in ascending order.  Not while another thread asks the job, or
 * a list of it is open.  Returns 0, or -1 with a sentence: a host has more than 64, or no memory. */
int railgauge_job_free_gpus(struct railgauge_job *job, const uint64_t *gpus, char err[256]);

/* Seconds of a step with the ranks dealt over these n hosts in turn. */
double railgauge_nodes_cost(const struct railgauge_job *job, const int *hosts, int n,
                            char err[256]);

/* The same of n lists at once, a fraction of the time: list i is hosts[start[i]] .. hosts[start[i + 1] - 1]
 * (start has n + 1 numbers) and costs seconds[i], what railgauge_nodes_cost() says of it to the bit: NAN
 * where it has no price.  order, unless NULL: the lists, cheapest first, equals as they came, then dead ones,
 * then those without a price.  Returns how many have a finite price, err then says what the first other one
 * lacks; -1 with a sentence: no memory, or n < 0. */
int railgauge_rank(const struct railgauge_job *job, const int *hosts, const size_t *start, int n,
                   double *seconds, int *order, char err[256]);

/* A list that changes a host at a time: of one thread at a time. */
struct railgauge_list;

/* Returns 0, or -1 with a sentence where railgauge_nodes_cost() is NAN; the caller closes it before the job. */
int railgauge_list_open(struct railgauge_list **out, const struct railgauge_job *job,
                        const int *hosts, int n, char err[256]);
/* Seconds of a step on the list as it is. */
double railgauge_list_cost(const struct railgauge_list *list);
/* Put `host` at position `at` (from 0): seconds of the list that is there then, as railgauge_nodes_cost()
 * says to the bit.  NAN with a sentence: it stays as it was.  Only what the host touches is priced again. */
double railgauge_list_swap(struct railgauge_list *list, int at, int host, char err[256]);
void railgauge_list_close(struct railgauge_list *list); /* NULL is fine */

/* The k cheapest sets of `need` of the n free hosts, each in the order of the free list: set i is
 * hosts[i * need] .. hosts[i * need + need - 1] and costs seconds[i], ascending.  Returns how many
 * there are (less than k: there are no more), or -1.  *exact, unless NULL, is 1 when no other set
 * is cheaper, 0 when there were too many to know. */
int railgauge_nodes_best(const struct railgauge_job *job, const int *free_hosts, int n, int need,
                         int k, int *hosts, double *seconds, int *exact, char err[256]);

/* What railgauge_place() found. */
struct railgauge_placed {
    int ranks;
    double seconds;   /* of a step in this order of ranks */
    double as_listed; /* railgauge_nodes_cost() of the free hosts, or of the first `need` of them */
    double bound;     /* no choice and no order is faster; 0: nothing is claimed */
    char how[256];    /* in words */
};

/* Which of the n free hosts, and which rank where: `need` of them at most, 0: as many as are worth
 * it.  Rank i runs on endpoint order[i]; on each host ranks take endpoints in ascending order.  The
 * step is never dearer than railgauge_nodes_cost() of the listed hosts, nor than the best set of
 * railgauge_nodes_best().  order has room for `max` ranks: railgauge_count() is always enough.
 * limit: seconds that orders are searched, about, 0: 0.1 to 0.4; with `need` sets of hosts are searched before that,
 * for about two seconds where they are many.  Work is counted, so that the answer is the same on
 * every machine.  Returns 0, or -1 with a sentence: then nothing is written. */
int railgauge_place(const struct railgauge_job *job, const int *free_hosts, int n, int need,
                    double limit, int *order, int max, struct railgauge_placed *placed,
                    char err[256]);

void railgauge_job_close(struct railgauge_job *job); /* NULL is fine */
void railgauge_close(struct railgauge *r);           /* NULL is fine */

#ifdef __cplusplus
}
#endif
#endif
