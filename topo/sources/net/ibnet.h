/* ibnet.h - reader of an InfiniBand subnet: the text of ibnetdiscover, or the live subnet.
 *
 * Text: output of ibnetdiscover of infiniband-diags (infiniband-diags/ibnetdiscover.c of
 * rdma-core, with or without -g), and the bare style used to describe fabrics for ibsim
 * (ibsim/net-examples).  A record is `Switch|Ca|Hca|Rt PORTS "ID"` with one line per cabled port.
 * Comments are read only for facts that stand nowhere else: names, lids, width and speed.
 * Structure is strict: both ends of a cable must agree, and each node must have its record.
 *
 * Live: ibnd_discover_fabric() of libibnetdisc.so.5, loaded if present (ibnet_impl.h).  It sends
 * subnet management packets, which needs access to /dev/infiniband/umadN. */
#ifndef RG_IBNET_H
#define RG_IBNET_H

#include <stddef.h>

#include "topo/net.h"

/* Row of topo/sources/sources.c.  path: a file, "live" (the first NIC and port that works), "live:mlx5_0"
 * or "live:mlx5_0:2".  Adds to t->net and declares leaves and spines (net_declare()).
 * EXIT_CONFIG: no library, no NIC, or no permission. */
int ibnet_read(struct topo *t, int host, const char *path, struct err *err);

/* Parse text into a new *n, owned by the caller.  text may lack a NUL; path is for messages. */
int ibnet_parse(struct net **n, const char *text, size_t len, const char *path, struct err *err);

/* True for a switch's own aggregation engine (SHARP), by description or device id (0: unknown). */
bool ibnet_aggregation(const char *name, long device_id);
/* Copy a description as bounded ASCII: characters unsafe for terminals or JSON become '?'. */
void ibnet_name(char name[65], const char *text, size_t len);

#endif
