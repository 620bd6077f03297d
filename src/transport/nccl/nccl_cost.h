/* nccl_cost.h - cost of connecting, kept apart from the cost of moving data: seconds of making each
 * communicator and of its first operation (NCCL connects peers lazily), on the slowest member.
 *
 * connections.tsv has a row per communicator:
 *
 *   ranks, members       "0-7"; a long list is cut with "..."
 *   made                 number of times: evicted communicators are made anew
 *   init_s               time to make the communicator on the slowest member, the longest of all
 *                        times; for a split the time of the call, which makes all pairs of a round
 *                        at once
 *   first_s              time of the first operation, likewise; first_op, first_bytes: that
 *                        operation
 *   init_slowest ...     the slowest member of each
 *   how                  own: ncclCommInitRankConfig of its members; split: ncclCommSplit of the
 *                        communicator of all ranks; shared: messages of a pair on the communicator
 *                        of all ranks, made at no cost */
#ifndef RG_NCCL_COST_H
#define RG_NCCL_COST_H

#include <stddef.h>

#include "base/err.h"
#include "base/op.h"
#include "watch/world.h"

enum nccl_way { NCCL_OWN, NCCL_SPLIT, NCCL_SHARED, NCCL_WAYS };
extern const char *const nccl_way_name[NCCL_WAYS + 1]; /* ends with NULL */

/* Called by the first member; nccl_cost_made() returns the row. */
int nccl_cost_made(const int *members, int size, enum nccl_way way, double sec, int slowest);
void nccl_cost_first(int row, enum op op, size_t bytes, double sec, int slowest);
/* Called by every rank: one ncclCommSplit of all ranks. */
void nccl_cost_split(double sec);
/* Collective over w, once.  Rank 0 writes the table to `path` (TSV) unless path is empty.  *words
 * gets a sentence ("" if nothing was connected); the caller frees. */
int nccl_cost_finish(struct world *w, const char *path, char **words, struct err *err);

#endif
