/* slurm_runs.h - which blocks belong together: runs of neighbours that are near each other. */
#ifndef RG_EMIT_SLURM_RUNS_H
#define RG_EMIT_SLURM_RUNS_H

#include "cost/blocks.h"

struct slurm_runs {
    int *run; /* of each block, from 0 */
    int runs;
    double near, far; /* s: at most that inside of a run, at least that between; NAN: by spines */
};

/* Partitions of the blocks, the finest first, *parts of them: at every gap of the times between
 * blocks where near blocks are neighbours in one run and far ones are not.  Where times say
 * nothing: blocks below one spine; order[] (indices of blocks) then puts them side by side. */
struct slurm_runs *slurm_runs_make(int *parts, const struct blocks *b, int *order,
                                   const struct topo *t);
void slurm_runs_free(struct slurm_runs *p, int parts);

#endif
