/* verbs_port.h - the one port of one NIC that a rank uses, and what the ranks know of each other's. */
#ifndef RG_VERBS_PORT_H
#define RG_VERBS_PORT_H

#include "probe/verbs/verbs_gid.h"
#include "probe/verbs/verbs_opts.h"
#include "probe/verbs/verbs_words.h"
#include "probe/world.h"

/* --- which: a pure function --- */
struct verbs_candidate {
    char device[VERBS_NAME];
    int port, state; /* VERBS_PORT_... */
};
struct verbs_wish {
    const char *list;    /* --hca, or NULL */
    const char *nearest; /* "mlx5_0", "mlx5_0:2" of the topology; "": none */
    int local;           /* this rank's place among those of its host */
};
/* The candidate's index.  -1: EXIT_CONFIG says which port is not there or in which state it is. */
int verbs_port_choose(const struct verbs_candidate *c, int n, const struct verbs_wish *w,
                      struct err *err);
const char *verbs_port_state(int state); /* "ACTIVE" */

/* --- open --- */

/* What a rank tells the others; bytes between equal programs. */
struct verbs_told {
    struct verbs_address address;
    char port[48]; /* "mlx5_2:1" */
    int mtu;       /* VERBS_MTU_...: active */
    int reads_in, reads_out;
    uint32_t max_message;
};

struct verbs_port {
    struct verbs_hca *hca;
    struct verbs_pd *pd;
    struct verbs_device_attr device;
    struct verbs_port_attr attr;
    int number;
    int rank, size;
    struct verbs_told *all; /* by rank */
};

/* Collective: opens this rank's port, trades what each tells, and sees that neighbours can meet.
 * nearest: this rank's. */
int verbs_port_open(struct verbs_port *p, const struct verbs_opts *o, const char *nearest,
                    struct world *w, struct err *err);
void verbs_port_close(struct verbs_port *p);
struct verbs_end verbs_port_end(const struct verbs_port *p, int rank);
/* What the device told since, without waiting: -1 where it ends the measurement, in words. */
int verbs_port_events(const struct verbs_port *p, struct err *err);
/* The MTU between two ranks, VERBS_MTU_...; -1: what was asked for is too much. */
int verbs_port_mtu(const struct verbs_told *a, const struct verbs_told *b, int asked,
                   struct err *err);

#endif
