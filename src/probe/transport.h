/* transport.h - something that can run an operation on a group and say how long it took, and the
 * one table of all that are known.
 *
 * A transport knows nothing of warm-up, sample counts or output: measure.c decides those.  It owns
 * the clock (MPI_Wtime, CUDA events, a formula).  open(), run() and check() are collective over the
 * group: every member calls them in the same order. */
#ifndef RG_TRANSPORT_H
#define RG_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/op.h"
#include "base/opt.h"

/* The endpoints that run one operation together, in order (members[0] is the source of pair ops).
 */
struct group {
    const int *members; /* endpoint ids */
    int size;
    int self;   /* my index in members; sim plays every member and has 0 */
    void *comm; /* MPI_Comm * of these members, or what the sim's world hands out */
    /* What else runs at the same time; sim needs it to model contention, others ignore it. */
    const struct round *round;
    int index, epoch; /* of this group in round->group; the campaign's epoch */
    /* Number of this turn (one size of one round in one epoch) in the order of the plan, the same
     * after --resume, and of turns in the plan.  Retests come later: turn >= turns. */
    int turn, turns;
};

struct plan;
struct round;
struct points;
struct probe_args;
struct topo;
struct transport;
struct world;

/* What a transport does.  NULL in those once a campaign or a round: there is nothing to do. */
struct transport_calls { /* a fifth call on a group must displace a line elsewhere */
    int (*open)(void **ctx, const struct group *g, size_t max_bytes, struct err *err);
    int (*run)(void *ctx, enum op op, size_t bytes, int n, double *sec,
               struct err *err); /* sec[i]: this rank */
    int (*check)(void *ctx, enum op op, size_t bytes,
                 struct err *err); /* verify every received byte once; may be NULL */
    void (*close)(void *ctx);

    /* Once a campaign, collective over w.  start() before the topology is made: the ranks' GPUs,
     * libraries, what its options ask for. */
    int (*start)(const struct probe_args *a, struct world *w, struct err *err);
    /* Before the points' files are begun: what must be measured to know how to measure. */
    int (*prepare)(const struct transport *tr, const struct probe_args *a, struct world *w,
                   const struct topo *topo, const struct plan *plan, struct err *err);
    /* Before each round that has something to measure. */
    int (*round)(struct world *w, const struct topo *topo, const struct round *r, struct err *err);
    /* After the points: --sweep, into files beside `points`. */
    int (*sweep)(const struct transport *tr, const struct probe_args *a, struct world *w,
                 const struct topo *topo, const struct plan *plan, const char *points,
                 struct err *err);
    /* What the library built goes into the topology; asked is not used: EXIT_CONFIG.  p: rank 0's
     * points, NULL elsewhere. */
    int (*learn)(const struct probe_args *a, struct world *w, struct topo *t,
                 const struct points *p, struct err *err);
    /* Also after a campaign that failed or was cut short, with its rc; returns rc, or -1. */
    int (*finish)(struct world *w, const char *points, int rc, struct err *err);
};

enum transport_memory { TRANSPORT_HOST, TRANSPORT_GPU };

/* What a transport is.  A new one is a file with its calls and a row of transport.c. */
struct transport {
    const char *name, *help;
    const char *words; /* what carries its bytes, as people call it; NULL: its name */
    int depth;         /* software between its bytes and the NIC: what has less can lie below it; 0:
                          nothing, or nobody can tell */
    bool wire;         /* whatever it measures crosses NICs */
    unsigned ops;      /* bits of enum op that it has */
    const char *only;  /* why not all of them */
    enum transport_memory memory; /* where the bytes lie */
    bool ranks;                   /* MPI starts a process an endpoint; else one plays them all */
    bool automatic;               /* what "auto" may become; the last of those with a GPU each */
    bool stream;     /* operations run back to back in a stream, broadcast and reduce too */
    bool threads;    /* its library has threads of its own: MPI is told of them, may take locks */
    bool windows;    /* pairs have the window of mpi_opts.h, else OP_PAIR_WINDOW messages */
    bool typed;      /* types and reductions are the user's (nccl_opts.h) */
    bool nics;       /* can be told to leave NVLink, so that every pair crosses its NICs */
    bool published;  /* its collectives are those that curves are published of */
    double patience; /* s without movement until a rank hangs, where --hang-after does not say */
    /* Of its own, and where they go; NULL ends them.  Two transports may have the same. */
    const struct opt_set *options[3];
    const struct transport_calls *calls; /* NULL: this program was built without them */
};

/* The default first; name NULL ends them. */
extern const struct transport transports[];
const struct transport *transport_find(const char *name); /* NULL: no such; name may be NULL */
/* The first that needs no ranks. */
const struct transport *transport_solo(void);
/* What "auto" is where every rank has a GPU and the library. */
const struct transport *transport_of_gpus(void);
/* The options of all of them, each set once: for opt_line.more. */
const struct opt_set *const *transport_options(void);
/* "mpi, nccl, copy and verbs": those that need ranks, or all. */
enum { TRANSPORT_NAMES = 128 };
const char *transport_names(char out[TRANSPORT_NAMES], bool all);
void transport_each(name_taker *take, void *to);
/* Take the operations that a transport has not out of the set `ops` (bits of enum op); EXIT_USAGE
 * when none is left.  NULL has them all. */
int transport_limit(unsigned *ops, const struct transport *t, struct err *err);

#endif
