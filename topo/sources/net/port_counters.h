/* port_counters.h - error counters of a network port, before and after a measurement.
 *
 * The files are those of Linux below /sys/class/infiniband/DEVICE/ports/PORT (counters,
 * hw_counters: Documentation/ABI/stable/sysfs-class-infiniband) and /sys/class/net/NAME
 * (statistics: Documentation/networking/statistics.rst; carrier_changes:
 * Documentation/ABI/testing/sysfs-class-net).  One table in port_counters.c lists the counters
 * used, their kinds and sources.  Files stay open, so that a reading is one pread() per counter.
 * The kernel caches hw_counters for 10 ms: an event right before a reading may appear in the next
 * one. */
#ifndef RG_PORT_COUNTERS_H
#define RG_PORT_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>

#include "topo/nic.h"
#include "topo/topo.h"

enum port_kind {
    PORT_FAULT,      /* a link, or its data, was damaged */
    PORT_RESENT,     /* data was lost or late and had to be sent again */
    PORT_CONGESTION, /* normal in a loaded fabric: no harm by itself */
    PORT_KINDS
};

/* Port, named as in struct nic.  netdev: interface with statistics of the port; "": none. */
struct port_id {
    char name[32], netdev[16];
    bool rdma;
};
struct port_id port_id_of(const struct nic *n);

struct port_counters;

/* Open and read the existing counters of a port below root ("": live machine); NULL: none exist. */
struct port_counters *port_counters_open(const char *root, const struct port_id *id);
void port_counters_close(struct port_counters *p);             /* NULL is allowed */
const char *port_counters_name(const struct port_counters *p); /* "mlx5_2 port 1", "eth0" */
int port_counters_count(const struct port_counters *p);        /* number of open files */

/* Read the counters of faults and resent data; if `all`, of congestion too.  A counter that cannot
 * be read keeps its value.  A counter below its last value has wrapped (32 bits), or was reset and
 * has counted its present value. */
void port_counters_look(struct port_counters *p, bool all);
void port_counters_begin(struct port_counters *p); /* starts at the last reading */

/* Counts up to the last reading in words, cut to len: "12 symbol errors, 1 link recovery"; false
 * and "" if there are none.  "at least 3 ...": the counter saturated; "no longer there": no
 * counter of the port can be read any more.  port_counters_harm(): since port_counters_begin(). */
bool port_counters_harm(const struct port_counters *p, char *text, size_t len);
bool port_counters_total(const struct port_counters *p, bool congestion, char *text, size_t len);
/* Counters that were saturated when the port was opened and cannot count further. */
bool port_counters_full(const struct port_counters *p, char *text, size_t len);

#endif
