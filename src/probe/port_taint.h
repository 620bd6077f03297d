/* port_taint.h - did a network port suffer while something was measured?
 *
 * The error counters of port_counters.h before and after each size, of every host once: a host's
 * ports are dealt out to its ranks.  Looked at are the NICs that the topology has for compute (all
 * that are up where it knows of none), and only where a campaign has several hosts.  What a host's
 * port counts taints each group that has this host and another one: which port a message took is
 * not known.  RAILGAUGE_COUNTERS names the folder that holds sys/; "off": nobody looks. */
#ifndef RG_PORT_TAINT_H
#define RG_PORT_TAINT_H

#include <stddef.h>

#include "probe/taint.h"

struct port_taint;

/* What one rank's ports tell of one size; sent as bytes between ranks. */
struct port_said {
    char port[40]; /* "mlx5_2 port 1"; "": nothing happened */
    char words[TAINT_TEXT];
    int more; /* other ports of this rank with troubles of their own */
};

/* Collective; the topology is rank 0's.  *out is NULL on every rank where there is nothing to look
 * at, which the others take. */
int port_taint_open(struct port_taint **out, struct world *w, const struct topo *t,
                    struct err *err);
void port_taint_close(struct port_taint *t);
void port_taint_begin(struct port_taint *t);
/* Collective: first all ranks wait for the one that measures longest. */
int port_taint_end(struct port_taint *t, struct port_said *said, struct err *err);
/* Rank 0, with what each rank said (stride bytes apart), which must stay while points are noted. */
void port_taint_hear(struct port_taint *t, const struct port_said *first, size_t stride);
void port_taint_mark(const struct port_taint *t, struct point *p, const int *members, int n);
/* Collective: rank 0 warns of what happened to any port during the whole campaign, and says where
 * there was congestion. */
int port_taint_report(struct port_taint *t, struct err *err);

#endif
