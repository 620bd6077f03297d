/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/layout.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"

const char *const axis_name[AXIS_COUNT] = {"tp",       "cp",           "ep", "etp",
                                           "dp_shard", "dp_replicate", "pp"};
const char *const order_name[ORDER_COUNT] = {"megatron", "torchtitan", "tp-pp-dp"};

/* Fastest first.  ep and etp lie inside the data-parallel ranks and take no stride of their own. */
enum { DENSE_AXES = 5 };
static const enum axis order_axes[ORDER_COUNT][DENSE_AXES] = {
    [ORDER_MEGATRON] = {AXIS_TP, AXIS_CP, AXIS_DP_SHARD, AXIS_DP_REPLICATE, AXIS_PP},
    [ORDER_TORCHTITAN] = {AXIS_TP, AXIS_CP, AXIS_DP_SHARD, AXIS_DP_REPLICATE, AXIS_PP},
    [ORDER_TP_PP_DP] = {AXIS_TP, AXIS_CP, AXIS_PP, AXIS_DP_SHARD, AXIS_DP_REPLICATE},
};

enum { AUTO = -1 };

static int find_axis(const char *word, enum strategy strategy)
{
    if (!strcmp(word, "dp"))
        return strategy == STRATEGY_DDP ? AXIS_DP_REPLICATE : AXIS_DP_SHARD;
    for (int i = 0; i < AXIS_COUNT; i++)
        if (!strcmp(word, axis_name[i]))
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
            err, "axis \"%s\" is not known (known: pp, dp, dp_replicate, dp_shard, cp, tp)", item);
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

/* The product of the given sizes, and the axis that is to fill the rest (-1: none). */
static int product(const struct layout *l, int *fill, struct err *err)
{
    long ranks = 1;

    *fill = -1;
    for (int i = 0; i < AXIS_COUNT; i++)
        if (l->size[i] == AUTO && *fill >= 0)
            return err_usage(err, "axes %s and %s are both auto", axis_name[*fill], axis_name[i]);
        else if (l->size[i] == AUTO)
            *fill = i;
        else if ((ranks *= l->size[i]) > LAYOUT_RANKS_MAX)
            return err_usage(err, "the axes multiply to more than %d ranks", LAYOUT_RANKS_MAX);
    return (int)ranks;
}

static int finish(struct layout *l, int ranks, struct err *err)
{
    int fill, have;

    for (int i = AXIS_EP; i <= AXIS_ETP; i++)
        if (l->size[i] != 1)
            return err_usage(
                err, "axis %s shards experts, and dense models have none: leave it out or say %s=1",
                axis_name[i], axis_name[i]);
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

static void set_strides(struct layout *l)
{
    int stride = 1;

    for (int i = 0; i < AXIS_COUNT; i++)
        l->stride[i] = 0;
    for (int i = 0; i < DENSE_AXES; i++) {
        enum axis axis = order_axes[l->order][i];
        l->stride[axis] = stride;
        stride *= l->size[axis];
    }
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
        rc = finish(l, ranks, err);
    free(copy);
    if (rc < 0)
        return err_wrap(err, "layout \"%s\"", text);
    set_strides(l);
    return 0;
}

char *layout_text(char *buf, int size, const struct layout *l)
{
    int used = 0;

    snprintf(buf, (size_t)size, "one rank");
    for (int i = AXIS_COUNT - 1; i >= 0 && used < size; i--)
        if (l->size[i] > 1)
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

int layout_group_size(const struct layout *l, unsigned axes)
{
    int n = 1;

    for (int i = 0; i < AXIS_COUNT; i++)
        if (axes & AXIS_BIT(i))
            n *= l->size[i];
    return n;
}

int layout_groups(const struct layout *l, unsigned axes)
{
    return l->ranks / layout_group_size(l, axes);
}

/* Rank of the index-th combination of the axes in `mask`, all others at 0. */
static int spread(const struct layout *l, unsigned mask, int index)
{
    int rank = 0;

    for (int i = 0; i < DENSE_AXES; i++) {
        enum axis axis = order_axes[l->order][i];
        if (!(mask & AXIS_BIT(axis)))
            continue;
        rank += index % l->size[axis] * l->stride[axis];
        index /= l->size[axis];
    }
    return rank;
}

void layout_group(const struct layout *l, unsigned axes, int index, int *ids)
{
    int base = spread(l, ~axes, index), n = layout_group_size(l, axes);

    for (int i = 0; i < n; i++)
        ids[i] = base + spread(l, axes, i);
}

unsigned layout_data_axes(const struct layout *l)
{
    unsigned axes = 0;

    for (int i = 0; i < AXIS_COUNT; i++)
        if ((i == AXIS_CP || i == AXIS_DP_SHARD || i == AXIS_DP_REPLICATE) && l->size[i] > 1)
            axes |= AXIS_BIT(i);
    return axes;
}

unsigned layout_shard_axes(const struct layout *l, const struct recipe *r)
{
    unsigned axes = layout_data_axes(l);

    if (r->strategy == STRATEGY_DDP)
        return 0;
    return r->strategy == STRATEGY_HSDP ? axes & ~AXIS_BIT(AXIS_DP_REPLICATE) : axes;
}
