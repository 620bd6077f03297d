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

/* One "axis=size" of the text. */
static int parse_item(struct layout *l, char *item, bool *seen, enum strategy strategy,
                      struct err *err)
{
    char *eq = strchr(item, '=');
    struct err why;

    if (!eq)
        return err_usage(err, "\"%s\" is not AXIS=SIZE", item);
    *eq = '\0';
    int axis = find_axis(item, strategy);
    if (axis < 0)
        return err_usage(
            err,
            "axis \"%s\" is not known (known: pp, dp, dp_replicate, dp_shard, cp, tp, ep, etp)",
            item);
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

/* The product of the given dense sizes, and the axis that is to fill the rest (-1: none). */
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

/* Experts are spread over the ranks of a pipeline stage; what ep and etp leave is data parallel. */
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

/* dp_replicate and pp have the same stride in both grids, but with ddp, where edp holds
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
    if (!(axes & (axes - 1))) /* one axis, as most groups */
        for (int i = 0; i < AXIS_COUNT; i++)
            if (axes == AXIS_BIT(i))
                return (struct span){l->size[i], l->size[i] > 1 ? l->stride[i] : 1};
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

/* Of `axes` those that are longer than one rank. */
static unsigned longer(const struct layout *l, unsigned axes)
{
    for (int i = 0; i < AXIS_COUNT; i++)
        if (l->size[i] == 1)
            axes &= ~AXIS_BIT(i);
    return axes;
}

static unsigned sharding(unsigned axes, const struct recipe *r)
{
    if (r->strategy == STRATEGY_DDP)
        return 0;
    return r->strategy == STRATEGY_HSDP ? axes & ~AXIS_BIT(AXIS_DP_REPLICATE) : axes;
}

unsigned layout_data_axes(const struct layout *l)
{
    return longer(l, AXIS_BIT(AXIS_CP) | AXIS_BIT(AXIS_DP_SHARD) | AXIS_BIT(AXIS_DP_REPLICATE));
}

unsigned layout_shard_axes(const struct layout *l, const struct recipe *r)
{
    return sharding(layout_data_axes(l), r);
}

unsigned layout_expert_data_axes(const struct layout *l)
{
    bool apart = l->stride[AXIS_DP_REPLICATE] >= l->stride[AXIS_EDP] * l->size[AXIS_EDP];

    return longer(l, AXIS_BIT(AXIS_EDP) | (apart ? AXIS_BIT(AXIS_DP_REPLICATE) : 0));
}

unsigned layout_expert_shard_axes(const struct layout *l, const struct recipe *r)
{
    return sharding(layout_expert_data_axes(l), r);
}

struct split {
    int pp, chunks, full, missing; /* layers of a full chunk; what all chunks together lack */
};

static struct split split_of(const struct layout *l, const struct model *m, const struct recipe *r)
{
    int pp = l->size[AXIS_PP], chunks = pp * r->stages;
    int full = (m->layers + chunks - 1) / chunks;

    return (struct split){pp, chunks, full, full * chunks - m->layers};
}

/* Layers that stage `index` lacks. */
static int missing(const struct split *s, int index)
{
    bool first = index == 0, last = index == s->pp - 1;

    if (s->missing == 2)
        return first + last;
    if (s->missing <= s->full)
        return last ? s->missing : 0;
    int lacking = 0; /* the last `missing` chunks one each; stage i has chunks i, i + pp, ... */
    for (int k = s->chunks - s->missing; k < s->chunks; k++)
        lacking += k % s->pp == index;
    return lacking;
}

void layout_stage(struct pipe_stage *s, const struct layout *l, const struct model *m,
                  const struct recipe *r, int index)
{
    struct split split = split_of(l, m, r);

    *s = (struct pipe_stage){.index = index,
                             .layers = split.full * r->stages - missing(&split, index),
                             .first = index == 0,
                             .last = index == split.pp - 1,
                             .chunks = split.chunks,
                             .rest = m->layers};
    for (int i = 0; split.pp > 1 && i < m->kinds; i++)
        s->lead += m->layer[i].count < split.chunks ? m->layer[i].count : 0;
    if (s->lead > split.full)
        s->lead = 0;
    s->rest -= s->lead;
}

double stage_layers(const struct pipe_stage *s, const struct model *m, const struct layer *kind)
{
    bool leads = s->lead && kind->count < s->chunks;
    int rest = s->layers - (s->first ? s->lead : 0);

    if (kind == &m->mtp)
        return s->last ? kind->count : 0;
    if (leads)
        return s->first ? kind->count : 0;
    return (double)rest * kind->count / s->rest;
}

/* Active parameters: what a token costs. */
static double weight_of(const struct pipe_stage *s, const struct model *m, const struct recipe *r)
{
    double head = (double)m->hidden * m->vocab, sum = s->last ? head : 0;

    for (int i = 0; i < m->kinds; i++)
        sum += stage_layers(s, m, &m->layer[i]) * m->layer[i].sums.active;
    if (r->mtp && s->last && m->mtp.count)
        sum += m->mtp.count * (m->mtp.sums.active + head);
    return sum;
}

void layout_slowest(struct pipe_stage *s, const struct layout *l, const struct model *m,
                    const struct recipe *r)
{
    int pp = l->size[AXIS_PP], at[] = {0, 1, pp / 2, pp - 1};
    double most = -1;

    layout_stage(s, l, m, r, 0);
    if (pp == 1)
        return;
    for (int i = 0; i < 4; i++) {
        struct pipe_stage one;
        layout_stage(&one, l, m, r, at[i]);
        double weight = weight_of(&one, m, r);
        if (weight > most * (1 + 1e-12)) {
            most = weight;
            *s = one;
        }
    }
}

static void append(char *buf, int size, int *used, int layers, int times, bool end)
{
    if (*used >= size)
        return;
    *used += snprintf(buf + *used, (size_t)(size - *used), "%s%d",
                      !*used ? "stages of "
                      : end  ? " and "
                             : ", ",
                      layers);
    if (times > 1 && *used < size)
        *used += snprintf(buf + *used, (size_t)(size - *used), " (%d times)", times);
}

char *layout_stages_text(char *buf, int size, const struct layout *l, const struct model *m,
                         const struct recipe *r)
{
    struct split split = split_of(l, m, r);
    int used = 0;

    buf[0] = '\0';
    for (int i = 0, next; split.missing && i < split.pp; i = next) {
        int lacks = missing(&split, i);
        for (next = i + 1; next < split.pp && missing(&split, next) == lacks;)
            next++;
        if (next - i == split.pp)
            break;
        append(buf, size, &used, split.full * r->stages - lacks, next - i, next == split.pp);
    }
    if (used && used < size)
        snprintf(buf + used, (size_t)(size - used), " layers");
    return buf;
}

static void hold_kind(struct stage_held *h, const struct recipe *r, const struct layer *kind,
                      double count)
{
    const struct layer_sums *one = &kind->sums;

    h->layers += count;
    h->expert_layers += kind->mlp.experts ? count : 0;
    h->expert += count * one->expert;
    h->dense += count * (one->total - one->expert);
    if (r->lora)
        h->lora +=
            count * r->lora_rank * (one->lora_mixer + (r->lora == LORA_ALL ? one->lora_mlp : 0));
    if (r->lora == LORA_ALL)
        h->lora_expert += count * r->lora_rank * one->lora_expert;
}

/* Embedding, positions, last norm and head; a tied matrix is in both end stages. */
static double end_params(const struct model *m, const struct pipe_stage *s)
{
    double h = m->hidden, table = h * m->vocab;

    return (s->first ? table + h * m->positions : 0) +
           (s->last ? h + (m->tied && s->first ? 0 : table) : 0);
}

void layout_held(struct stage_held *h, const struct pipe_stage *s, const struct layout *l,
                 const struct model *m, const struct recipe *r)
{
    double tp = l->size[AXIS_TP], mp = (double)l->size[AXIS_EP] * l->size[AXIS_ETP];
    double copies = r->schedule == SCHEDULE_DUALPIPE && l->size[AXIS_PP] > 1 ? 2 : 1;

    *h = (struct stage_held){.dense = end_params(m, s)};
    for (int i = 0; i < m->kinds; i++)
        hold_kind(h, r, &m->layer[i], stage_layers(s, m, &m->layer[i]));
    if (r->mtp && s->last && m->mtp.count) {
        double own = m->mtp_shared ? 1 : m->mtp.count, width = m->hidden;
        hold_kind(h, r, &m->mtp, own);
        h->dense += own * (2 * width * width + 3 * width); /* as mtp_params() */
    }
    h->dense *= copies / tp;
    h->lora *= copies / tp;
    h->expert *= copies / mp;
    h->lora_expert *= copies / mp;
    h->layers *= copies;
    h->expert_layers *= copies;
}

double layout_updated(const struct stage_held *h, const struct layout *l, const struct recipe *r)
{
    double dense = layout_span(l, layout_shard_axes(l, r)).size;
    double expert = layout_span(l, layout_expert_shard_axes(l, r)).size;

    return r->lora ? h->lora / dense + h->lora_expert / expert
                   : h->dense / dense + h->expert / expert;
}
