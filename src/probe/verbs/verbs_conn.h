/* verbs_conn.h - the links of a group's members, what goes over them, and how waits end.
 *
 * Every wait looks in turn at what it waits for, at failed completions, at what the device told, at
 * the watch's verdict and at the other members' alarm (world_mpi.h).  Of several errors the one
 * that is nearest to the cause is told on all members: verbs_words_rank(). */
#ifndef RG_VERBS_CONN_H
#define RG_VERBS_CONN_H

#include "probe/transport.h"
#include "probe/verbs/verbs_link.h"

struct verbs_conn {
    const struct verbs_port *port;
    const struct verbs_opts *how;
    struct verbs_memory *memory;
    void *comm;
    int self, size;
    int *member;              /* ranks; owned */
    struct verbs_link **link; /* by index; NULL: this rank itself */
    bool broken;              /* on all members: to be connected anew */
    int failed;               /* how near to the cause this member's error is, plus 1; 0: none */
    int raised;               /* enum world_alarm */
    struct err err;
};

/* Collective, as all of these that take an err.  After a failure the group may be opened again. */
int verbs_conn_open(struct verbs_conn *c, const struct group *g, struct err *err);
void verbs_conn_close(struct verbs_conn *c);
/* Connected anew where a member had failed. */
int verbs_conn_mend(struct verbs_conn *c, struct err *err);
/* All members come here, also those that failed: the same error on all of them, or 0. */
int verbs_conn_together(struct verbs_conn *c, struct err *err);

/* --- this member alone: 0, or -1 and c->err --- */

struct verbs_message {
    int opcode; /* VERBS_WRITE, VERBS_WRITE_IMM (of the last piece), VERBS_SEND, VERBS_READ */
    size_t at;  /* of this rank's memory */
    uint64_t remote;
    uint32_t rkey;
    size_t bytes;
    bool counts; /* l->ended goes up when it is done */
};
int verbs_conn_post(struct verbs_conn *c, struct verbs_link *l, int lane,
                    const struct verbs_message *m);
/* So many messages will arrive over this lane: receives are posted, as many as have room, the rest
 * as they are filled. */
int verbs_conn_expect(struct verbs_conn *c, struct verbs_link *l, int lane, size_t at, size_t bytes,
                      long messages);
/* Take what is done off the queue: how much, or -1. */
int verbs_conn_look(struct verbs_conn *c, struct verbs_link *l);

struct verbs_wait {
    unsigned looks;
    double from, next;
};
/* Nothing came at this look: -1 where the wait shall end. */
int verbs_conn_idle(struct verbs_conn *c, struct verbs_wait *w);
/* This member's own error, in c->err, of this nearness to the cause. */
int verbs_conn_fail(struct verbs_conn *c, int rank);

#endif
