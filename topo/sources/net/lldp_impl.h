/* lldp_impl.h - announcements of Ethernet switches to a host (LLDP, IEEE 802.1AB): switch and port at
 * the other end of each interface.  Reads the output of `lldpcli -f keyvalue show neighbors`, or
 * with -f json or json0 (man lldpcli). */
#ifndef RG_LLDP_H
#define RG_LLDP_H

#include "topo/topo.h"

enum { LLDP_BYTES_MAX = 4 << 20 };

/* Set leaf and leaf_port of NICs by their interface; if nothing else is known of the host, add a
 * NIC for each interface.  path "live": run lldpcli, which needs lldpd and permission to access it
 * (EXIT_NOINPUT).  EXIT_DATA with file, line and reason. */
int lldp_read(struct topo *t, int host, const char *path, struct err *err);
int lldp_parse(struct topo *t, int host, const char *text, size_t len, const char *path,
               struct err *err);

/* Declare the leaves of compute NICs from LLDP: hosts with the same leaves are one group.
 * Existing declarations are kept. */
void lldp_declare(struct topo *t);

#endif
