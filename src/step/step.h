/* step.h - one training step as every part of its price asks for it: which layers and parameters a
 * pipeline stage holds, which axes share out its states, tokens and microbatches.
 *
 * Made once for a model, a layout and a recipe, and handed to memory.h, work.h and traffic.h.  Only
 * tokens and microbatches follow from the micro batch: a search sets those anew and keeps the rest.
 *
 * Chunk k of pp v lies in stage k mod pp (Narayanan et al. 2021, 2.2).  Chunks hold
 * ceil(layers / (pp v)) layers.  What is then missing is taken from
 *
 *   two layers     the first chunk and the last, one each: embedding and loss count as layers
 *                  (Megatron-LM --account-for-embedding-in-pipeline-split, --account-for-loss-in-...)
 *   up to a chunk  the last one, beside the loss (the layouts of its DeepSeek-V3 recipes,
 *                  --pipeline-model-parallel-layout)
 *   more           the last chunks, one each
 *
 * By cost (stage-split=cost) a chunk takes layers until it passes its share of all multiplications,
 * the head's among them (nanotron models/base.py): of 16 layers and a head that costs 4, 8 stages
 * hold 3, 3, 2, 3, 2, 3, 0 and 0.
 *
 * Kinds that have fewer layers than there are chunks open the model where the first chunk has room
 * for them (the dense layers of DeepSeek-V3); the others are taken to alternate: every stage has
 * its share, which need not be whole.  So of the stages without an end the second is as full as
 * any, and first, second and last are all that can be the slowest or the fullest. */
#ifndef RG_STEP_H
#define RG_STEP_H

#include <string.h>

#include "step/layout.h"

/* One stage of a pipeline, all its chunks together, and one rank of it: dense parameters are shared
 * out by tp, routed experts by ep etp.  DualPipe holds two stages (DeepSeek-V3 2024, table 2). */
struct pipe_stage {
    int index, layers; /* layers without multi-token prediction */
    bool first, last;  /* holds the embedding; the head, and multi-token prediction */
    double count[MODEL_KINDS_MAX + 1]; /* of each kind; then of multi-token prediction that is
                                          trained */
    double dense, expert;              /* parameters without adapters */
    double lora, lora_expert;          /* adapters, 0 without LoRA */
    double held, held_experts;         /* layers of a rank, and those with routed experts */
};

/* One of the two grids: axes whose ranks hold the same weights or shards of them, and of those the
 * ones that shard. */
struct step_grid {
    unsigned data, shard;
    int shards; /* ranks along `shard` */
};

enum { STEP_STAGES = 3 };
struct step {
    const struct model *m;
    const struct layout *l;
    const struct recipe *r;
    double tokens;       /* of a microbatch and context rank */
    double microbatches; /* of one pipeline */
    bool trained;        /* weights have gradients */
    struct step_grid dense, expert;
    struct pipe_stage stage[STEP_STAGES]; /* first, second and last, as far as there are as many */
    int stages;
    int slowest;    /* of them: has the most active parameters, head and multi-token prediction
                       included; but for what attention's core differs */
    double updated; /* parameters whose optimizer states a rank of it holds */
};

/* After layout_check().  Allocates nothing; points to its arguments. */
void step_of(struct step *s, const struct model *m, const struct layout *l, const struct recipe *r);
/* r differs from s->r in the micro batch only. */
void step_batch(struct step *s, const struct recipe *r);
/* Do the stages of two steps hold the same? */
static inline bool step_alike(const struct step *a, const struct step *b)
{
    return a->stages == b->stages && a->slowest == b->slowest &&
           memcmp(a->stage, b->stage, (size_t)a->stages * sizeof(*a->stage)) == 0;
}
/* Any stage of its pipeline. */
void step_stage(struct pipe_stage *out, const struct step *s, int index);
/* "stages of 15, 16 (6 times) and 15 layers", or "" when all hold as many. */
char *step_stages_text(char *buf, int size, const struct step *s);

#endif
