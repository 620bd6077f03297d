/* nccl_log.h - one rank's NCCL debug log into its profile.
 *
 * Formats: NCCL 2.19 to 2.31 with NCCL_DEBUG=INFO and the subsystems INIT, GRAPH, NET, ENV, TUNING
 * (src/init.cc, transport/, graph/ of its releases).  What is not known is skipped.  One pass, a
 * line at a time; memory grows with distinct facts only, which are limited too. */
#ifndef RG_NCCL_LOG_H
#define RG_NCCL_LOG_H

#include "topo/nccl/nccl_profile.h"

enum {
    NCCL_LOG_LINE_MAX = 8192, /* of a longer line the rest is skipped */
    NCCL_COMMS_MAX = 1 << 16,
    NCCL_LINKS_MAX = 1 << 20,
    NCCL_CHOICES_MAX = 1 << 14,
    NCCL_NICS_MAX = 256,
    NCCL_RANKS_MAX = 1 << 20
};

/* From this byte of the log on the process worked with the communicator whose address NCCL writes
 * as comm 0x...: what says no communicator is of this one. */
struct nccl_log_mark {
    long long from;
    unsigned long long comm;
};

/* *out is overwritten; p->lines says how many lines were NCCL's.  Marks by their place, NULL: none.
 * Only a file that cannot be read is an error (EXIT_NOINPUT). */
int nccl_log_read(struct nccl_profile *out, const char *path, const struct nccl_log_mark *mark,
                  int marks, struct err *err);
void nccl_log_parse(struct nccl_profile *out, const char *text, size_t len);

#endif
