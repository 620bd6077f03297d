/* rails_parts.h - what the parts of rails*.c share; nobody else includes it. */
#ifndef RG_RAILS_PARTS_H
#define RG_RAILS_PARTS_H

#include "topo/net/rails.h"

/* NICs by host, each host's in the order of names. */
struct rails {
    struct topo *t;
    int *order, *first; /* NICs of host h: order[first[h]] ... order[first[h + 1] - 1] */
    int *near;          /* GPUs whose nearest NIC it is, by NIC */
    int *part;          /* which of the networks that no cable joins, by NIC; -1: not known */
};

void rails_order(struct rails *r); /* t is set: order and first */
void rails_uses(struct rails *r);  /* nic.use and why */
void rails_rails(struct rails *r); /* nic.rail and plane */
void rails_lldp(struct rails *r);  /* claims of leaves */

#endif
