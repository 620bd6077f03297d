/* verbs_link_impl.h - reliable connected queue pairs to a peer.  A link stays open for the next group
 * with the same peer.
 *
 * Connection data is exchanged over the group's MPI communicator, which exists anyway.  librdmacm
 * would need an IP address on every port and would choose port and GID by it, but here topology and
 * user choose them. */
#ifndef RG_VERBS_LINK_H
#define RG_VERBS_LINK_H

#include "transport/verbs/verbs_memory_impl.h"

/* Receives to be posted: `left` of them, for messages of `bytes` bytes at `at`, in pieces of the
 * port's largest message.  bytes 0: they only announce a write. */
struct verbs_expected {
    size_t at, bytes, next;
    long left;
};

struct verbs_lane { /* a queue pair */
    struct verbs_qp *qp;
    uint32_t theirs; /* number of the peer's queue pair; 0: not connected */
    unsigned posted, done, silent;
    int recvs; /* posted receives that are not completed */
    struct verbs_expected expected;
};

struct verbs_link {
    int peer; /* rank */
    struct verbs_cq *cq;
    struct verbs_lane lane[VERBS_QPS_MAX];
    int lanes, sends, recvs; /* lanes, and requests that each has room for */
    unsigned inline_bytes;
    bool in_order;        /* the last byte of a message arrives last, whatever its length */
    uint32_t max_message; /* smaller value of the two ports */
    int mtu;              /* bytes */
    struct verbs_path path;
    struct verbs_ece ece;
    /* Memory of the peer, while a group is open. */
    uint64_t remote;
    size_t remote_room;
    uint32_t rkey, landing_rkey;
    unsigned long ended, arrived; /* messages sent, receives filled */
};

/* Data sent from one end to the other, as bytes between equal programs. */
struct verbs_card {
    uint32_t psn;
    struct verbs_ece ece;
    struct {
        uint32_t number, theirs;
    } lane[]; /* one entry for each of --qps */
};

/* Number of requests for a message of this size; one for an empty message. */
long verbs_link_pieces(const struct verbs_link *l, size_t bytes);
/* Get the link to this rank; make it if there is none. */
int verbs_link_get(struct verbs_link **out, const struct verbs_port *p, const struct verbs_opts *o,
                   int peer, struct err *err);
void verbs_link_close_all(void);
/* Return to an unconnected state, with nothing posted. */
int verbs_link_reset(struct verbs_link *l, const struct verbs_port *p, struct err *err);
void verbs_link_tell(const struct verbs_link *l, struct verbs_card *c);
/* True if both cards show that they are connected to each other. */
bool verbs_link_stands(const struct verbs_link *l, const struct verbs_card *theirs);
/* Connect; `ece` is the offer or the agreement of the other end; vendor 0: none. */
int verbs_link_connect(struct verbs_link *l, const struct verbs_port *p, const struct verbs_opts *o,
                       const struct verbs_card *mine, const struct verbs_card *theirs,
                       const struct verbs_ece *ece, struct err *err);

#endif
