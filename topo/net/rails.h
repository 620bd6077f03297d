/* rails.h - what each NIC is there for, and which NICs of all hosts form a rail or a plane.
 *
 * Compute NICs are those near GPUs and all of their kind; storage and management NICs differ in
 * speed or link, or hang on a network of their own.  A rail is the NICs of all hosts that are at
 * the same position and so on the same leaf (or its like in another unit); a plane is one of
 * several networks that no cable joins.  NCCL does not find either: since 2.30 it can be told. */
#ifndef RG_RAILS_H
#define RG_RAILS_H

#include <stdio.h>

#include "topo/host/nic.h"
#include "topo/topo.h"

/* Fill use, rail and plane of NICs with their sources (what is set stays: the user's truth), of
 * endpoints leaf (from LLDP) and rail where they are not visible, and declare the leaves that LLDP
 * tells.  After all sources; again is harmless. */
void rails_find(struct topo *t);

/* Ready values for NCCL, the caller frees; NULL: nothing to say.  Plain
 * "=mlx5_0:1,mlx5_1:1", or with rail and plane for 2.30 "=mlx5_0:1:0:0,mlx5_1:1:1:0"
 * (NCCL_IB_HCA=<hca>:<port>:<rail>:<plane>); NULL where a rail is not known. */
char *rails_ib_hca(const struct topo *t, int host, bool rails);
/* NCCL_SOCKET_IFNAME: "=eno1" for the bootstrap beside RDMA, all compute NICs where TCP is all. */
char *rails_socket(const struct topo *t, int host);
/* "compute (sysfs), rail 3 (ibnet)": what is known of that with its sources, the caller frees. */
char *rails_nic_text(const struct nic *n);
/* The part of topo_print(): uses and values, once for hosts that are alike. */
void rails_print(const struct topo *t, FILE *f);

#endif
