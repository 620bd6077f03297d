/* railgauge.h - C interface to a cost matrix: cost of transfers, collectives and placements.
 *
 * Units:    bytes and seconds.  NAN: unknown.  INFINITY: a part on the path is dead.
 * Threads:  a handle (struct railgauge) and a job are immutable; any number of threads may query
 *           them at once.  Exceptions are stated below.
 * Errors:   err may be NULL; else it holds a sentence if the result is -1, NAN or INFINITY.
 *
 * Examples: railgauge(3).  Link with `pkg-config --libs railgauge`. */
#ifndef RAILGAUGE_H
#define RAILGAUGE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct railgauge;

/* Open a matrix.json, a campaign directory that holds one, or a preset: "preset:hgx-h100" or, with
 * 8 racks, "preset:hgx-h100:8".  Returns 0, or -1 with a sentence in err.  The caller closes it. */
int railgauge_open(struct railgauge **out, const char *path, char err[256]);

/* Return 1 if the file was changed, replaced or removed since it was opened, else 0 (always 0 for
 * a preset).  After 1, open it again, and close this handle once no thread uses it.  Costs one
 * file system lookup. */
int railgauge_changed(const struct railgauge *r);

/* --- endpoints and pairs: no allocations --- */

/* Number of endpoints.  Ids are 0..count-1. */
int railgauge_count(const struct railgauge *r);

/* Endpoint id of GPU (or socket) number `gpu` on `host`; -1: none. */
int railgauge_find(const struct railgauge *r, const char *host, int gpu);

/* Number of hosts, which are numbered 0..count-1. */
int railgauge_host_count(const struct railgauge *r);

/* Name of a host; NULL: no such host.  Valid until r is closed. */
const char *railgauge_host_name(const struct railgauge *r, int host);

/* Number of the host with this name; -1: none. */
int railgauge_host_find(const struct railgauge *r, const char *name);

/* Write the numbers of hosts whose bit is set, ascending, and return how many.  Bit of host h: h %
 * 64 of bits[h / 64], up to the last host.  hosts needs room for railgauge_host_count(). */
int railgauge_hosts_in(const struct railgauge *r, const uint64_t *bits, int *hosts);

/* Name of an endpoint's group at a level: "host", "domain" (NVLink), "leaf", "rack", "rail" or
 * "spine".  NULL: no such id or level, or the group is unknown.  Valid until r is closed. */
const char *railgauge_level(const struct railgauge *r, int id, const char *level);

/* Seconds to move `bytes` from src to dst, one way.  NAN: id out of range, or cost unknown.
 * INFINITY: a part on the path is dead.  src == dst: 0. */
double railgauge_pair(const struct railgauge *r, int src, int dst, size_t bytes);

/* Seconds for n pairs, src[i] to dst[i], all of one size. */
void railgauge_pairs(const struct railgauge *r, const int *src, const int *dst, size_t n,
                     size_t bytes, double *seconds);

/* Seconds for a collective ("all_gather", ...) on n endpoints.  bytes is counted as in nccl-tests:
 * the largest buffer of a rank.  NAN: unknown op or id, an id that is there twice, n < 2, or NULL for
 * r, op or ids. */
double railgauge_collective(const struct railgauge *r, const char *op, const int *ids, int n,
                            size_t bytes);

/* The endpoints first, first + step, ...: `count` of them. */
struct railgauge_range {
    int first, count, step; /* count and step >= 1 */
};

/* Set range to the endpoints of `count` hosts from number `first` on.  Returns 0; -1: no such
 * hosts, or their endpoint ids are not consecutive.  Takes O(hosts). */
int railgauge_hosts_range(const struct railgauge *r, int first, int count,
                          struct railgauge_range *range);

/* Same result as railgauge_collective() for the members of n ranges in this order, bit for bit.
 * If the ranges ascend and hosts, domains and racks are nested, the time grows with the ranges and
 * the slow parts inside them, not with the members, and nothing is allocated; otherwise every
 * member is examined.  NAN: unknown op, endpoint out of range, fewer than two members, or more
 * members than endpoints. */
double railgauge_collective_ranges(const struct railgauge *r, const char *op,
                                   const struct railgauge_range *ranges, int n, size_t bytes);

/* --- one group at any size --- */

struct railgauge_group;

/* Prepare a collective on n >= 2 endpoints in rank order, in O(n).  Returns 0, or -1 with a
 * sentence in err.  The caller closes the group before r. */
int railgauge_group_open(struct railgauge_group **out, const struct railgauge *r, const char *op,
                         const int *ids, int n, char err[256]);

/* Same result as railgauge_collective() for the group, bit for bit.  The time does not depend on
 * the size of the group; nothing is allocated. */
double railgauge_group_time(const struct railgauge_group *g, size_t bytes);

/* Cost with its interval and origin. */
struct railgauge_price {
    double seconds;
    /* Measured curves: 95 % interval; models: nine of ten measured times lie within. */
    double low, high;
    /* "measured", "fitted", "preset" or "modelled"; valid as long as the library. */
    const char *basis;
    /* "modelled: tree, LL, mnnvl inside and fabric between 8 domains, 2 x 3 hops, ...". */
    char source[208];
};

/* railgauge_group_time() with interval and origin; takes some microseconds. */
void railgauge_group_price(const struct railgauge_group *g, size_t bytes,
                           struct railgauge_price *price);

void railgauge_group_close(struct railgauge_group *g); /* NULL is allowed */

/* --- jobs on nodes: memory that these functions allocate is freed before they return --- */

struct railgauge_job;

/* Parse a job: a training step, "model=llama3.1-70b layout=tp=4,dp=auto", or collectives,
 * "all_gather 64M x 12; all_to_all 8M x 4 groups of 8" (grammar: railgauge(3)).  Returns 0, or -1
 * with a sentence in err.  The caller closes the job before r. */
int railgauge_job_open(struct railgauge_job **out, const struct railgauge *r, const char *text,
                       char err[256]);

/* Restrict the job to free GPUs (or sockets): bit i of gpus[h] is number i of host h; NULL: all
 * are free.  From then on ranks are assigned only to these, in ascending order.  Do not call it
 * while another thread uses the job, or a list of it is open.  Returns 0, or -1 with a sentence: a
 * host has more than 64, or no memory. */
int railgauge_job_free_gpus(struct railgauge_job *job, const uint64_t *gpus, char err[256]);

/* Step time in seconds, with the ranks assigned to these n hosts in the given order. */
double railgauge_nodes_cost(const struct railgauge_job *job, const int *hosts, int n,
                            char err[256]);

/* Step times of n lists in one call, in a fraction of the time of n calls.
 * hosts, start  list i is hosts[start[i]] .. hosts[start[i + 1] - 1]; start has n + 1 entries
 * seconds[i]    as from railgauge_nodes_cost(), bit for bit; NAN: the list has no price
 * order         unless NULL: the lists, cheapest first, equal ones in their order; then lists with
 *               a dead part, then those without a price
 * Returns the number of finite prices; if it is less than n, err explains the first other list.
 * -1 with a sentence: no memory, or n < 0. */
int railgauge_rank(const struct railgauge_job *job, const int *hosts, const size_t *start, int n,
                   double *seconds, int *order, char err[256]);

/* Host list that changes by one host at a time; for one thread at a time. */
struct railgauge_list;

/* Returns 0, or -1 with a sentence if railgauge_nodes_cost() is NAN.  Close it before the job. */
int railgauge_list_open(struct railgauge_list **out, const struct railgauge_job *job,
                        const int *hosts, int n, char err[256]);
/* Step time in seconds on the current list. */
double railgauge_list_cost(const struct railgauge_list *list);
/* Replace the host at position `at` (from 0).  Returns the step time on the new list, as from
 * railgauge_nodes_cost(), bit for bit.  NAN with a sentence: the list is unchanged.  Only messages
 * that involve the host are priced again. */
double railgauge_list_swap(struct railgauge_list *list, int at, int host, char err[256]);
void railgauge_list_close(struct railgauge_list *list); /* NULL is allowed */

/* Find the k cheapest sets of `need` hosts among n free ones.  Set i is hosts[i * need] .. hosts[i
 * * need + need - 1], in the order of the free list, and takes seconds[i], ascending.  Returns the
 * number of sets (less than k: no more exist), or -1.  *exact, unless NULL, is 1 if no other set
 * is cheaper, 0 if there were too many to know. */
int railgauge_nodes_best(const struct railgauge_job *job, const int *free_hosts, int n, int need,
                         int k, int *hosts, double *seconds, int *exact, char err[256]);

/* Result of railgauge_place(). */
struct railgauge_placed {
    int ranks;
    double seconds;   /* step time with this order of ranks */
    double as_listed; /* railgauge_nodes_cost() of the free hosts, or of the first `need` */
    double bound;     /* lower bound for any choice and order; 0: none known */
    char how[256];    /* description of the search */
};

/* Choose hosts among n free ones, and the endpoint of each rank.
 * need   maximum number of hosts; 0: as many as pay off
 * order  rank i runs on endpoint order[i]; ranks of a host use its endpoints in ascending order
 * max    room in order; railgauge_count() is always enough
 * limit  approximate seconds of the search; 0: 0.1 to 0.4 for orders, and with `need` before them
 *        about two seconds for sets of hosts if there are many
 * The step is never slower than railgauge_nodes_cost() of the listed hosts; with limit 0 nor than the
 * best set of railgauge_nodes_best().  Limits are counted in work, so that the result is the same on every
 * machine.  Returns 0, or -1 with a sentence; then nothing is written. */
int railgauge_place(const struct railgauge_job *job, const int *free_hosts, int n, int need,
                    double limit, int *order, int max, struct railgauge_placed *placed,
                    char err[256]);

void railgauge_job_close(struct railgauge_job *job); /* NULL is allowed */
void railgauge_close(struct railgauge *r);           /* NULL is allowed */

#ifdef __cplusplus
}
#endif
#endif
