/* nccl_ras.h - what NCCL's own watchdog says: a client of its RAS subsystem.
 *
 * Since 2.24 a thread of NCCL in each process answers on TCP port 28028 of localhost, or where
 * NCCL_RAS_ADDR ("host:port", "[IPv6]:port") says.  Lines of text (NCCL: src/ras/client.cc,
 * ras_internal.h): "CLIENT PROTOCOL 2" is answered by "SERVER PROTOCOL n", "TIMEOUT seconds" by
 * "OK", and "VERBOSE STATUS" by a report that ends with the connection.  Processes of a host share
 * the port, also those of another job: the report names hosts and process ids. */
#ifndef RG_NCCL_RAS_H
#define RG_NCCL_RAS_H

enum { NCCL_RAS_MAX = 256 << 10 }; /* bytes of a report that are kept */

/* The report of whoever answers there, printable ASCII and line ends only, after a line that says
 * where it came from; the caller frees.  NULL when nobody of that protocol answers within `sec`; a
 * report that is not whole by then, or too long, ends with a line that says so. */
char *nccl_ras_ask(double sec);

#endif
