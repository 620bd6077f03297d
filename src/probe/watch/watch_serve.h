/* watch_serve.h - a listener in a process of its own, for ranks that nobody watches. */
#ifndef RG_WATCH_SERVE_H
#define RG_WATCH_SERVE_H

#include "base/err.h"
#include "probe/watch/watch_net.h"

/* Start `railgauge-probe watch HANG_AFTER [DIR]` on a socket that is bound here to `address` (NULL:
 * chosen by the hosts of all ranks).  It leaves the process group, so that what ends rank 0 does
 * not end it, says its verdict on stderr, and ends when all ranks have gone.  No fork(): the
 * memory of an MPI program may be registered with devices. */
int serve_spawn(const char *address, char *const *hosts, int n, double hang_after, const char *dir,
                char where[WATCH_WHERE], struct err *err);

/* That program, before MPI_Init: argv is {"watch", HANG_AFTER[, DIR]}.  Returns its exit code. */
int serve_main(int argc, char **argv);

#endif
