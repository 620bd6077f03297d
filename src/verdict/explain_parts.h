/* explain_parts.h - the steps of explain_pair(); used by explain*.c only. */
#ifndef RG_EXPLAIN_PARTS_H
#define RG_EXPLAIN_PARTS_H

#include "topo/nccl/nccl_profile.h"
#include "verdict/explain.h"

void explain_say(struct texts *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* basis NULL: not known. */
void explain_hop(struct explain *e, double Bps, const char *basis, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void explain_way(struct explain *e, const struct topo *t);
void explain_net(struct explain *e, const struct topo *t, int from_nic, int to_nic);
void explain_odd(struct explain *e, const struct matrix *m, const struct topo *t,
                 const struct nccl_profile *p);

#endif
