/* pipeline.h - the order in which a pipeline stage works, and how long that takes with messages
 * that cost something.
 *
 * 1F1B and its interleaved form (Narayanan et al. 2021, 2.2; Megatron-LM
 * core/pipeline_parallel/schedules.py): p stages, v chunks a stage, m microbatches.  The chunk c of
 * stage s is part c p + s of the model. */
#ifndef RG_PIPELINE_H
#define RG_PIPELINE_H

#include <stdbool.h>

struct pipeline {
    int stages, chunks, microbatches; /* p, v, m; v above 1 needs m to be a multiple of p */
};

struct unit {
    int microbatch, chunk;
    bool backward;
};

/* What stage `stage` works on, in order: 2 m v units; the caller frees. */
struct unit *pipeline_units(const struct pipeline *p, int stage);

/* Where the input of a unit comes from (or, with `to`, its output goes): the stage and, unless
 * NULL, the chunk there; -1: it is the end of the model. */
int pipeline_peer(const struct pipeline *p, int stage, const struct unit *u, bool to, int *chunk);

/* Seconds until the last stage has done its last unit: `forward` and `backward` seconds a unit, and
 * `message` seconds from the end of a unit until its output is there; messages run beside the work,
 * in each direction one after another. */
double pipeline_time(const struct pipeline *p, double forward, double backward, double message);

#endif
