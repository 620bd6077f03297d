/* transport_nccl.h - the context of the NCCL transport, and what is done before and after it.
 *
 * Timing.  n samples back to back in one stream with a CUDA event between each two: sec[i] is from
 * event to event, so that neither launching nor the host's waiting counts as long as the GPU has
 * work.  A sample is one operation; of short ones (below 50 us) it is the mean of as many as last
 * so long, 16 at most, since events between kernels take time themselves: what comes out is what n
 * operations between two waits for the stream take, divided by n, as in nccl-tests.  Before the
 * first event an operation is launched that does not count, unless they are long: an idle stream
 * starts as late as its first launch.  A host slower than the GPU counts, as it does there.
 * Everything is in stream order, broadcast and reduce too (nccl-tests measures them so), and ranks
 * that waited in one operation are ahead in the next: sample.c chains all collectives of a
 * transport whose `stream` is set.  As in nccl-tests each operation has the next place in the
 * buffers, which are as long as the largest message (nccl_job_turn(); --same-buffer: all have one),
 * and --graph replays up to 20 captured operations at a time.
 * Pair operations run on communicators of two ranks: ping-pong, or windows of OP_PAIR_WINDOW
 * messages in one group; members[0]'s times count, members[1] repeats them. */
#ifndef RG_TRANSPORT_NCCL_H
#define RG_TRANSPORT_NCCL_H

#include "kernels/gpu.h"
#include "probe/measure.h"
#include "probe/nccl/nccl_conn.h"
#include "probe/nccl/nccl_ops.h"
#include "probe/nccl/nccl_opts.h"
#include "probe/world.h"

enum { NCCL_SEND, NCCL_RECV, NCCL_SIDES };

struct nccl_ctx {
    struct nccl_side side;
    struct nccl_conn *conn;               /* NULL: lost */
    void *shared;                         /* group->comm */
    struct gpu_buffer buffer[NCCL_SIDES]; /* in place: the receiving one only */
    bool library[NCCL_SIDES];             /* from ncclMemAlloc */
    void *handle[NCCL_SIDES];             /* of ncclCommRegister */
    nccl_window window[NCCL_SIDES];
    struct gpu_clock *clock;
    int marks;
    char host[64];
    unsigned checks;
    unsigned turn; /* operations that were put into the stream: where the next one's data lie */
    bool inside;   /* a call that was given buffers and stream did not come back */
    /* How long the last operation took on the slowest member: the shape of the next batch. */
    enum op last_op;
    size_t last_bytes;
    double last;
};

/* transport_nccl_memory.c: buffers, and their registration with the communicator (collective). */
int nccl_memory_take(struct nccl_ctx *c, struct err *err);
void nccl_memory_drop(struct nccl_ctx *c, bool usable);
int nccl_memory_register(struct nccl_ctx *c, struct nccl_step *s);

/* transport_nccl.c: put one operation into the stream, once. */
int nccl_put(struct nccl_ctx *c, const struct nccl_job *j, struct nccl_step *s);
/* The next place in the buffers; the same on all members. */
void nccl_turn(struct nccl_ctx *c, struct nccl_job *j);
/* All members: how did it go?  When not well, the communicator is lost. */
int nccl_together(struct nccl_ctx *c, const struct nccl_job *j, struct nccl_step *s,
                  double *longest, int *slowest, struct err *err);
/* transport_nccl_batch.c: n samples into sec[]; s->sec is their mean, or *s says why not. */
void nccl_batch(struct nccl_ctx *c, const struct nccl_job *j, int n, double *sec,
                struct nccl_step *s);
/* transport_nccl_check.c */
int nccl_check(void *ctx, enum op op, size_t bytes, struct err *err);

/* Collective over w, before topology and transport: the driver, this rank's GPU (gpu_binding.h), NCCL, its
 * variables, and the provenance. */
int transport_nccl_start(const struct nccl_opts *o, struct world *w, struct err *err);
/* Collective, after the campaign (--sweep): the plan's collectives that NCCL has algorithms for,
 * once more with each algorithm and protocol, into sweep/ALGO-PROTO.tsv beside `points`; what NCCL
 * refuses is in the file as a failed point with its reason.  sweep/plan.tsv is what was measured.
 * Files that are there already are continued. */
int transport_nccl_sweep(const struct nccl_opts *o, struct world *w, const struct topo *topo,
                         const struct plan *plan, const struct measure_opts *m, const char *points,
                         struct err *err);

/* Collective, after the campaign: what connecting cost goes into connections.tsv beside `points`;
 * *words as nccl_conn_finish().  The caller closes the GPU, once: a dead one is left behind. */
int transport_nccl_finish(struct world *w, const char *points, char **words, struct err *err);

#endif
