/* step.h - one training step in the form shared by all parts of its price: layers and parameters of
 * a pipeline stage, and the axes that share out its states, tokens and microbatches.
 *
 * Made once for a model, a layout and a recipe, and passed to memory.h, work.h and traffic.h.  Only
 * tokens and microbatches depend on the micro batch: a search updates those and keeps the rest.
 *
 * Chunk k of pp v lies in stage k mod pp (Narayanan et al. 2021, 2.2).  Chunks hold ceil(layers /
 * (pp v)) layers.  Missing layers are taken from
 *
 *   two layers     the first chunk and the last, one each: embedding and loss count as layers
 *                  (Megatron-LM --account-for-embedding-in-pipeline-split,
 *                  --account-for-loss-in-...)
 *   up to a chunk  the last one, beside the loss (the layouts of its DeepSeek-V3 recipes,
 *                  --pipeline-model-parallel-layout)
 *   more           the last chunks, one each
 *
 * By cost (stage-split=cost) a chunk takes layers until it passes its share of all multiplications,
 * including those of the head (nanotron models/base.py): of 16 layers and a head that costs 4, 8
 * stages hold 3, 3, 2, 3, 2, 3, 0 and 0.
 *
 * Kinds with fewer layers than there are chunks come first in the model if the first chunk has room
 * for them (the dense layers of DeepSeek-V3).  The others are assumed to alternate: every stage has
 * its share, which need not be whole.  So among the inner stages the second is as full as any, and
 * only first, second and last can be the slowest or the fullest. */
#ifndef RG_STEP_H
#define RG_STEP_H

#include <string.h>

#include "step/layout.h"

/* One rank of a pipeline stage, with all its chunks: tp shards dense parameters, ep etp routed
 * experts.  DualPipe holds two stages (DeepSeek-V3 2024, table 2). */
struct pipe_stage {
    int index, layers; /* layers without multi-token prediction */
    /* first: holds the embedding; last: holds the head, and multi-token prediction */
    bool first, last;
    /* Layers of each kind, then of trained multi-token prediction. */
    double count[MODEL_KINDS_MAX + 1];
    double dense, expert;      /* parameters without adapters */
    double lora, lora_expert;  /* adapters, 0 without LoRA */
    double held, held_experts; /* layers of a rank; those with routed experts */
};

/* One of the two grids: axes whose ranks hold the same weights or shards of them (data), and those
 * of them that shard. */
struct step_grid {
    unsigned data, shard;
    int shards; /* ranks along `shard` */
};

enum { STEP_STAGES = 3 };
struct step {
    const struct model *m;
    const struct layout *l;
    const struct recipe *r;
    double tokens;       /* per microbatch and context rank */
    double microbatches; /* per pipeline */
    bool trained;        /* weights have gradients */
    struct step_grid dense, expert;
    struct pipe_stage stage[STEP_STAGES]; /* first, second and last, if they exist */
    int stages;
    /* Index of the stage with the most active parameters, including head and multi-token
     * prediction; ignores differences of the attention core. */
    int slowest;
    double updated; /* parameters whose optimizer states a rank of that stage holds */
};

/* Fill s after layout_check().  Allocates nothing; points to its arguments. */
void step_of(struct step *s, const struct model *m, const struct layout *l, const struct recipe *r);
/* Update s for a new micro batch.  r may differ from s->r in the micro batch only. */
void step_batch(struct step *s, const struct recipe *r);
/* True if the stages of two steps hold the same. */
static inline bool step_alike(const struct step *a, const struct step *b)
{
    return a->stages == b->stages && a->slowest == b->slowest &&
           memcmp(a->stage, b->stage, (size_t)a->stages * sizeof(*a->stage)) == 0;
}
/* Fill out for any stage of the pipeline. */
void step_stage(struct pipe_stage *out, const struct step *s, int index);
/* Returns "stages of 15, 16 (6 times) and 15 layers", or "" if all hold the same number. */
char *step_stages_text(char *buf, int size, const struct step *s);

#endif
