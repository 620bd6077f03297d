/* hostfile.h - hosts that ranks start on, and the number of ranks on each.
 *
 * --hosts takes a host list, in which each name may end in ":N", or a host file as mpirun reads
 * it: one host per line, "node01 slots=8" (or "node01:8", or "node01"), comments after "#".  An
 * argument that contains "/" or names an existing file is a file. */
#ifndef RG_HOSTFILE_H
#define RG_HOSTFILE_H

#include "base/err.h"

struct hostfile {
    char **host; /* owned, like slot */
    int *slot;   /* ranks on each host; 0: not stated */
    int hosts;
};

/* Errors: EXIT_DATA with the item or "file:line" for a bad host or number of ranks, EXIT_NOINPUT
 * for a missing file. */
int hostfile_read(struct hostfile *s, const char *hosts, struct err *err);
void hostfile_free(struct hostfile *s);

/* Set the number of ranks on each host and the total, *ranks.  If no host has a number, *ranks are
 * spread evenly, one per host if 0.  Else a host without a number gets one rank, and *ranks, if
 * not 0, fill the hosts in order.  EXIT_USAGE if they do not fit. */
int hostfile_deal(struct hostfile *s, int *ranks, struct err *err);

#endif
