/* nccl_session_impl.h - resources of the NCCL transport for a group: two buffers, a stream, a clock and
 * a communicator from the pool. */
#ifndef RG_NCCL_SESSION_H
#define RG_NCCL_SESSION_H

#include "kernels/gpu.h"
#include "measure/transports/transport.h"
#include "transport/nccl/nccl_conn.h"
#include "transport/nccl/nccl_ops_impl.h"

enum { NCCL_SEND, NCCL_RECV, NCCL_SIDES };

struct nccl_session {
    struct nccl_side side;
    struct nccl_conn *conn;               /* NULL: lost */
    void *shared;                         /* group->comm */
    bool on_shared;                       /* a pair that may use the communicator of all ranks */
    struct gpu_buffer buffer[NCCL_SIDES]; /* in place: only the receive buffer */
    bool library[NCCL_SIDES];             /* allocated by ncclMemAlloc */
    void *handle[NCCL_SIDES];             /* handles of ncclCommRegister */
    nccl_window window[NCCL_SIDES];
    struct gpu_clock *clock;
    int marks;
    char host[64];
    unsigned checks;
    /* operations put into the stream so far: gives the place of the next one's data */
    unsigned turn;
    bool inside; /* a call that got buffers and stream did not return */
    /* Time of the last operation on the slowest member, which sets the shape of the next batch. */
    enum op last_op;
    size_t last_bytes;
    double last;
};

/* Collective over the group; succeeds or fails on all members.  shared: a pair on the communicator
 * of all ranks. */
int nccl_session_open(struct nccl_session **out, const struct group *g, bool shared,
                      size_t max_bytes, struct err *err);
/* Buffers and stream that the GPU may still use are not freed.  NULL is allowed. */
void nccl_session_close(struct nccl_session *c);

/* Check that this operation can run.  A refused operation is refused again; a communicator lost
 * with it is made anew.  A communicator that died is not; the reason is the error.  The same on all
 * members. */
int nccl_session_ready(struct nccl_session *c, enum op op, struct err *err);
/* Run the first operation, which connects the peers.  It is timed separately, and not by the
 * GPU. */
int nccl_session_first(struct nccl_session *c, const struct nccl_job *j, struct err *err);
/* Put one operation into the stream, once. */
int nccl_session_enqueue(struct nccl_session *c, const struct nccl_job *j, struct nccl_step *s);
/* Move to the next place in the buffers; the same on all members. */
void nccl_session_turn(struct nccl_session *c, struct nccl_job *j);
/* Called by all members: agree on the result.  On failure the communicator is lost. */
int nccl_session_agree(struct nccl_session *c, const struct nccl_job *j, struct nccl_step *s,
                       double *longest, int *slowest, struct err *err);

/* nccl_check.c: the transport's check(). */
int nccl_check(void *session, enum op op, size_t bytes, struct err *err);

#endif
