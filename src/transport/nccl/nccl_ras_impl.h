/* nccl_ras_impl.h - report of NCCL's own watchdog: a client of its RAS subsystem.
 *
 * Since 2.24 a thread of NCCL in each process answers on TCP port 28028 of localhost, or at
 * NCCL_RAS_ADDR ("host:port", "[IPv6]:port").  The protocol is lines of text (NCCL:
 * src/ras/client.cc, ras_internal.h): "CLIENT PROTOCOL 2" is answered by "SERVER PROTOCOL n",
 * "TIMEOUT seconds" by "OK", and "VERBOSE STATUS" by a report that ends with the connection.
 * Processes of a host share the port, also processes of other jobs: the report names hosts and
 * process ids. */
#ifndef RG_NCCL_RAS_H
#define RG_NCCL_RAS_H

enum { NCCL_RAS_MAX = 256 << 10 }; /* maximum bytes kept of a report */

/* Fetch the report: printable ASCII and line ends only, after a line that gives its origin.  A
 * report that is incomplete after `sec`, or too long, ends with a line that says so.  NULL if no
 * server of this protocol answers within `sec`.  The caller frees. */
char *nccl_ras_ask(double sec);

#endif
