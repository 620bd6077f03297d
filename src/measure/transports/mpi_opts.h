/* mpi_opts.h - options of the mpi transport. */
#ifndef RG_MPI_OPTS_H
#define RG_MPI_OPTS_H

#include "base/opt.h"

/* Below MPI_SMALL bytes the window is that of OSU's osu_bw, because with few messages in flight the
 * empty answer to each window would take half of the measured time. */
enum { MPI_SMALL = 64 << 10, MPI_SMALL_WINDOW = 64, MPI_WINDOW_MAX = 512 };

struct mpi_opts { /* zeros: defaults */
    int window;   /* messages in flight in pair_bw and pair_bibw; 0: by size */
    /* 1: use MPI_Reduce_scatter_block, which in Open MPI 4.1 has fewer algorithms than
     * MPI_Reduce_scatter (2 MiB on 2 ranks of a host: 2.2 ms instead of 0.6 ms) */
    int scatter_by_block;
};
int mpi_opts_window(const struct mpi_opts *o, size_t bytes);

/* --window and --reduce-scatter. */
extern const struct opt_set mpi_options;
extern struct mpi_opts mpi_opts_asked; /* values given on the command line */

#endif
