/* transport.h - interface of the transports, which run an operation on a group and time it, and the
 * table of all transports.
 *
 * Warm-up, sample counts and output are decided by measure.c, not by a transport.  A transport owns
 * the clock (MPI_Wtime, CUDA events, a formula).  open(), run() and check() are collective over the
 * group: every member calls them in the same order. */
#ifndef RG_TRANSPORT_H
#define RG_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/op.h"
#include "base/opt.h"

/* Endpoints that run one operation together, in rank order; members[0] is the source of pair
 * operations. */
struct group {
    const int *members; /* endpoint ids */
    int size;
    int self;   /* index of this rank in members; sim plays every member and has 0 */
    void *comm; /* MPI_Comm * of these members, or the handle of sim's world */
    /* All groups that run at the same time.  Only sim uses them, to model contention. */
    const struct round *round;
    int index, epoch; /* index of this group in round->group; epoch of the campaign */
    /* turn: number of this turn (a size of a round in an epoch) in plan order, the same after
     * --resume; turns: number of turns in the plan.  Retests come later: turn >= turns. */
    int turn, turns;
};

struct plan;
struct round;
struct point;
struct points;
struct probe_args;
struct topo;
struct transport;
struct world;

/* Calls of a transport.  Calls made once per campaign or per round may be NULL. */
struct transport_calls { /* no fifth call per group without removing code elsewhere */
    int (*open)(void **ctx, const struct group *g, size_t max_bytes, struct err *err);
    int (*run)(void *ctx, enum op op, size_t bytes, int n, double *sec,
               struct err *err); /* sec[i]: time of sample i on this rank */
    int (*check)(void *ctx, enum op op, size_t bytes,
                 struct err *err); /* verify every received byte once; may be NULL */
    void (*close)(void *ctx);

    /* Set dtype, redop and registration of a described point (point.h); NULL: not known. */
    void (*kind)(struct point *p);

    /* Once per campaign, collective over w.  start() runs before the topology is made and finds the
     * ranks' GPUs, libraries, and devices needed by the options. */
    int (*start)(const struct probe_args *a, struct world *w, struct err *err);
    /* Before the points files are created: measure what decides how to measure. */
    int (*prepare)(const struct transport *tr, const struct probe_args *a, struct world *w,
                   const struct topo *topo, const struct plan *plan, struct err *err);
    /* Before each round that has points to measure. */
    int (*round)(struct world *w, const struct topo *topo, const struct round *r, struct err *err);
    /* After the points, with --sweep.  Writes files beside `points`. */
    int (*sweep)(const struct transport *tr, const struct probe_args *a, struct world *w,
                 const struct topo *topo, const struct plan *plan, const char *points,
                 struct err *err);
    /* Record in the topology what the library built.  EXIT_CONFIG if a requested path was not
     * used.  p: points on rank 0, NULL elsewhere. */
    int (*learn)(const struct probe_args *a, struct world *w, struct topo *t,
                 const struct points *p, struct err *err);
    /* Also called after a failed or interrupted campaign, with its rc.  Returns rc, or -1. */
    int (*finish)(struct world *w, const char *points, int rc, struct err *err);
};

enum transport_memory { TRANSPORT_HOST, TRANSPORT_GPU };

/* Description of a transport.  To add a transport, write a file with its calls and a row in
 * transport.c. */
struct transport {
    const char *name, *help;
    const char *words; /* common name of the library that carries the data; NULL: use name */
    /* number of software layers above the NIC: a transport with fewer can be its lower layer; 0:
     * none or not known */
    int depth;
    bool wire;                    /* every measurement crosses NICs */
    unsigned ops;                 /* bit mask of the supported enum op */
    const char *only;             /* reason why operations are missing */
    enum transport_memory memory; /* location of the buffers */
    bool ranks;      /* MPI starts a process per endpoint; else one process plays all */
    bool automatic;  /* candidate for "auto"; the last one of those with a GPU per rank */
    bool stream;     /* operations run back to back in a stream, also broadcast and reduce */
    bool threads;    /* the library has its own threads, so MPI is started thread-safe */
    bool windows;    /* pairs use the window of mpi_opts.h, else OP_PAIR_WINDOW messages */
    bool typed;      /* the user sets data type and reduction (nccl_opts.h) */
    bool nics;       /* can bypass NVLink, so that every pair crosses its NICs */
    bool published;  /* published collective curves apply to it */
    double patience; /* s without progress until a rank counts as hung; --hang-after overrides */
    /* Own option sets with their targets; ends with NULL.  Two transports may share a set. */
    const struct opt_set *options[3];
    const struct transport_calls *calls; /* NULL: not built into this program */
};

/* The default comes first; ends with name NULL. */
extern const struct transport transports[];
const struct transport *transport_find(const char *name); /* NULL if unknown; name may be NULL */
/* First transport that needs no ranks. */
const struct transport *transport_solo(void);
/* Transport for "auto" if every rank has a GPU and the library. */
const struct transport *transport_of_gpus(void);
/* Options of all transports, each set once: for opt_line.more. */
const struct opt_set *const *transport_options(void);
/* List "mpi, nccl, copy and verbs": the transports that need ranks, or all. */
enum { TRANSPORT_NAMES = 128 };
const char *transport_names(char out[TRANSPORT_NAMES], bool all);
void transport_each(name_taker *take, void *to);
/* Clear the operations that a transport lacks in `ops` (bits of enum op).  EXIT_USAGE if none is
 * left.  t NULL: nothing is lacking. */
int transport_limit(unsigned *ops, const struct transport *t, struct err *err);

#endif
