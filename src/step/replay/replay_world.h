/* replay_world.h - a replay from its options to its result, on all ranks of the MPI program. */
#ifndef RG_REPLAY_WORLD_H
#define RG_REPLAY_WORLD_H

#include "step/replay/replay_case.h"
#include "step/replay/replay_mpi.h"
#include "step/replay/replay_opts.h"

/* What rank 0 holds in the end. */
struct replay_outcome {
    struct job job;
    struct replay_case made;
    struct replay_result result;
};

/* Collective over the world.  Rank 0 reads the files, predicts, checks that each endpoint of the
 * matrix is the host of its rank (EXIT_CONFIG) and tells the others what to do.
 * replay_world_free() also after an error. */
int replay_world(struct replay_outcome *out, struct replay_opts *o, struct world *w,
                 struct err *err);
void replay_world_free(struct replay_outcome *out);

#endif
