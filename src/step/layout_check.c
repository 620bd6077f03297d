/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/layout.h"

/* tp shards heads, MLP columns and (with sequence parallelism) the sequence. */
static int check_tp(const struct layout *l, const struct model *m, struct err *err)
{
    int tp = l->size[AXIS_TP];

    for (int i = 0; i < m->kinds; i++) {
        const struct attention *a = &m->layer[i].attention;
        if (a->heads % tp)
            return err_usage(err, "tp=%d does not divide the %d heads of %s", tp, a->heads,
                             m->name);
        if (a->kv_heads % tp && tp % a->kv_heads)
            return err_usage(err, "tp=%d and the %d kv_heads of %s do not divide each other", tp,
                             a->kv_heads, m->name);
        if (m->layer[i].mlp.ffn % tp)
            return err_usage(err, "tp=%d does not divide the MLP width %d of %s", tp,
                             m->layer[i].mlp.ffn, m->name);
    }
    return 0;
}

static int check_sequence(const struct layout *l, const struct recipe *r, struct err *err)
{
    int tp = l->size[AXIS_TP], cp = l->size[AXIS_CP];

    /* A causal mask is balanced by giving each cp rank one early and one late chunk. */
    if (cp > 1 && r->seq % (2 * cp))
        return err_usage(err,
                         "cp=%d does not divide the sequence of %d tokens into 2 chunks per rank",
                         cp, r->seq);
    if (r->seq / cp % tp)
        return err_usage(err,
                         "tp=%d does not divide the %d tokens that sequence parallelism shards", tp,
                         r->seq / cp);
    return 0;
}

/* Layers per chunk must be equal; Megatron-LM may count embedding and loss as a layer each
 * (--account-for-embedding-in-pipeline-split), which is how 126 layers fit pp=8 with 8 chunks. */
static int check_pp(const struct layout *l, const struct model *m, const struct recipe *r,
                    struct err *err)
{
    int pp = l->size[AXIS_PP], chunks = pp * r->stages;

    if (pp == 1 && r->stages > 1)
        return err_usage(err, "%d stages per rank need a pipeline, and pp is 1", r->stages);
    if (m->layers % chunks && (m->layers + 2) % chunks)
        return err_usage(err,
                         "pp=%d with %d stages per rank does not divide the %d layers of %s, "
                         "nor %d with embedding and loss",
                         pp, r->stages, m->layers, m->name, m->layers + 2);
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
                         strategy_name[r->strategy], replicate);
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
    long count = r->global_batch / unit;
    if (r->schedule == SCHEDULE_INTERLEAVED && count % pp)
        return err_usage(err,
                         "the interleaved schedule needs a multiple of pp=%d microbatches, and a "
                         "batch of %d makes %ld",
                         pp, r->global_batch, count);
    return 0;
}

static int check_experts(const struct layout *l, const struct model *m, struct err *err)
{
    for (int i = AXIS_EP; i <= AXIS_ETP; i++)
        if (l->size[i] > 1)
            return err_usage(err, "axis %s shards experts, and %s has none", axis_name[i], m->name);
    return 0;
}

int layout_check(const struct layout *l, const struct model *m, struct recipe *r, struct err *err)
{
    if (recipe_check(r, err) < 0 || check_experts(l, m, err) < 0 || check_strategy(l, r, err) < 0 ||
        check_tp(l, m, err) < 0 || check_sequence(l, r, err) < 0 || check_pp(l, m, r, err) < 0 ||
        check_batch(l, r, err) < 0)
        return -1;
    return 0;
}

int layout_microbatches(const struct layout *l, const struct recipe *r)
{
    return r->global_batch / (l->size[AXIS_DP_SHARD] * l->size[AXIS_DP_REPLICATE] * r->micro_batch);
}
