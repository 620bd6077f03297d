/* verbs_link.h - reliable connected queue pairs to one peer.  A link stays for the next group that
 * has the same peer.
 *
 * How queue pairs are connected is told over the group's communicator of MPI, which is there anyway;
 * librdmacm would need an address of IP on every port, and would choose port and GID by it, which
 * here are the topology's and the user's to choose. */
#ifndef RG_VERBS_LINK_H
#define RG_VERBS_LINK_H

#include "probe/verbs/verbs_memory.h"

/* Receives that wait to be posted: `left` of them, for messages of `bytes` bytes to `at`, in pieces
 * of the port's largest message; of bytes 0: for what only announces a write. */
struct verbs_expected {
    size_t at, bytes, next;
    long left;
};

struct verbs_lane { /* a queue pair */
    struct verbs_qp *qp;
    uint32_t theirs; /* the peer's number, once it is connected; 0: not */
    unsigned posted, done, silent;
    int recvs; /* posted and not completed */
    struct verbs_expected expected;
};

struct verbs_link {
    int peer; /* rank */
    struct verbs_cq *cq;
    struct verbs_lane lane[VERBS_QPS_MAX];
    int lanes, sends, recvs; /* of each: how many requests it has room for */
    unsigned inline_bytes;
    bool in_order;        /* the last byte of a message arrives last, whatever its length */
    uint32_t max_message; /* of both ports */
    int mtu;              /* bytes */
    struct verbs_path path;
    struct verbs_ece ece;
    /* The peer's memory, while a group is open. */
    uint64_t remote;
    size_t remote_room;
    uint32_t rkey, landing_rkey;
    unsigned long ended, arrived; /* messages sent, receives filled */
};

/* What one end tells the other; bytes between equal programs. */
struct verbs_card {
    uint32_t psn;
    struct verbs_ece ece;
    struct {
        uint32_t number, theirs;
    } lane[]; /* of each of --qps */
};

/* Requests that a message of so many bytes takes; one of none takes one. */
long verbs_link_pieces(const struct verbs_link *l, size_t bytes);
/* The link to this rank, made unless it is there. */
int verbs_link_get(struct verbs_link **out, const struct verbs_port *p, const struct verbs_opts *o,
                   int peer, struct err *err);
void verbs_link_close_all(void);
/* Nothing is posted any more, and it has to be connected anew. */
int verbs_link_reset(struct verbs_link *l, const struct verbs_port *p, struct err *err);
void verbs_link_tell(const struct verbs_link *l, struct verbs_card *c);
/* Do both cards say that they are connected to each other? */
bool verbs_link_stands(const struct verbs_link *l, const struct verbs_card *theirs);
/* `ece` is what the other end offered or agreed to; vendor 0: nothing. */
int verbs_link_connect(struct verbs_link *l, const struct verbs_port *p, const struct verbs_opts *o,
                       const struct verbs_card *mine, const struct verbs_card *theirs,
                       const struct verbs_ece *ece, struct err *err);

#endif
