/* verbs_conn_impl.h - links of a group's members, messages over them, and the ends of waits.
 *
 * Every wait polls in turn the event, failed completions, device events, the verdict of the watch
 * and the alarm of the other members (world_mpi.h).  If several members have errors, all report the
 * one nearest to the cause: verbs_words_rank(). */
#ifndef RG_VERBS_CONN_H
#define RG_VERBS_CONN_H

#include "measure/transports/transport.h"
#include "transport/verbs/verbs_link_impl.h"

struct verbs_conn {
    const struct verbs_port *port;
    const struct verbs_opts *how;
    struct verbs_memory *memory;
    void *comm;
    int self, size;
    int *member;              /* ranks; owned */
    struct verbs_link **link; /* by index; NULL: this rank */
    bool broken;              /* on all members: must be reconnected */
    int failed;               /* distance of this member's error from the cause, plus 1; 0: none */
    int raised;               /* enum world_alarm */
    struct err err;
};

/* Collective, like all of these functions with an err.  After a failure the group may be opened
 * again. */
int verbs_conn_open(struct verbs_conn *c, const struct group *g, struct err *err);
void verbs_conn_close(struct verbs_conn *c);
/* Reconnect if a member had failed. */
int verbs_conn_mend(struct verbs_conn *c, struct err *err);
/* Called by all members, also those that failed.  Returns 0, or the same error on all of them. */
int verbs_conn_together(struct verbs_conn *c, struct err *err);

/* --- this member only: return 0, or -1 with c->err --- */

struct verbs_message {
    int opcode; /* VERBS_WRITE, VERBS_WRITE_IMM (on the last piece), VERBS_SEND, VERBS_READ */
    size_t at;  /* offset in this rank's memory */
    uint64_t remote;
    uint32_t rkey;
    size_t bytes;
    bool counts; /* completion increments l->ended */
};
int verbs_conn_post(struct verbs_conn *c, struct verbs_link *l, int lane,
                    const struct verbs_message *m);
/* Expect this number of messages on a lane.  As many receives as have room are posted, the others
 * when earlier ones complete. */
int verbs_conn_expect(struct verbs_conn *c, struct verbs_link *l, int lane, size_t at, size_t bytes,
                      long messages);
/* Poll the completion queue.  Returns the number of completions, or -1. */
int verbs_conn_look(struct verbs_conn *c, struct verbs_link *l);

struct verbs_wait {
    unsigned looks;
    double from, next;
};
/* Call after a poll without result.  Returns -1 if the wait must end. */
int verbs_conn_idle(struct verbs_conn *c, struct verbs_wait *w);
/* Set this member's own error, in c->err, with its distance from the cause.  Returns -1. */
int verbs_conn_fail(struct verbs_conn *c, int rank);

#endif
