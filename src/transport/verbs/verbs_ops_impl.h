/* verbs_ops_impl.h - the operations of op.h as requests to NICs.
 *
 *   pair_latency  write: the two write into each other's memory in turn, and the CPU polls the last
 *                 byte (like perftest's ib_write_lat), if the message is one packet or the library
 *                 guarantees that its bytes arrive in order; larger messages, and GPU memory, end
 *                 with an immediate and complete at the completion queue.  send: a receive
 *                 completes.  The result is half of the round trip.  read: members[1] reads, from
 *                 the request to the last byte; the result is the whole round trip
 *   pair_bw       a stream: verbs_opts_depth() messages are always under way, over all queue pairs
 *                 in turn; a sample is the time until the next few are done, divided by their
 *                 number, at the member that issues the requests (read: members[1])
 *   pair_bibw     both members do that at the same time
 *   sendrecv, all_to_all, all_gather
 *                 each rank writes or sends directly to (reads from) all others at once, starting
 *                 with the next rank; a rank is done when its own messages are acknowledged and
 *                 those of the others have arrived.  A rank's block to itself is not moved
 *
 * An acknowledged write has arrived at the peer's NIC.  It is certain to be in the peer's memory
 * only once a later message of the same queue pair has completed a receive there (InfiniBand
 * Architecture Specification, o9-20).  An immediate does that, and is used to verify data. */
#ifndef RG_VERBS_OPS_H
#define RG_VERBS_OPS_H

#include "base/op.h"
#include "transport/verbs/verbs_conn_impl.h"
#include <stdlib.h>

/* Transfer from one member to another. */
struct verbs_flow {
    int peer;     /* index */
    size_t mine;  /* offset in this rank's memory */
    size_t place; /* offset in the half of the peer's memory used for it */
    size_t bytes;
};

struct verbs_job {
    enum op op;
    size_t bytes, block;
    int window, part;             /* messages under way; messages per sample */
    struct verbs_flow *to, *from; /* at most one for each peer; owned */
    int n_to, n_from;
};

/* EXIT_UNJUDGED for operations that the members or their memory do not allow. */
int verbs_job_make(struct verbs_job *j, const struct verbs_conn *c, enum op op, size_t bytes,
                   struct err *err);
static inline void verbs_job_free(struct verbs_job *j)
{
    free(j->to);
    free(j->from);
}

/* Member whose clock is used and whose samples the others copy; -1: every member uses its own. */
int verbs_job_clock(const struct verbs_conn *c, enum op op);

/* Post receives for n samples, before the others may start; then run n samples.  Return 0, or -1
 * with c->err. */
int verbs_job_ready(struct verbs_conn *c, const struct verbs_job *j, int n);
int verbs_job_time(struct verbs_conn *c, const struct verbs_job *j, int n, double *sec);
/* Run once, and return after all data has arrived.  Call verbs_job_ready_once() first. */
int verbs_job_ready_once(struct verbs_conn *c, const struct verbs_job *j);
int verbs_job_once(struct verbs_conn *c, const struct verbs_job *j);

#endif
