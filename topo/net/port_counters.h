/* port_counters.h - what a network port counts of its troubles, before and after a measurement.
 *
 * The files are those of Linux below /sys/class/infiniband/DEVICE/ports/PORT (counters,
 * hw_counters: Documentation/ABI/stable/sysfs-class-infiniband) and /sys/class/net/NAME
 * (statistics: Documentation/networking/statistics.rst; carrier_changes: Documentation/ABI/testing/
 * sysfs-class-net); which of them count, as what, and the source of each is one table in
 * port_counters.c.  They stay open, so that a look is one pread() a counter.  The kernel
 * keeps hw_counters for 10 ms: what happens right before a look may be seen by the next one. */
#ifndef RG_PORT_COUNTERS_H
#define RG_PORT_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>

#include "topo/host/nic.h"
#include "topo/topo.h"

enum port_kind {
    PORT_FAULT,      /* a link, or what it carried, was damaged */
    PORT_RESENT,     /* something was lost or late and had to be sent again */
    PORT_CONGESTION, /* how a loaded fabric works: no harm by itself */
    PORT_KINDS
};

/* Which port: as struct nic names it.  netdev: the interface whose statistics are the port's too;
 * "": none. */
struct port_id {
    char name[32], netdev[16];
    bool rdma;
};
struct port_id port_id_of(const struct nic *n);

struct port_counters;

/* The counters of this port below root ("" is the live machine) that are there, and a first look at
 * all of them; NULL when there is none. */
struct port_counters *port_counters_open(const char *root, const struct port_id *id);
void port_counters_close(struct port_counters *p);             /* NULL is fine */
const char *port_counters_name(const struct port_counters *p); /* "mlx5_2 port 1", "eth0" */
int port_counters_count(const struct port_counters *p);        /* files that are open */

/* Read the counters of faults and of what was resent; with `all` those of congestion, too.  One
 * that cannot be read keeps what it had.  One that is lower than it was has wrapped (32 bits) or
 * was reset, and then counted what it says. */
void port_counters_look(struct port_counters *p, bool all);
void port_counters_begin(struct port_counters *p); /* as of the last look */

/* What was counted up to the last look, in words, cut to len: "12 symbol errors, 1 link recovery";
 * false and "" when nothing was.  "at least 3 ..." of a counter that reached its end; "no longer
 * there" of a port none of whose counters can be read any more. */
bool port_counters_harm(const struct port_counters *p, char *text, size_t len); /* since begin */
bool port_counters_total(const struct port_counters *p, bool congestion, char *text, size_t len);
/* Counters that stand at their end since the port was opened, and will tell of nothing more. */
bool port_counters_full(const struct port_counters *p, char *text, size_t len);

#endif
