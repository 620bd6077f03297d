/* SPDX-License-Identifier: BSD-3-Clause */
#include "measure/transports/mpi_opts.h"

#include "base/op.h"

/* Indexed by scatter_by_block. */
static const char *const scatter_word[] = {"counts", "block", NULL};

int mpi_opts_window(const struct mpi_opts *o, size_t bytes)
{
    return o->window ? o->window : bytes < MPI_SMALL ? MPI_SMALL_WINDOW : OP_PAIR_WINDOW;
}

static const struct opt rows[] = {
    {.help = "MPI (--transport mpi)", .group = "network"},
    {"window", 0, "N",
     "messages in flight in pair_bw and pair_bibw (default: 64 below 64K, else 4)",
     OPT_INT(struct mpi_opts, window, 1, MPI_WINDOW_MAX), .group = "network"},
    {"reduce-scatter", 0, "CALL",
     "call that is measured: counts (MPI_Reduce_scatter) or block (MPI_Reduce_scatter_block) "
     "(default counts)",
     OPT_WORD(struct mpi_opts, scatter_by_block, scatter_word), .group = "network"},
    {0},
};

struct mpi_opts mpi_opts_asked;
const struct opt_set mpi_options = {.rows = rows, .into = &mpi_opts_asked};
