/* verbs_ops.h - the operations of op.h as requests to NICs.
 *
 *   pair_latency  write: each writes into the other's memory in turn, and the CPU waits for the last
 *                 byte (as perftest's ib_write_lat), if the message is one packet or the library
 *                 says that its bytes arrive in order; larger ones, and GPU memory, end with an
 *                 immediate and are waited for at the completion queue.  send: a receive completes.
 *                 Half of the round trip.  read: members[1] reads, from the request to the last
 *                 byte: the whole round trip
 *   pair_bw       a stream: verbs_opts_depth() messages are under way all the time, over all queue
 *                 pairs in turn; a sample is the time until the next few of them are done, by their
 *                 number, at the member that asks for them (read: members[1])
 *   pair_bibw     both do that at the same time
 *   sendrecv, all_to_all, all_gather
 *                 each writes (sends, reads) straight to (from) all others at once, each beginning
 *                 with its next; a rank is done when what it sent is acknowledged and what the
 *                 others sent is there.  A rank's block to itself is not moved
 *
 * An acknowledged write has arrived at the peer's NIC; that it is in the peer's memory is known once
 * a later message of the same queue pair has completed a receive there (InfiniBand Architecture
 * Specification, o9-20), which is what an immediate does, and how data is verified. */
#ifndef RG_VERBS_OPS_H
#define RG_VERBS_OPS_H

#include "base/op.h"
#include "probe/verbs/verbs_conn.h"

/* What goes from one member to another. */
struct verbs_flow {
    int peer;     /* index */
    size_t mine;  /* where in this rank's memory */
    size_t place; /* where in the half of the peer's memory that it is for */
    size_t bytes;
};

struct verbs_job {
    enum op op;
    size_t bytes, block;
    int window, part;             /* messages under way; of a sample */
    struct verbs_flow *to, *from; /* of each peer at most one; owned */
    int n_to, n_from;
};

/* Refuses (EXIT_UNJUDGED) what the members or their memory do not allow. */
int verbs_job_make(struct verbs_job *j, const struct verbs_conn *c, enum op op, size_t bytes,
                   struct err *err);
void verbs_job_free(struct verbs_job *j);

/* The member that has the clock, whose samples the others take over; -1: everybody. */
int verbs_job_clock(const struct verbs_conn *c, enum op op);

/* Receives for n samples, before the others may begin; then n samples.  0, or -1 and c->err. */
int verbs_job_ready(struct verbs_conn *c, const struct verbs_job *j, int n);
int verbs_job_time(struct verbs_conn *c, const struct verbs_job *j, int n, double *sec);
/* Once, in such a way that all has arrived when it returns: verbs_job_ready_once() before. */
int verbs_job_ready_once(struct verbs_conn *c, const struct verbs_job *j);
int verbs_job_once(struct verbs_conn *c, const struct verbs_job *j);

#endif
