/* nccl_log.h - reader of one rank's NCCL debug log into its profile.
 *
 * Formats: NCCL 2.19 to 2.31 with NCCL_DEBUG=INFO and the subsystems INIT, GRAPH, NET, ENV, TUNING
 * (src/init.cc, transport/, graph/ of its releases).  Unknown lines are skipped.  One pass, a line
 * at a time; memory grows only with distinct facts, whose number is limited too. */
#ifndef RG_NCCL_LOG_H
#define RG_NCCL_LOG_H

#include "topo/nccl_profile.h"

/* Mark in a log: from byte `from` on the process used the communicator that NCCL prints as comm
 * 0x..., and lines that name no communicator belong to it. */
struct nccl_log_mark {
    long long from;
    unsigned long long comm;
};

/* Read a log into *out, which is overwritten; p->lines is the number of NCCL's lines.  Marks are
 * sorted by position; NULL: none.  The only error is a file that cannot be read (EXIT_NOINPUT). */
int nccl_log_read(struct nccl_profile *out, const char *path, const struct nccl_log_mark *mark,
                  int marks, struct err *err);
void nccl_log_parse(struct nccl_profile *out, const char *text, size_t len);

#endif
