/* nccl_cost.h - what connecting cost: a row a communicator, kept by its first member.
 *
 * connections.tsv: ranks, members, made (how often, evicted ones are made anew), init_s and
 * first_s (seconds of ncclCommInitRankConfig and of the first operation on the slowest member: the
 * longest of all times it was made), the slowest member of each, and what the first operation was.
 */
#ifndef RG_NCCL_COST_H
#define RG_NCCL_COST_H

#include <stddef.h>

#include "base/err.h"
#include "base/op.h"
#include "probe/world.h"

/* A communicator was made: its row. */
int nccl_cost_made(const int *members, int size, double sec, int slowest);
void nccl_cost_first(int row, enum op op, size_t bytes, double sec, int slowest);

/* Collective over w: rank 0 writes every member's rows to path and gets the sentence; see
 * nccl_conn_finish().  Forgets the rows. */
int nccl_cost_write(struct world *w, const char *path, char **words, struct err *err);

#endif
