/* pipeline.h - the order in which a pipeline stage works, and how long that takes with messages
 * that cost something.
 *
 * 1F1B and its interleaved form (Narayanan et al. 2021, 2.2; Megatron-LM
 * core/pipeline_parallel/schedules.py): p stages, v chunks a stage, m microbatches.  The chunk c of
 * stage s is part c p + s of the model. */
#ifndef RG_PIPELINE_H
#define RG_PIPELINE_H

#include <stdbool.h>

#include "step/recipe.h"

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

/* --- every schedule, without messages --- *
 *
 *   zb-h1, zb-h2  Qi et al. 2023, 3: p-1-s or twice as many forwards first, weights' gradients s or
 *                 2 s microbatches later on stage s.  Their bubbles are (p-1)(F+B-W), with
 *                 (p-1)(F+B-2W), B without W, where W takes no longer than B
 *   dualpipe      DeepSeek, DualPipe, dualpipe/dualpipe.py, its eight steps; a forward and a backward
 *                 that overlap begin and end together.  p even, m even and at least 2 p; half of the
 *                 microbatches go each way */

enum piece_kind {
    PIECE_FORWARD,
    PIECE_INPUTS,   /* backward without weights' gradients, */
    PIECE_BACKWARD, /* with them, */
    PIECE_WEIGHTS,  /* and those alone */
    PIECE_KINDS
};

struct piece {
    enum piece_kind kind;
    int microbatch, part; /* part: of the model, as this microbatch passes it */
    bool joined;          /* begins and ends with the next one */
    double start;         /* s */
};

/* A stage, zeros but for the pace. */
struct pipe_played {
    struct piece *piece; /* in order; the caller frees */
    int pieces, next;
    double begin, end; /* s: of the first piece, of the last */
    double pace;       /* its seconds over those of sec[] */
};

/* Fills in its pieces. */
void pipeline_order(struct pipe_played *s, const struct pipeline *p, enum schedule schedule,
                    int stage);
/* When each piece starts, all stages from 0 s on; sec: s of each kind. */
void pipeline_play(struct pipe_played *stage, const struct pipeline *p, const double *sec);

#endif
