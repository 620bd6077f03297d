/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/layout.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"

const char *const axis_name[AXIS_COUNT] = {"tp",  "cp",       "ep",           "etp",
                                           "edp", "dp_shard", "dp_replicate", "pp"};
const char *const order_name[ORDER_COUNT] = {"megatron", "torchtitan", "tp-pp-dp"};

/* Fastest first. */
enum { GRID_AXES = 5 };
static const enum axis dense_axes[ORDER_COUNT][GRID_AXES] = {
    [ORDER_MEGATRON] = {AXIS_TP, AXIS_CP, AXIS_DP_SHARD, AXIS_DP_REPLICATE, AXIS_PP},
    [ORDER_TORCHTITAN] = {AXIS_TP, AXIS_CP, AXIS_DP_SHARD, AXIS_DP_REPLICATE, AXIS_PP},
    [ORDER_TP_PP_DP] = {AXIS_TP, AXIS_CP, AXIS_PP, AXIS_DP_SHARD, AXIS_DP_REPLICATE},
};
static const enum axis expert_axes[ORDER_COUNT][GRID_AXES] = {
    [ORDER_MEGATRON] = {AXIS_ETP, AXIS_EP, AXIS_EDP, AXIS_DP_REPLICATE, AXIS_PP},
    [ORDER_TORCHTITAN] = {AXIS_ETP, AXIS_EP, AXIS_EDP, AXIS_DP_REPLICATE, AXIS_PP},
    [ORDER_TP_PP_DP] = {AXIS_ETP, AXIS_EP, AXIS_PP, AXIS_EDP, AXIS_DP_REPLICATE},
};

enum { AUTO = -1 };

static int find_axis(const char *word, enum strategy strategy)
{
    if (!strcmp(word, "dp"))
        return strategy == STRATEGY_DDP ? AXIS_DP_REPLICATE : AXIS_DP_SHARD;
    for (int i = 0; i < AXIS_COUNT; i++)
        if (i != AXIS_EDP && !strcmp(word, axis_name[i]))
            return i;
    return -1;
}

/* Parse one "axis=size" of the text. */
static int parse_item(struct layout *l, char *item, bool *seen, enum strategy strategy,
                      struct err *err)
{
    char *eq = strchr(item, '=');
    struct near near = {.word = item};
    struct err why;

    if (!eq)
        return err_usage(err, "\"%s\" is not AXIS=SIZE", item);
    *eq = '\0';
    int axis = find_axis(item, strategy);
    if (axis < 0) {
        for (int i = 0; i < AXIS_COUNT; i++)
            near_try(&near, axis_name[i]);
        return err_usage(
            err,
            "axis \"%s\" is not known%s (known: pp, dp, dp_replicate, dp_shard, cp, tp, ep, etp)",
            item, near_text(&near));
    }
    if (seen[axis])
        return err_usage(err, "axis %s is given twice", axis_name[axis]);
    seen[axis] = true;
    if (!strcmp(eq + 1, "auto")) {
        l->size[axis] = AUTO;
        return 0;
    }
    if (units_int(&l->size[axis], eq + 1, 1, LAYOUT_RANKS_MAX, &why) < 0)
        return err_usage(err, "axis %s: %s", axis_name[axis], why.text);
    return 0;
}

static bool is_dense(int axis)
{
    return axis != AXIS_EP && axis != AXIS_ETP && axis != AXIS_EDP;
}

/* Returns the product of the given dense sizes; *fill: the axis that fills the rest (-1: none). */
static int product(const struct layout *l, int *fill, struct err *err)
{
    long ranks = 1;

    *fill = -1;
    for (int i = 0; i < AXIS_COUNT; i++)
        if (l->size[i] == AUTO && !is_dense(i))
            return err_usage(err, "axis %s cannot be auto", axis_name[i]);
        else if (l->size[i] == AUTO && *fill >= 0)
            return err_usage(err, "axes %s and %s are both auto", axis_name[*fill], axis_name[i]);
        else if (l->size[i] == AUTO)
            *fill = i;
        else if (is_dense(i) && (ranks *= l->size[i]) > LAYOUT_RANKS_MAX)
            return err_usage(err, "the axes multiply to more than %d ranks", LAYOUT_RANKS_MAX);
    return (int)ranks;
}

static int fill_ranks(struct layout *l, int ranks, struct err *err)
{
    int fill, have;

    have = product(l, &fill, err);
    if (have < 0)
        return -1;
    if (fill >= 0 && ranks == 0)
        return err_usage(err, "axis %s is auto, and the number of GPUs is not given",
                         axis_name[fill]);
    if (fill >= 0 && ranks % have)
        return err_usage(
            err,
            "axis %s cannot be filled: the other axes take %d ranks, which do not divide %d GPUs",
            axis_name[fill], have, ranks);
    if (fill >= 0) {
        l->size[fill] = ranks / have;
        have = ranks;
    }
    l->ranks = have;
    if (ranks && have != ranks)
        return err_usage(err, "the layout has %d ranks and %d GPUs are given", have, ranks);
    return 0;
}

/* Experts are distributed over the ranks of a pipeline stage; the ranks left by ep and etp are data
 * parallel. */
static int fill_experts(struct layout *l, enum strategy strategy, struct err *err)
{
    int *n = l->size, mp = n[AXIS_EP] * n[AXIS_ETP];
    int stage = n[AXIS_TP] * n[AXIS_CP] * n[AXIS_DP_SHARD];

    if (strategy == STRATEGY_DDP)
        stage *= n[AXIS_DP_REPLICATE];
    if (stage % mp)
        return err_usage(err,
                         "ep=%d x etp=%d do not divide the %d ranks of a pipeline stage%s: "
                         "tp=%d x cp=%d x dp=%d",
                         n[AXIS_EP], n[AXIS_ETP], stage,
                         strategy == STRATEGY_HSDP ? " and replica" : "", n[AXIS_TP], n[AXIS_CP],
                         stage / n[AXIS_TP] / n[AXIS_CP]);
    if (l->order == ORDER_TP_PP_DP && mp > 1 && n[AXIS_PP] > 1 && mp != n[AXIS_TP] * n[AXIS_CP])
        return err_usage(err,
                         "with order tp-pp-dp both grids must give the same pipelines: ep x etp = "
                         "%d is not tp x cp = %d",
                         mp, n[AXIS_TP] * n[AXIS_CP]);
    n[AXIS_EDP] = stage / mp;
    return 0;
}

/* dp_replicate and pp have the same stride in both grids, except with ddp, where edp includes
 * dp_replicate. */
static void set_strides(struct layout *l, enum strategy strategy)
{
    int stride = 1;

    for (int i = 0; i < GRID_AXES; i++) {
        enum axis axis = expert_axes[l->order][i];
        bool inside = axis == AXIS_DP_REPLICATE && strategy == STRATEGY_DDP;
        l->stride[axis] = stride;
        stride *= inside ? 1 : l->size[axis];
    }
    stride = 1;
    for (int i = 0; i < GRID_AXES; i++) {
        enum axis axis = dense_axes[l->order][i];
        l->stride[axis] = stride;
        stride *= l->size[axis];
    }
}

int layout_make(struct layout *l, enum strategy strategy, struct err *err)
{
    int *n = l->size;

    l->ranks = n[AXIS_TP] * n[AXIS_CP] * n[AXIS_DP_SHARD] * n[AXIS_DP_REPLICATE] * n[AXIS_PP];
    if (fill_experts(l, strategy, err) < 0)
        return -1;
    set_strides(l, strategy);
    return 0;
}

int layout_parse(struct layout *l, const char *text, enum strategy strategy, enum mesh_order order,
                 int ranks, struct err *err)
{
    bool seen[AXIS_COUNT] = {false};
    char *copy = mem_strdup(text), *next = copy;
    int rc = 0;

    memset(l, 0, sizeof(*l));
    l->order = order;
    for (int i = 0; i < AXIS_COUNT; i++)
        l->size[i] = 1;
    for (char *item; rc == 0 && (item = strsep(&next, ",")) != NULL;)
        rc = parse_item(l, item, seen, strategy, err);
    if (rc == 0)
        rc = fill_ranks(l, ranks, err);
    if (rc == 0)
        rc = layout_make(l, strategy, err);
    free(copy);
    return rc < 0 ? err_wrap(err, "layout \"%s\"", text) : 0;
}

char *layout_text(char *buf, int size, const struct layout *l)
{
    int used = 0;

    snprintf(buf, (size_t)size, "one rank");
    for (int i = AXIS_COUNT - 1; i >= 0 && used < size; i--)
        if (l->size[i] > 1 && i != AXIS_EDP)
            used += snprintf(buf + used, (size_t)(size - used), "%s%s=%d", used ? "," : "",
                             axis_name[i], l->size[i]);
    return buf;
}

char *axes_text(char buf[AXES_TEXT], unsigned axes)
{
    int used = 0;

    buf[0] = '\0';
    for (int i = AXIS_COUNT - 1; i >= 0; i--)
        if (axes & AXIS_BIT(i))
            used += snprintf(buf + used, AXES_TEXT - (size_t)used, "%s%s", used ? " x " : "",
                             axis_name[i]);
    return buf;
}

struct span layout_span(const struct layout *l, unsigned axes)
{
    if (axes && !(axes & (axes - 1))) { /* a single axis, the usual case */
        int axis = __builtin_ctz(axes);
        return (struct span){l->size[axis], l->size[axis] > 1 ? l->stride[axis] : 1};
    }
    bool experts = axes & (AXIS_BIT(AXIS_EP) | AXIS_BIT(AXIS_ETP) | AXIS_BIT(AXIS_EDP));
    const enum axis *grid = (experts ? expert_axes : dense_axes)[l->order];
    struct span s = {1, 1};

    for (int i = 0; i < GRID_AXES; i++) {
        enum axis axis = grid[i];
        if (!(axes & AXIS_BIT(axis)) || l->size[axis] == 1)
            continue;
        if (s.size == 1)
            s.stride = l->stride[axis];
        assert(l->stride[axis] == s.stride * s.size);
        s.size *= l->size[axis];
    }
    return s;
}

/* Returns those of `axes` with more than one rank. */
static unsigned longer(const struct layout *l, unsigned axes)
{
    for (int i = 0; i < AXIS_COUNT; i++)
        if (l->size[i] == 1)
            axes &= ~AXIS_BIT(i);
    return axes;
}

unsigned layout_data_axes(const struct layout *l, bool experts)
{
    bool apart = l->stride[AXIS_DP_REPLICATE] >= l->stride[AXIS_EDP] * l->size[AXIS_EDP];

    if (experts)
        return longer(l, AXIS_BIT(AXIS_EDP) | (apart ? AXIS_BIT(AXIS_DP_REPLICATE) : 0));
    return longer(l, AXIS_BIT(AXIS_CP) | AXIS_BIT(AXIS_DP_SHARD) | AXIS_BIT(AXIS_DP_REPLICATE));
}

unsigned layout_shard_axes(const struct layout *l, const struct recipe *r, bool experts)
{
    unsigned axes = layout_data_axes(l, experts);

    if (r->strategy == STRATEGY_DDP)
        return 0;
    return recipe_has_replicas(r) ? axes & ~AXIS_BIT(AXIS_DP_REPLICATE) : axes;
}

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

/* Heads and sequence swap their sharding in Ulysses' attention and around every scan. */
static int check_cp_heads(const struct layout *l, const struct model *m, const struct recipe *r,
                          struct err *err)
{
    int tp = l->size[AXIS_TP], all = l->size[AXIS_CP];

    if (r->ulysses && (r->ulysses >= all || all % r->ulysses))
        return err_usage(err, "ulysses=%d does not divide cp=%d into a ring of two or more",
                         r->ulysses, all);
    for (int i = 0; i < m->kinds && all > 1; i++) {
        const struct attention *a = &m->layer[i].attention;
        bool scan = a->kind == MIXER_MAMBA2;
        int cp = r->ulysses && !scan ? r->ulysses : all;
        if (a->kind == MIXER_NONE || (!scan && r->context != CONTEXT_ULYSSES && !r->ulysses))
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
 * split is possible (Megatron-LM --account-for-embedding-in-pipeline-split,
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

/* Ranks of one copy of the weights are equally spaced unless pipelines lie between cp and dp. */
static int check_order(const struct layout *l, struct err *err)
{
    const int *n = l->size;

    if (l->order == ORDER_TP_PP_DP && n[AXIS_CP] > 1 && n[AXIS_PP] > 1 &&
        n[AXIS_DP_SHARD] * n[AXIS_DP_REPLICATE] > 1)
        return err_usage(err,
                         "with order tp-pp-dp the pp=%d stages lie between cp=%d and dp, which "
                         "share the weights: such groups have no price",
                         n[AXIS_PP], n[AXIS_CP]);
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
    if (r->strategy != STRATEGY_DDP && !recipe_has_replicas(r) && replicate > 1)
        return err_usage(err,
                         "%s shards over all data-parallel ranks, and dp_replicate is %d: "
                         "say dp_shard, or hsdp",
                         recipe_name.strategy[r->strategy], replicate);
    return 0;
}

/* Interleaved chunks alternate in rounds of pp microbatches (Narayanan et al. 2021, 2.2); DualPipe
 * feeds both ends for two rounds. */
static int check_microbatches(int pp, const struct recipe *r, int count, struct err *err)
{
    if (r->schedule == SCHEDULE_INTERLEAVED && count % pp)
        return err_usage(err,
                         "the interleaved schedule needs a multiple of pp=%d microbatches, and a "
                         "batch of %d makes %d",
                         pp, r->global_batch, count);
    if (r->schedule == SCHEDULE_DUALPIPE && pp > 1 && (count % 2 || count < 2L * pp))
        return err_usage(err,
                         "dualpipe needs an even number of at least 2 pp=%d microbatches, and a "
                         "batch of %d makes %d",
                         2 * pp, r->global_batch, count);
    return 0;
}

int layout_check_batch(const struct layout *l, struct recipe *r, struct err *err)
{
    int pp = l->size[AXIS_PP];
    long unit = (long)l->size[AXIS_DP_SHARD] * l->size[AXIS_DP_REPLICATE] * r->micro_batch;

    if (r->global_batch == 0 && unit * (pp > 1 ? 4L * pp : 1) > 1L << 30)
        return err_usage(err, "%ld sequences per microbatch round are too many", unit);
    if (r->global_batch == 0)
        r->global_batch = (int)(unit * (pp > 1 ? 4L * pp : 1));
    /* 32-bit division takes half the time, and a search needs it for each candidate */
    int batch = r->global_batch, count = unit <= batch ? batch / (int)unit : 0;
    if (count * unit != batch)
        return err_usage(err,
                         "a batch of %d is not a multiple of %ld = %d data-parallel ranks x micro "
                         "batch %d",
                         r->global_batch, unit, (int)(unit / r->micro_batch), r->micro_batch);
    return check_microbatches(pp, r, count, err);
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

int layout_check_mesh(const struct layout *l, const struct model *m, struct recipe *r,
                      struct err *err)
{
    if (recipe_check(r, err) < 0 || check_experts(l, m, r, err) < 0 ||
        check_strategy(l, r, err) < 0 || check_order(l, err) < 0 || check_tp(l, m, err) < 0 ||
        check_sequence(l, m, r, err) < 0 || check_pp(l, m, r, err) < 0)
        return -1;
    return 0;
}
