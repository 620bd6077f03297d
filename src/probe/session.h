/* session.h - an open transport on a group, reused while consecutive rounds have the same members.
 */
#ifndef RG_SESSION_H
#define RG_SESSION_H

#include "probe/plan.h"
#include "probe/transport.h"
#include "probe/world.h"

struct session {
    struct world *world; /* these two are the caller's */
    const struct transport *transport;
    struct group group;
    void *ctx;        /* the transport's; NULL: closed */
    size_t max_bytes; /* that ctx was opened for */
    double *sec;      /* room for samples of this rank and of the slowest */
    double *slow;
    int room;
    double pace; /* s a byte of the last run, 0: none yet; what a slow one may take comes from it */
    enum op pace_op;
};

/* Open on group g of round r.  Collective over its members, who fail together. */
int session_open(struct session *s, const struct round *r, int g, int epoch, size_t max_bytes,
                 struct err *err);
/* Open, and on exactly these members in this order? */
bool session_same(const struct session *s, const struct plan_group *g);
void session_close(struct session *s); /* the room for samples stays: session_free() */
void session_free(struct session *s);

#endif
