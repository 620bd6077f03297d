/* nccl_cost.h - what connecting cost, kept apart from what moving data costs: seconds of making
 * each communicator and of its first operation (NCCL connects peers lazily), of the slowest member.
 *
 * connections.tsv has a row a communicator:
 *
 *   ranks, members       "0-7"; a long list is cut with "..."
 *   made                 how often: evicted ones are made anew
 *   init_s               making it on the slowest member, the longest time of all; by a split the
 *                        time of the call, which makes all pairs of a round at once
 *   first_s              its first operation, the same; first_op, first_bytes: what that was
 *   init_slowest ...     the slowest member of each
 *   how                  own: ncclCommInitRankConfig of its members; split: ncclCommSplit of that
 *                        of all ranks; shared: a pair's messages on that of all, made for nothing */
#ifndef RG_NCCL_COST_H
#define RG_NCCL_COST_H

#include <stddef.h>

#include "base/err.h"
#include "base/op.h"
#include "probe/world.h"

enum nccl_way { NCCL_OWN, NCCL_SPLIT, NCCL_SHARED, NCCL_WAYS };
extern const char *const nccl_way_name[NCCL_WAYS + 1]; /* NULL ends it */

/* By the first member; returns the row. */
int nccl_cost_made(const int *members, int size, enum nccl_way way, double sec, int slowest);
void nccl_cost_first(int row, enum op op, size_t bytes, double sec, int slowest);
/* By every rank: one ncclCommSplit of all. */
void nccl_cost_split(double sec);
/* Collective over w, once: rank 0 writes the table to `path` (TSV) unless it is empty, and *words,
 * which the caller frees, gets a sentence ("" when nothing was connected). */
int nccl_cost_finish(struct world *w, const char *path, char **words, struct err *err);

#endif
