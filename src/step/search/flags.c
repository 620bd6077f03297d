/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/predict.h"

#include <stdarg.h>
#include <stdbool.h>

const char *const framework_name[FRAMEWORK_COUNT] = {"megatron", "torchtitan"};

/* State of a translation. */
struct translation {
    FILE *out;
    const struct model *m;
    const struct layout *l;
    const struct recipe *r;
    int cannot;
};

static void cannot(struct translation *t, bool when, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void cannot(struct translation *t, bool when, const char *fmt, ...)
{
    va_list ap;

    if (!when)
        return;
    t->cannot++;
    fputs("# cannot: ", t->out);
    va_start(ap, fmt);
    vfprintf(t->out, fmt, ap);
    va_end(ap);
    fputc('\n', t->out);
}

static int dp_of(const struct layout *l)
{
    return l->size[AXIS_DP_SHARD] * l->size[AXIS_DP_REPLICATE];
}

static bool is_odd(const struct recipe *r)
{
    return r->schedule != SCHEDULE_1F1B && r->schedule != SCHEDULE_INTERLEAVED;
}

/* --- Megatron-LM --- */

static void flag(struct translation *t, bool when, const char *name)
{
    if (when)
        fprintf(t->out, "--%s\n", name);
}

static void number(struct translation *t, bool when, const char *name, int value)
{
    if (when)
        fprintf(t->out, "--%s %d\n", name, value);
}

static void megatron_mesh(struct translation *t)
{
    static const char *const context[CONTEXT_COUNT] = {"cp-comm-type p2p", "cp-comm-type a2a",
                                                       "cp-comm-type allgather"};
    const int *size = t->l->size;
    const struct recipe *r = t->r;
    bool experts = model_has_experts(t->m);
    int chunks = size[AXIS_PP] * r->stages;

    number(t, true, "tensor-model-parallel-size", size[AXIS_TP]);
    number(t, true, "pipeline-model-parallel-size", size[AXIS_PP]);
    number(t, true, "context-parallel-size", size[AXIS_CP]);
    number(t, experts, "expert-model-parallel-size", size[AXIS_EP]);
    number(t, experts, "expert-tensor-parallel-size", size[AXIS_ETP]); /* default: tp */
    flag(t, size[AXIS_TP] > 1 && r->sequence_parallel, "sequence-parallel");
    flag(t, size[AXIS_TP] > 1 && recipe_overlaps_tp(r), "tp-comm-overlap");
    flag(t, size[AXIS_CP] > 1, r->ulysses ? "cp-comm-type a2a+p2p" : context[r->context]);
    if (r->ulysses && size[AXIS_CP] > 1)
        fprintf(t->out, "--hierarchical-context-parallel-sizes %d %d\n", r->ulysses,
                size[AXIS_CP] / r->ulysses);
    number(t, r->stages > 1, "num-virtual-stages-per-pipeline-rank", r->stages);
    flag(t, t->l->order == ORDER_TP_PP_DP, "use-tp-pp-dp-mapping");
    cannot(t, t->l->order == ORDER_TORCHTITAN,
           "mesh order torchtitan; it has megatron and tp-pp-dp");
    cannot(t, size[AXIS_PP] > 1 && is_odd(r), "schedule %s; it has 1f1b and interleaved",
           recipe_name.schedule[r->schedule]);
    cannot(t, t->m->layers % chunks != 0,
           "%d layers in %d equal chunks; --pipeline-model-parallel-layout says unequal ones",
           t->m->layers, chunks);
    cannot(t, size[AXIS_TP] > 1 && recipe_overlaps_tp(r) && !r->sequence_parallel,
           "tp overlap without sequence parallelism");
}

/* Megatron-FSDP shards more than optimizer states; --num-distributed-optimizer-instances is the
 * outer dimension of its hybrid (docs/user-guide/features/megatron_fsdp.md), and of the distributed
 * optimizer. */
static void megatron_states(struct translation *t)
{
    static const char *const shards[STRATEGY_COUNT] = {
        [STRATEGY_ZERO2] = "data-parallel-sharding-strategy optim_grads",
        [STRATEGY_ZERO3] = "data-parallel-sharding-strategy optim_grads_params",
        [STRATEGY_FSDP] = "data-parallel-sharding-strategy optim_grads_params",
        [STRATEGY_HSDP] = "data-parallel-sharding-strategy optim_grads_params"};
    const struct recipe *r = t->r;
    bool fsdp = shards[r->strategy] != NULL;

    flag(t, r->strategy == STRATEGY_ZERO1, "use-distributed-optimizer");
    flag(t, fsdp, "use-megatron-fsdp");
    flag(t, fsdp, fsdp ? shards[r->strategy] : "");
    flag(t, fsdp, "ckpt-format fsdp_dtensor");
    number(t, recipe_has_replicas(r) && t->l->size[AXIS_DP_REPLICATE] > 1,
           "num-distributed-optimizer-instances", t->l->size[AXIS_DP_REPLICATE]);
    flag(t, dp_of(t->l) > 1, "overlap-grad-reduce");
    flag(t, dp_of(t->l) > 1 && r->strategy != STRATEGY_DDP, "overlap-param-gather");
    cannot(t, recipe_gathers_weights(r) && !r->reshard,
           "weights that are kept after forward; Megatron-FSDP gathers them again");
}

static void megatron_recipe(struct translation *t)
{
    static const char *const dtype[DTYPE_COUNT] = {NULL, "bf16", "bf16\n--fp8-format hybrid",
                                                   "bf16\n--fp8-format e4m3\n--fp8-recipe mxfp8",
                                                   "bf16\n--fp4-format e2m1\n--fp4-recipe nvfp4"};
    static const char *const recompute[RECOMPUTE_COUNT] = {
        NULL, "recompute-granularity selective",
        "recompute-granularity full\n--recompute-method uniform\n--recompute-num-layers 1"};
    static const char *const dispatch[DISPATCH_COUNT] = {
        "moe-token-dispatcher-type alltoall",
        "moe-token-dispatcher-type flex\n--moe-flex-dispatcher-backend hybridep"};
    const struct recipe *r = t->r;

    number(t, true, "micro-batch-size", r->micro_batch);
    number(t, true, "global-batch-size", r->global_batch);
    number(t, true, "seq-length", r->seq);
    flag(t, dtype[r->dtype], dtype[r->dtype]);
    flag(t, recompute[r->recompute] && !r->recompute_layers, recompute[r->recompute]);
    flag(t, r->recompute_layers, "recompute-granularity full\n--recompute-method block");
    /* of each chunk (core/transformer/transformer_block.py, _checkpointed_forward) */
    number(t, r->recompute_layers, "recompute-num-layers",
           (r->recompute_layers + r->stages - 1) / r->stages);
    cannot(t, r->recompute_layers % r->stages,
           "recompute of a number of layers that the chunks of a rank do not share evenly");
    flag(t, model_has_experts(t->m), dispatch[r->dispatch]);
    flag(t, r->ep_overlap && t->l->size[AXIS_EP] > 1, "overlap-moe-expert-parallel-comm");
    cannot(t, r->ep_overlap && r->recompute == RECOMPUTE_FULL,
           "overlap of expert messages with full recompute");
    cannot(t, r->lora != LORA_NONE, "adapters; Megatron-Bridge has them");
}

static void megatron(struct translation *t)
{
    megatron_mesh(t);
    megatron_states(t);
    megatron_recipe(t);
}

/* --- torchtitan --- */

/* Returns the number of ends that count as a layer each: embedding, head (step.h). */
static int ends_of(const struct translation *t)
{
    return t->m->layers % (t->l->size[AXIS_PP] * t->r->stages) ? 1 : 0;
}

/* Returns the layers per stage that give this number of stages (distributed/pipeline_parallel.py,
 * pipeline_llm); 0: no number does. */
static int layers_a_stage(const struct translation *t)
{
    int chunks = t->l->size[AXIS_PP] * t->r->stages, all = t->m->layers + 2 * ends_of(t);
    int layers = (all + chunks - 1) / chunks;

    return (all + layers - 1) / layers == chunks ? layers : 0;
}

static void titan_mesh(struct translation *t)
{
    static const char *const schedule[SCHEDULE_COUNT] = {"1F1B", "Interleaved1F1B", NULL, NULL,
                                                         NULL};
    static const char *const rotate[CONTEXT_COUNT] = {"alltoall", NULL, "allgather"};
    const int *size = t->l->size;
    const struct recipe *r = t->r;
    bool pipe = size[AXIS_PP] > 1;

    fprintf(t->out, "\n[parallelism]\ndata_parallel_replicate_degree = %d\n",
            size[AXIS_DP_REPLICATE]);
    fprintf(t->out, "data_parallel_shard_degree = %d\n", size[AXIS_DP_SHARD]);
    if (recipe_gathers_weights(r) || r->strategy == STRATEGY_ZERO2)
        fprintf(t->out, "fsdp_reshard_after_forward = \"%s\"\n",
                recipe_gathers_weights(r) && r->reshard ? "always" : "never");
    fprintf(t->out, "tensor_parallel_degree = %d\nenable_async_tensor_parallel = %s\n",
            size[AXIS_TP], size[AXIS_TP] > 1 && recipe_overlaps_tp(r) ? "true" : "false");
    fprintf(t->out, "pipeline_parallel_degree = %d\n", size[AXIS_PP]);
    if (pipe && schedule[r->schedule])
        fprintf(t->out, "pipeline_parallel_schedule = \"%s\"\n", schedule[r->schedule]);
    if (pipe && layers_a_stage(t))
        fprintf(t->out,
                "pipeline_parallel_layers_per_stage = %d\n"
                "pipeline_parallel_first_stage_less_layers = %d\n"
                "pipeline_parallel_last_stage_less_layers = %d\n",
                layers_a_stage(t), ends_of(t), ends_of(t));
    if (pipe)
        fprintf(t->out, "pipeline_parallel_microbatch_size = %d\n", r->micro_batch);
    fprintf(t->out, "context_parallel_degree = %d\n", size[AXIS_CP]);
    if (size[AXIS_CP] > 1 && rotate[r->context])
        fprintf(t->out, "context_parallel_rotate_method = \"%s\"\n", rotate[r->context]);
    if (model_has_experts(t->m))
        fprintf(t->out,
                "expert_parallel_degree = %d\nexpert_tensor_parallel_degree = %d\n"
                "expert_parallel_comm_backend = \"%s\"\n",
                size[AXIS_EP], size[AXIS_ETP],
                r->dispatch == DISPATCH_KERNEL ? "deepep" : "standard");
    cannot(t, pipe && !schedule[r->schedule],
           "schedule %s; of its own DualPipeV and ZBVZeroBubble "
           "are the nearest",
           recipe_name.schedule[r->schedule]);
    cannot(t, pipe && !layers_a_stage(t), "%d layers in %d chunks by a number of layers a stage",
           t->m->layers, size[AXIS_PP] * r->stages);
    cannot(t, size[AXIS_CP] > 1 && !rotate[r->context], "context %s; it has ring and gather",
           recipe_name.context[r->context]);
    cannot(t, size[AXIS_TP] > 1 && !r->sequence_parallel,
           "tensor parallelism without sequence parallelism");
}

static void titan_limits(struct translation *t)
{
    const int *size = t->l->size;
    const struct recipe *r = t->r;

    cannot(t, r->strategy == STRATEGY_ZERO1 && dp_of(t->l) * size[AXIS_CP] > 1,
           "zero1; it shards weights too (fsdp, hsdp)");
    cannot(t,
           r->strategy == STRATEGY_DDP && dp_of(t->l) > 1 &&
               size[AXIS_TP] * size[AXIS_CP] * size[AXIS_PP] > 1,
           "ddp beside another axis");
    cannot(t, t->l->order != ORDER_TORCHTITAN && (size[AXIS_EP] > 1 || size[AXIS_PP] > 1),
           "mesh order %s; its own is torchtitan", order_name[t->l->order]);
    cannot(t, r->dtype == DTYPE_NVFP4, "nvfp4");
    cannot(t, r->lora != LORA_NONE, "adapters");
    cannot(t, r->ep_overlap, "overlap of expert messages with the %s schedule; DualPipeV has it",
           recipe_name.schedule[r->schedule]);
}

/* With a pipeline a local batch contains all of its microbatches.  Without one it is a single
 * microbatch, and the global batch gives the number to accumulate (train.py). */
static void titan(struct translation *t)
{
    static const char *const mode[RECOMPUTE_COUNT] = {"none", "selective", "full"};
    static const char *const converter[DTYPE_COUNT] = {
        [DTYPE_FP8] = "quantize.linear.float8", [DTYPE_MXFP8] = "quantize.linear.mx"};
    const struct recipe *r = t->r;
    int local = t->l->size[AXIS_PP] > 1 ? r->global_batch / dp_of(t->l) : r->micro_batch;

    if (converter[r->dtype])
        fprintf(t->out, "[model]\nconverters = [\"%s\"]\n\n", converter[r->dtype]);
    fprintf(t->out, "[training]\nlocal_batch_size = %d\nglobal_batch_size = %d\nseq_len = %d\n",
            local, r->global_batch, r->seq);
    if (r->dtype == DTYPE_FP32)
        fputs("mixed_precision_param = \"float32\"\n", t->out);
    titan_mesh(t);
    fprintf(t->out, "\n[activation_checkpoint]\nmode = \"%s\"\n", mode[r->recompute]);
    if (r->recompute == RECOMPUTE_SELECTIVE)
        fputs("selective_ac_option = \"op\"\n", t->out);
    fprintf(t->out, "\n[compile]\nenable = %s\n",
            r->stack == STACK_EAGER || r->stack == STACK_HF ? "false" : "true");
    cannot(t, r->recompute_layers, "recompute of some layers");
    cannot(t, r->ulysses, "all_to_all inside a ring of context parallelism");
    titan_limits(t);
}

int framework_flags(FILE *out, enum framework framework, const struct model *m,
                    const struct layout *l, const struct recipe *r)
{
    static void (*const write[FRAMEWORK_COUNT])(struct translation *) = {megatron, titan};
    struct translation t = {.out = out, .m = m, .l = l, .r = r};

    write[framework](&t);
    return t.cannot;
}
