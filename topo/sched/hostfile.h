/* hostfile.h - the hosts that ranks start on, and how many on each.
 *
 * --hosts is a host list, where each name may end in ":N", or a host file as mpirun reads it: a
 * line "node01 slots=8" (or "node01:8", or "node01") a host, "#" begins a comment.  What holds a
 * "/" or is the name of a file here is a file. */
#ifndef RG_HOSTFILE_H
#define RG_HOSTFILE_H

#include "base/err.h"

struct hostfile {
    char **host; /* owned, as is slot */
    int *slot;   /* ranks of each; 0: not said */
    int hosts;
};

/* EXIT_DATA with the item or "file:line" for what is no host or no number of ranks, EXIT_NOINPUT
 * for a file that is not there. */
int hostfile_read(struct hostfile *s, const char *hosts, struct err *err);
void hostfile_free(struct hostfile *s);

/* Say how many ranks start on each host, and how many that are in all (*ranks).  Where no host has
 * a number, *ranks are dealt out evenly, one a host if 0; else a host without one has one, and
 * *ranks, if not 0, fill the hosts in their order.  EXIT_USAGE when they are more than fit. */
int hostfile_deal(struct hostfile *s, int *ranks, struct err *err);

#endif
