/* verbs_port_impl.h - the NIC port that a rank uses, and the ports of the other ranks. */
#ifndef RG_VERBS_PORT_H
#define RG_VERBS_PORT_H

#include "measure/transports/verbs_opts.h"
#include "transport/verbs/verbs_gid_impl.h"
#include "transport/verbs/verbs_words_impl.h"
#include "watch/world.h"

/* --- choice of the port: a pure function --- */
struct verbs_candidate {
    char device[VERBS_NAME];
    int port, state; /* VERBS_PORT_... */
};
struct verbs_wish {
    const char *list;    /* --hca, or NULL */
    const char *filter;  /* NCCL_IB_HCA; NULL or "": every port.  Not with a list */
    const char *nearest; /* "mlx5_0", "mlx5_0:2" from the topology; "": none */
    int local;           /* index of this rank on its host */
};
/* Index of the candidate.  -1 with EXIT_CONFIG: names the port that is missing, or its state. */
int verbs_port_choose(const struct verbs_candidate *c, int n, const struct verbs_wish *w,
                      struct err *err);
const char *verbs_port_state(int state); /* "ACTIVE" */

/* --- open --- */

/* Data of a rank for the others, sent as bytes between equal programs. */
struct verbs_told {
    struct verbs_address address;
    char port[48]; /* "mlx5_2:1" */
    int mtu;       /* VERBS_MTU_...: active MTU */
    int reads_in, reads_out;
    uint32_t max_message;
};

struct verbs_port {
    struct verbs_hca *hca;
    struct verbs_pd *pd;
    struct verbs_device_attr device;
    struct verbs_port_attr attr;
    int number;
    uint16_t pkey_index;
    int rank, size;
    struct verbs_told *all; /* by rank */
};

/* Collective: open this rank's port, exchange port data, and check that neighbours can reach each
 * other.  nearest: nearest port of this rank. */
int verbs_port_open(struct verbs_port *p, const struct verbs_opts *o, const char *nearest,
                    struct world *w, struct err *err);
void verbs_port_close(struct verbs_port *p);
struct verbs_end verbs_port_end(const struct verbs_port *p, int rank);
/* Read pending device events, without waiting.  Returns -1 with a message if one ends the
 * measurement. */
int verbs_port_events(const struct verbs_port *p, struct err *err);
/* MTU between two ranks, VERBS_MTU_...; -1: the requested value is too large. */
int verbs_port_mtu(const struct verbs_told *a, const struct verbs_told *b, int asked,
                   struct err *err);

#endif
