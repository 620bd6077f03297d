/* watch_net.h - addresses and sockets of the side channel. */
#ifndef RG_WATCH_NET_H
#define RG_WATCH_NET_H

#include "base/err.h"
#include "probe/watch/watch_wire.h"

enum { WATCH_WHERE = 128 }; /* room for "ADDRESS:PORT:TOKEN" */

/* A listening socket (not blocking, closed on exec) on a free port of this numeric address, and
 * where it is, with a token that nobody can guess (128 bits of getrandom).  -1 with EXIT_CONFIG. */
int net_bind(const char *address, char where[WATCH_WHERE], struct err *err);

/* A connection there within `sec`, not blocking from then on; -1 with the reason. */
int net_connect(const struct watch_where *w, double sec, struct err *err);

/* The address of this machine that reaches `host` ("": whatever lies beyond the default route), as
 * a number; -1 when there is no way. No packet is sent. */
int net_address(const char *host, char out[64]);

#endif
