/* rails_impl.h - state while uses, rails and planes of NICs are found. */
#ifndef RG_RAILS_IMPL_H
#define RG_RAILS_IMPL_H

#include "base/map.h"
#include "topo/net.h"
#include "topo/sources/net/rails.h"

struct rails {
    struct topo *t;
    struct net_nics of; /* sorted by name */
    int *near;          /* for each NIC: number of GPUs to which this NIC is the nearest */
    /* For each NIC: its part of the network; no cable joins parts; -1: unknown. */
    int *part;
    /* Number of RDMA NICs that are up, by name; and by name, link layer and rate. */
    struct map named, alike;
};

/* NICs of one host, sorted by name. */
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
