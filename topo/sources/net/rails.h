/* rails.h - use of each NIC, and the rails and planes that the NICs of all hosts form.
 *
 * Compute NICs are those near GPUs, and others of the same kind; storage and management NICs
 * differ in speed or link, or use a separate network.  A rail consists of the NICs of all hosts at
 * the same position, and so on the same leaf or its counterpart in another unit.  A plane is one
 * of several networks that no cable joins.  NCCL finds neither rails nor planes; since 2.30 both
 * can be configured. */
#ifndef RG_RAILS_H
#define RG_RAILS_H

#include <stdio.h>

#include "topo/nic.h"
#include "topo/topo.h"

/* Set use, rail and plane of NICs with their sources (values already set by the user stay), leaf
 * (from LLDP) and rail of endpoints if not visible, and declare the leaves reported by LLDP.  Call
 * after all sources; repeated calls are harmless. */
void rails_find(struct topo *t);

/* Value for NCCL_IB_HCA, "=mlx5_0:1,mlx5_1:1", or with rail and plane for 2.30
 * "=mlx5_0:1:0:0,mlx5_1:1:1:0" (<hca>:<port>:<rail>:<plane>).  NULL: no compute NIC, or a rail is
 * unknown.  The caller frees. */
char *rails_ib_hca(const struct topo *t, int host, bool rails);
/* NCCL_SOCKET_IFNAME: "=eno1" for the bootstrap beside RDMA; without RDMA all compute NICs. */
char *rails_socket(const struct topo *t, int host);
/* "compute (sysfs), rail 3 (ibnet)": use, rail and plane with their sources.  The caller frees. */
char *rails_nic_text(const struct nic *n);
/* Print the NIC lines of discover_report(): uses and values, once for equal hosts. */
void rails_print(const struct topo *t, FILE *f);

#endif
