/* mpi_ops.h - the operations of op.h as MPI calls on host memory, each done once; transport_mpi.c
 * times and checks them.
 *
 * Blocks over MPI_CHUNK bytes are sent as one element of a derived type, because counts of MPI 3.1
 * are int.  Reductions cannot use derived types and are done in slices of at most MPI_CHUNK bytes.
 * A sliced reduce_scatter takes part of every block from each slice, which moves and adds the same
 * bytes. */
#ifndef RG_MPI_OPS_H
#define RG_MPI_OPS_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/op.h"
#include "measure/transports/mpi_opts.h"
#include "measure/verify.h"

enum { MPI_CHUNK = 1 << 30 };

struct mpi_ctx {
    MPI_Comm comm;
    void *shared; /* communicator from world->enter(), with the members' clock */
    int self, size;
    int *member; /* endpoint ids; owned */
    char host[64];
    struct mpi_opts how;
    unsigned char *send, *recv; /* owned */
    size_t capacity;            /* largest S */
    size_t room;     /* bytes in each buffer: more than capacity for the windows of a pair */
    unsigned checks; /* number of data checks: seed of the next pattern */
    /* Repetitions of this pair operation within a sample; 0: not known yet. */
    int inner;
    enum op inner_op;
    size_t inner_bytes;
};

/* A prepared operation; only this is repeated while the clock runs. */
struct mpi_job {
    enum op op;
    size_t bytes;  /* S */
    size_t block;  /* bytes from one rank to another, or added; reductions: rounded up to 4 */
    size_t slice;  /* reduce_scatter: bytes of every block in one slice */
    size_t stride; /* distance between messages of a window; 0: they share one buffer */
    int messages;  /* pair ops: consecutive messages in one direction; latency: there and back */
    int slots;     /* messages with a slot of their own: all of a window, or 1 */
    MPI_Datatype type; /* type of one block */
    int count;
    bool derived;
    int *counts; /* reduce_scatter: each rank's part of a slice, then of the last slice; owned */
};

/* Run an operation once.  Returns MPI_SUCCESS or an MPI error code. */
typedef int mpi_call(struct mpi_ctx *c, const struct mpi_job *j);
extern mpi_call *const mpi_ops[OP_COUNT];

/* EXIT_UNJUDGED for a size that the buffers or the number of ranks do not allow. */
int mpi_job_make(struct mpi_job *j, const struct mpi_ctx *c, enum op op, size_t bytes,
                 struct err *err);
void mpi_job_free(struct mpi_job *j);

#endif
