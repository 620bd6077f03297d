/* recipe.h - how a step is run apart from its mesh: batch, sequence, precision, recompute,
 * schedule.
 *
 * The words of the command line and of files are the rows of the tables in recipe.c. */
#ifndef RG_RECIPE_H
#define RG_RECIPE_H

#include <stdbool.h>

#include "base/err.h"

/* What the data-parallel ranks share out (Rajbhandari et al. 2020, ZeRO; Zhao et al. 2023, FSDP).
 */
enum strategy {
    STRATEGY_DDP,   /* nothing: gradients are summed */
    STRATEGY_ZERO1, /* optimizer states */
    STRATEGY_ZERO2, /* and gradients */
    STRATEGY_ZERO3, /* and weights */
    STRATEGY_FSDP,  /* as ZeRO-3, layers gathered ahead of use, gradients reduced in fp32 */
    STRATEGY_HSDP,  /* FSDP inside dp_shard, all_reduce over dp_replicate */
    STRATEGY_COUNT
};
extern const char *const strategy_name[STRATEGY_COUNT];

enum schedule { SCHEDULE_1F1B, SCHEDULE_INTERLEAVED, SCHEDULE_COUNT };
extern const char *const schedule_name[SCHEDULE_COUNT];

enum dtype { DTYPE_FP32, DTYPE_BF16, DTYPE_FP8, DTYPE_NVFP4, DTYPE_COUNT };
extern const char *const dtype_name[DTYPE_COUNT];

enum recompute { RECOMPUTE_NONE, RECOMPUTE_SELECTIVE, RECOMPUTE_FULL, RECOMPUTE_COUNT };
extern const char *const recompute_name[RECOMPUTE_COUNT];

struct recipe {
    enum strategy strategy;
    enum schedule schedule;
    int stages;       /* v: model chunks per pipeline rank; 1 unless interleaved */
    int seq;          /* tokens of a sequence */
    int micro_batch;  /* sequences of a microbatch */
    int global_batch; /* sequences of a step; 0: layout_check() chooses and says so */
    enum dtype dtype; /* of the matrix products */
    enum recompute recompute;
    bool causal;                     /* attention convention of FLOPs that are executed */
    double weight_bytes, grad_bytes; /* per parameter on the wire; 0: as the strategy has it */
};

/* bf16, sequence 8192, micro batch 1, no recompute, 1F1B, FSDP, causal. */
void recipe_defaults(struct recipe *r);
/* The index of `word` among n names, or -1 with 'strategy "x" is not known (known: ...)'. */
int recipe_word(const char *what, const char *word, const char *const *names, int n,
                struct err *err);
/* Values that contradict each other (stages without interleaving, ...). */
int recipe_check(const struct recipe *r, struct err *err);
/* Wire bytes per parameter after defaults: weights 2 (bf16); gradients 4 for FSDP and HSDP (fp32
 * reduction, torchtitan's default), 2 for the others (bf16, Megatron-LM recipes). */
double recipe_weight_bytes(const struct recipe *r);
double recipe_grad_bytes(const struct recipe *r);
bool recipe_gathers_weights(const struct recipe *r); /* ZeRO-3, FSDP, HSDP: before each use */

#endif
