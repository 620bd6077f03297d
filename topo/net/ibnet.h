/* ibnet.h - an InfiniBand subnet: the text of ibnetdiscover, or the subnet itself.
 *
 * Text: what ibnetdiscover of infiniband-diags prints (infiniband-diags/ibnetdiscover.c of
 * rdma-core, with or without -g), and the bare style in which people write fabrics for ibsim
 * (ibsim/net-examples).  A record is `Switch|Ca|Hca|Rt PORTS "ID"` with one line a cabled port.
 * Comments are read for what only they tell: names, lids, width and speed.  Structure is strict:
 * each end of a cable must agree with the other, and each node have its record.
 *
 * Live: ibnd_discover_fabric() of libibnetdisc.so.5, loaded where it is (ibnet_impl.h).  It sends
 * subnet management packets, which takes /dev/infiniband/umadN. */
#ifndef RG_IBNET_H
#define RG_IBNET_H

#include <stddef.h>

#include "topo/net/net.h"

/* The row of topo/sources.c: path is a file, "live" (the first adapter and port that works),
 * "live:mlx5_0" or "live:mlx5_0:2".  Adds to t->net and declares leaves and spines (net_declare()).
 * EXIT_CONFIG in words: no library, no adapter, no permission. */
int ibnet_read(struct topo *t, int host, const char *path, struct err *err);

/* *n is made here; the caller has it.  text need not end with NUL; path is for messages. */
int ibnet_parse(struct net **n, const char *text, size_t len, const char *path, struct err *err);

/* A node that is a switch's own engine for reductions (SHARP), by its description or its device id
 * (0: not told). */
bool ibnet_aggregation(const char *name, long device_id);
/* A description as bounded ASCII: what terminals and JSON could stumble over becomes '?'. */
void ibnet_name(char name[65], const char *text, size_t len);

#endif
