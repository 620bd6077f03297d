/* lldp.h - what Ethernet switches announce to a host (LLDP, IEEE 802.1AB): which switch and port is
 * at the other end of each interface; as `lldpcli -f keyvalue show neighbors` prints it, or with -f
 * json or json0 (man lldpcli). */
#ifndef RG_LLDP_H
#define RG_LLDP_H

#include "topo/topo.h"

enum { LLDP_BYTES_MAX = 4 << 20 };

/* path "live": lldpcli is run, for which lldpd must be there and the user may speak to it
 * (EXIT_NOINPUT).  Fills leaf and leaf_port of NICs by their interface; a host of which nothing
 * else is known gets a NIC for each.  EXIT_DATA with file, line and reason. */
int lldp_read(struct topo *t, int host, const char *path, struct err *err);
int lldp_parse(struct topo *t, int host, const char *text, size_t len, const char *path,
               struct err *err);

/* Declares the leaves of compute NICs, as LLDP told them: hosts with the same ones are one group.
 * What was declared before stays. */
void lldp_declare(struct topo *t);

#endif
