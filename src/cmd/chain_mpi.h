/* chain_mpi.h - the steps of a chain that the MPI program takes: its words, its launch, and its
 * exit code, which becomes the error's. */
#ifndef RG_CHAIN_MPI_H
#define RG_CHAIN_MPI_H

#include "cmd/chain.h"

/* The program with these words (NULL-terminated), called `what` in the error. */
int chain_mpi(struct chain *c, const char *const *args, const char *what, struct err *err);
/* The same with `fixed` and the measuring options; its command line goes to `stream` first (a FILE,
 * NULL: it does not). */
int chain_mpi_probe(struct chain *c, const char *const *fixed, void *stream, const char *what,
                    struct err *err);
/* That command line alone; nothing is started. */
int chain_mpi_print(struct chain *c, const char *const *fixed, void *stream, struct err *err);
/* What each GPU does alone, into path; `last` is NULL or one more word. */
int chain_mpi_compute(struct chain *c, const char *path, const char *last, struct err *err);

#endif
