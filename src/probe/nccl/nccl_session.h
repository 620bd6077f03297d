/* nccl_session.h - what the NCCL transport has open for a group: two buffers, a stream, a clock and
 * a communicator of the pool. */
#ifndef RG_NCCL_SESSION_H
#define RG_NCCL_SESSION_H

#include "kernels/gpu.h"
#include "probe/nccl/nccl_conn.h"
#include "probe/nccl/nccl_ops.h"
#include "probe/transport.h"

enum { NCCL_SEND, NCCL_RECV, NCCL_SIDES };

struct nccl_session {
    struct nccl_side side;
    struct nccl_conn *conn;               /* NULL: lost */
    void *shared;                         /* group->comm */
    bool on_shared;                       /* a pair that may do with the communicator of all */
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

/* Collective over the group, whose members fail together; shared: a pair on the communicator of
 * all. */
int nccl_session_open(struct nccl_session **out, const struct group *g, bool shared,
                      size_t max_bytes, struct err *err);
/* Buffers and stream that the GPU may still work on stay; NULL is fine. */
void nccl_session_close(struct nccl_session *c);

/* May this operation be run?  What was refused is refused again; a communicator that was lost with
 * it is made anew.  One that died is not: the reason is the error.  The same on all members. */
int nccl_session_ready(struct nccl_session *c, enum op op, struct err *err);
/* The first operation connects the peers: it is timed apart, and not by the GPU. */
int nccl_session_first(struct nccl_session *c, const struct nccl_job *j, struct err *err);
/* Put one operation into the stream, once. */
int nccl_session_enqueue(struct nccl_session *c, const struct nccl_job *j, struct nccl_step *s);
/* The next place in the buffers; the same on all members. */
void nccl_session_turn(struct nccl_session *c, struct nccl_job *j);
/* All members: how did it go?  When not well, the communicator is lost. */
int nccl_session_agree(struct nccl_session *c, const struct nccl_job *j, struct nccl_step *s,
                       double *longest, int *slowest, struct err *err);

/* nccl_check.c: the transport's check(). */
int nccl_check(void *session, enum op op, size_t bytes, struct err *err);

#endif
