/* pipeline.h - order of work of a pipeline stage, and its time with messages that take time.
 *
 * 1F1B and its interleaved form (Narayanan et al. 2021, 2.2; Megatron-LM
 * core/pipeline_parallel/schedules.py): p stages, v chunks per stage, m microbatches.  Chunk c of
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

/* Returns the work of a stage in order, 2 m v units.  The caller frees. */
struct unit *pipeline_units(const struct pipeline *p, int stage);

/* Returns the stage that a unit's input comes from (with `to`: that its output goes to); -1: end of
 * the model.  *chunk, unless NULL: the chunk there. */
int pipeline_peer(const struct pipeline *p, int stage, const struct unit *u, bool to, int *chunk);

/* Returns seconds until the last stage has finished.  forward, backward: seconds per unit; message:
 * seconds from the end of a unit until its output has arrived.  Messages run beside the work, one
 * after another in each direction. */
double pipeline_time(const struct pipeline *p, double forward, double backward, double message);

/* --- all schedules, without messages --- *
 *
 *   zb-h1, zb-h2  Qi et al. 2023, 3: p-1-s or twice as many forwards first, weights' gradients s
 *                 or 2 s microbatches later on stage s.  Their bubbles are (p-1)(F+B-W) and
 *                 (p-1)(F+B-2W), B without W, if W takes no longer than B
 *   dualpipe      DeepSeek, DualPipe, dualpipe/dualpipe.py, its eight steps; a forward and a
 *                 backward that overlap begin and end together.  p even, m even and at least 2
 *                 p; half of the microbatches go each way */

enum piece_kind {
    PIECE_FORWARD,
    PIECE_INPUTS,   /* backward without weights' gradients */
    PIECE_BACKWARD, /* backward with weights' gradients */
    PIECE_WEIGHTS,  /* weights' gradients alone */
    PIECE_KINDS
};

struct piece {
    enum piece_kind kind;
    int microbatch, part; /* part: index in the model along the path of this microbatch */
    bool joined;          /* begins and ends with the next piece */
    double start;         /* s */
};

/* One stage; zero except for the pace. */
struct pipe_played {
    struct piece *piece; /* in order; the caller frees */
    int pieces, next;
    double begin, end; /* s: start of the first piece, end of the last */
    double pace;       /* seconds of this stage / those of sec[] */
};

/* Fill the pieces of a stage. */
void pipeline_order(struct pipe_played *s, const struct pipeline *p, enum schedule schedule,
                    int stage);
/* Set the start of each piece, all stages from 0 s.  sec: s per kind. */
void pipeline_play(struct pipe_played *stage, const struct pipeline *p, const double *sec);

#endif
