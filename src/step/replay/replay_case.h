/* replay_case.h - the numbers of a replay, and the prediction that it is held against.
 *
 * A GPU hides messages by its own rules, which constants.json calibrates.  A replay hides what its
 * two streams hide (replay.h), so the prediction for it takes what follows from that structure:
 * messages inside layers are seen in full, weights and gradients hide behind a layer's compute in
 * full, and of the messages between stages is seen what the pipeline's order leaves (pipeline.h).
 * Nothing of it comes from a measured step. */
#ifndef RG_REPLAY_CASE_H
#define RG_REPLAY_CASE_H

#include "step/predict.h"
#include "step/replay/replay.h"

struct replay_case {
    struct constants constants;   /* shipped ones, with those that replace exposure */
    struct prediction prediction; /* of the shrunken step */
    struct traffic traffic;       /* shrunken messages */
    double shrink;
    double flops; /* compute rate that a share made necessary; 0: the question's own */
    struct replay_compute rest, last; /* as in struct replay_step */
};

/* What is asked of a replay beside the job. */
struct replay_size {
    double shrink;  /* 0: so that the step takes `seconds`, but never less than 1 */
    double seconds; /* of a step */
    double share;   /* of the predicted step without its bubble that compute takes, whatever its
                       rate; 0: as the rate has it */
};

/* q: the job; its constants and shrink are replaced.  A share that compute cannot take: EXIT_USAGE.
 * replay_case_free() also after an error. */
int replay_case_make(struct replay_case *c, const struct question *q,
                     const struct replay_size *size, struct err *err);
void replay_case_free(struct replay_case *c);

#endif
