/* rails_impl.h - what is known while uses, rails and planes of NICs are found. */
#ifndef RG_RAILS_IMPL_H
#define RG_RAILS_IMPL_H

#include "topo/net/net.h"
#include "topo/net/rails.h"

struct rails {
    struct topo *t;
    struct net_nics of; /* by name */
    int *near;          /* GPUs whose nearest NIC it is, by NIC */
    int *part;          /* which of the networks that no cable joins, by NIC; -1: not known */
};

/* NICs of one host in the order of their names. */
struct rails_host {
    const struct rails *r;
    const int *nic;
    int nics;
};

static inline struct rails_host rails_host(const struct rails *r, int host)
{
    return (struct rails_host){r, r->of.nic + r->of.first[host],
                               r->of.first[host + 1] - r->of.first[host]};
}

static inline struct nic *rails_nic(const struct rails_host *v, int i)
{
    return &v->r->t->nic[v->nic[i]];
}

#endif
