/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/mpi/mpi_opts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/op.h"
#include "base/opt.h"
#include "base/units.h"

enum { WINDOW = 0x6c0, SCATTER };

/* By scatter_by_block: the word and the call. */
static const char *const scatter_word[] = {"counts", "block"};
static const char *const scatter_call[] = {"MPI_Reduce_scatter", "MPI_Reduce_scatter_block"};

static const struct argp_option options[] = {
    {NULL, 0, NULL, 0, "Messages over MPI (--transport mpi):", 38},
    {"window", WINDOW, "N", 0,
     "messages in flight in pair_bw and pair_bibw (default 64 below 64K, else 4)", 38},
    {"reduce-scatter", SCATTER, "CALL", 0,
     "counts: MPI_Reduce_scatter (default), block: MPI_Reduce_scatter_block", 38},
    {0},
};

int mpi_opts_window(const struct mpi_opts *o, size_t bytes)
{
    return o->window ? o->window : bytes < MPI_SMALL ? MPI_SMALL_WINDOW : OP_PAIR_WINDOW;
}

const char *mpi_opts_scatter(const struct mpi_opts *o)
{
    return scatter_call[o->scatter_by_block];
}

static int take_scatter(struct mpi_opts *o, const char *word, struct err *err)
{
    for (int i = 0; i < 2; i++)
        if (!strcmp(word, scatter_word[i])) {
            o->scatter_by_block = i;
            return 0;
        }
    return err_usage(err, "\"%s\" is neither %s nor %s", word, scatter_word[0], scatter_word[1]);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct mpi_opts *o = state->input;
    struct err err = {0, ""};

    if (key != WINDOW && key != SCATTER)
        return ARGP_ERR_UNKNOWN;
    if ((key == WINDOW ? units_int(&o->window, arg, 1, MPI_WINDOW_MAX, &err)
                       : take_scatter(o, arg, &err)) == 0)
        return 0;
    opt_error(state, options, key, &err);
    return EINVAL;
}

const struct argp mpi_argp = {options, parse, NULL, NULL, NULL, NULL, NULL};

char **mpi_opts_words(const struct mpi_opts *o, int *count)
{
    char **w = NULL;

    *count = 0;
    if (o->window)
        MEM_PUSH(w, *count) = mem_printf("--window=%d", o->window);
    MEM_PUSH(w, *count) = mem_printf("--reduce-scatter=%s", scatter_word[o->scatter_by_block]);
    return w;
}

void mpi_opts_note(const struct mpi_opts *o)
{
    char *window = o->window ? mem_printf("%d messages", o->window)
                             : mem_printf("%d messages below %d bytes, else %d", MPI_SMALL_WINDOW,
                                          MPI_SMALL, OP_PAIR_WINDOW);

    json_provenance_add("pair_window", window);
    json_provenance_add("reduce_scatter", mpi_opts_scatter(o));
    free(window);
}
