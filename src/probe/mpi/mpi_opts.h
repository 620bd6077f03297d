/* mpi_opts.h - how the mpi transport does what can be done in several ways. */
#ifndef RG_MPI_OPTS_H
#define RG_MPI_OPTS_H

#include "base/opt.h"

/* A window below MPI_SMALL bytes is that of OSU's osu_bw: with few messages in flight the empty
 * answer to each window would be half of what is measured. */
enum { MPI_SMALL = 64 << 10, MPI_SMALL_WINDOW = 64, MPI_WINDOW_MAX = 512 };

struct mpi_opts {         /* zero: the defaults */
    int window;           /* messages in flight in pair_bw and pair_bibw; 0: by size */
    int scatter_by_block; /* 1: reduce_scatter by MPI_Reduce_scatter_block, which in Open MPI 4.1 has
                            * fewer algorithms than MPI_Reduce_scatter (2 MiB on 2 ranks of a host:
                            * 2.2 ms, not 0.6) */
};
int mpi_opts_window(const struct mpi_opts *o, size_t bytes);

/* --window and --reduce-scatter. */
extern const struct opt_set mpi_options;
extern struct mpi_opts mpi_opts_asked; /* what they said */

#endif
