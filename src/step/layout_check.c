/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/layout.h"

/* tp shards heads, MLP columns and (with sequence parallelism) the sequence. */
static int check_tp_heads(const struct layout *l, const struct model *m, const struct attention *a,
                          struct err *err)
{
    int tp = l->size[AXIS_TP];

    if (a->kind == MIXER_NONE)
        return 0;
    if (a->heads % tp)
        return err_usage(err, "tp=%d does not divide the %d heads of %s", tp, a->heads, m->name);
    if (a->kv_heads && a->kv_heads % tp && tp % a->kv_heads)
        return err_usage(err, "tp=%d and the %d kv_heads of %s do not divide each other", tp,
                         a->kv_heads, m->name);
    if (a->kind == MIXER_MAMBA2 && a->groups % tp)
        return err_usage(err, "tp=%d does not divide the %d groups of the scans of %s", tp,
                         a->groups, m->name);
    return 0;
}

static int check_tp(const struct layout *l, const struct model *m, struct err *err)
{
    int tp = l->size[AXIS_TP];

    for (int i = 0; i < m->kinds; i++) {
        const struct mlp *p = &m->layer[i].mlp;
        if (check_tp_heads(l, m, &m->layer[i].attention, err) < 0)
            return -1;
        if (p->kind != MLP_NONE && !p->experts && p->ffn % tp)
            return err_usage(err, "tp=%d does not divide the MLP width %d of %s", tp, p->ffn,
                             m->name);
        if (p->shared_ffn % tp)
            return err_usage(err, "tp=%d does not divide the width %d of the shared experts of %s",
                             tp, p->shared_ffn, m->name);
    }
    return 0;
}

/* Heads and sequence change places: in Ulysses' attention, and around every scan. */
static int check_cp_heads(const struct layout *l, const struct model *m, const struct recipe *r,
                          struct err *err)
{
    int tp = l->size[AXIS_TP], cp = l->size[AXIS_CP];

    for (int i = 0; i < m->kinds && cp > 1; i++) {
        const struct attention *a = &m->layer[i].attention;
        bool scan = a->kind == MIXER_MAMBA2;
        if (a->kind == MIXER_NONE || (!scan && r->context != CONTEXT_ULYSSES))
            continue;
        if (a->heads % (cp * tp))
            return err_usage(err, "cp=%d x tp=%d does not divide the %d %sheads of %s", cp, tp,
                             a->heads, scan ? "scan " : "", m->name);
        if (!scan && a->kv_heads % (cp * tp))
            return err_usage(err,
                             "cp=%d x tp=%d does not divide the %d kv_heads of %s, which ulysses "
                             "shares out",
                             cp, tp, a->kv_heads, m->name);
    }
    return 0;
}

static int check_sequence(const struct layout *l, const struct model *m, const struct recipe *r,
                          struct err *err)
{
    int tp = l->size[AXIS_TP], cp = l->size[AXIS_CP];

    /* A causal mask is balanced by giving each cp rank one early and one late chunk. */
    if (cp > 1 && r->seq % (2 * cp))
        return err_usage(err,
                         "cp=%d does not divide the sequence of %d tokens into 2 chunks per rank",
                         cp, r->seq);
    if (r->sequence_parallel && r->seq / cp % tp)
        return err_usage(err,
                         "tp=%d does not divide the %d tokens that sequence parallelism shards", tp,
                         r->seq / cp);
    return check_cp_heads(l, m, r, err);
}

/* Chunks need not be equal (layout_stage): embedding and loss may count as a layer each, and any
 * split can be asked for (Megatron-LM --account-for-embedding-in-pipeline-split,
 * --pipeline-model-parallel-layout). */
static int check_pp(const struct layout *l, const struct model *m, const struct recipe *r,
                    struct err *err)
{
    int pp = l->size[AXIS_PP];
    long chunks = (long)pp * r->stages;

    if (pp == 1 && r->stages > 1)
        return err_usage(err, "%d stages per rank need a pipeline, and pp is 1", r->stages);
    if (chunks > m->layers + 2L)
        return err_usage(err,
                         "pp=%d with %d stages per rank makes %ld chunks, and %s has %d layers, %d "
                         "with embedding and loss",
                         pp, r->stages, chunks, m->name, m->layers, m->layers + 2);
    if (r->schedule == SCHEDULE_DUALPIPE && pp % 2)
        return err_usage(err, "dualpipe runs two stages a rank from both ends, and pp=%d is odd",
                         pp);
    return 0;
}

static int check_strategy(const struct layout *l, const struct recipe *r, struct err *err)
{
    int shard = l->size[AXIS_DP_SHARD], replicate = l->size[AXIS_DP_REPLICATE];

    if (r->strategy == STRATEGY_DDP && shard > 1)
        return err_usage(err, "ddp shards nothing, and dp_shard is %d: say dp_replicate=%d", shard,
                         shard);
    if (r->strategy == STRATEGY_HSDP && (shard < 2 || replicate < 2))
        return err_usage(err, "hsdp needs dp_shard and dp_replicate of at least 2, not %d and %d",
                         shard, replicate);
    if (r->strategy != STRATEGY_DDP && r->strategy != STRATEGY_HSDP && replicate > 1)
        return err_usage(err,
                         "%s shards over all data-parallel ranks, and dp_replicate is %d: "
                         "say dp_shard, or hsdp",
                         recipe_name.strategy[r->strategy], replicate);
    return 0;
}

/* Interleaved chunks take turns in rounds of pp microbatches (Narayanan et al. 2021, 2.2); DualPipe
 * feeds both ends for two rounds. */
static int check_microbatches(int pp, const struct recipe *r, long count, struct err *err)
{
    if (r->schedule == SCHEDULE_INTERLEAVED && count % pp)
        return err_usage(err,
                         "the interleaved schedule needs a multiple of pp=%d microbatches, and a "
                         "batch of %d makes %ld",
                         pp, r->global_batch, count);
    if (r->schedule == SCHEDULE_DUALPIPE && pp > 1 && (count % 2 || count < 2L * pp))
        return err_usage(err,
                         "dualpipe needs an even number of at least 2 pp=%d microbatches, and a "
                         "batch of %d makes %ld",
                         2 * pp, r->global_batch, count);
    return 0;
}

static int check_batch(const struct layout *l, struct recipe *r, struct err *err)
{
    int pp = l->size[AXIS_PP];
    long unit = (long)l->size[AXIS_DP_SHARD] * l->size[AXIS_DP_REPLICATE] * r->micro_batch;

    if (r->global_batch == 0 && unit * (pp > 1 ? 4L * pp : 1) > 1L << 30)
        return err_usage(err, "%ld sequences per microbatch round are too many", unit);
    if (r->global_batch == 0)
        r->global_batch = (int)(unit * (pp > 1 ? 4L * pp : 1));
    if (r->global_batch % unit)
        return err_usage(err,
                         "a batch of %d is not a multiple of %ld = %d data-parallel ranks x micro "
                         "batch %d",
                         r->global_batch, unit, (int)(unit / r->micro_batch), r->micro_batch);
    return check_microbatches(pp, r, r->global_batch / unit, err);
}

static int check_experts_of(const struct layout *l, const struct model *m, const struct mlp *p,
                            struct err *err)
{
    int ep = l->size[AXIS_EP], etp = l->size[AXIS_ETP];

    if (p->experts % ep)
        return err_usage(err, "ep=%d does not divide the %d experts of %s", ep, p->experts,
                         m->name);
    if (p->ffn % etp)
        return err_usage(err, "etp=%d does not divide the width %d of an expert of %s", etp, p->ffn,
                         m->name);
    return 0;
}

static int check_experts(const struct layout *l, const struct model *m, const struct recipe *r,
                         struct err *err)
{
    int tp = l->size[AXIS_TP], etp = l->size[AXIS_ETP];
    bool any = false;

    for (int i = 0; i < m->kinds; i++) {
        if (!m->layer[i].mlp.experts)
            continue;
        any = true;
        if (check_experts_of(l, m, &m->layer[i].mlp, err) < 0)
            return -1;
    }
    for (int i = AXIS_EP; i <= AXIS_ETP && !any; i++)
        if (l->size[i] > 1)
            return err_usage(err, "axis %s shards experts, and %s has none", axis_name[i], m->name);
    if (l->order == ORDER_TORCHTITAN && etp != 1 && etp != tp)
        return err_usage(err, "etp=%d: torchtitan shards an expert as tp=%d does or not at all",
                         etp, tp);
    if (any && tp > 1 && !r->sequence_parallel && r->stack == STACK_MEGATRON)
        return err_usage(err,
                         "tp=%d without sequence parallelism: Megatron-LM trains experts of %s "
                         "only with it",
                         tp, m->name);
    return 0;
}

int layout_check(const struct layout *l, const struct model *m, struct recipe *r, struct err *err)
{
    if (recipe_check(r, err) < 0 || check_experts(l, m, r, err) < 0 ||
        check_strategy(l, r, err) < 0 || check_tp(l, m, err) < 0 ||
        check_sequence(l, m, r, err) < 0 || check_pp(l, m, r, err) < 0 ||
        check_batch(l, r, err) < 0)
        return -1;
    return 0;
}
