/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/work.h"

#include <string.h>

#include "step/traffic.h"

const char *const work_name[WORK_PARTS] = {
    [WORK_LINEAR] = "matrix products", [WORK_EXPERT] = "routed experts",
    [WORK_HEAD] = "output head",       [WORK_CORE] = "attention core",
    [WORK_MEMORY] = "memory-bound",    [WORK_LAUNCH] = "kernel launches",
};

static void mean_stage(struct stage_work *s, const struct model *m, const struct layout *l,
                       const struct recipe *r)
{
    double share = (double)r->seq * r->micro_batch /
                   ((double)l->size[AXIS_TP] * l->size[AXIS_CP] * l->size[AXIS_PP]);
    bool full = r->recompute == RECOMPUTE_FULL, some = r->recompute != RECOMPUTE_NONE;
    struct flops f;

    model_flops(m, r->seq, r->causal, &f);
    s->forward[WORK_LINEAR] = (f.linear - f.expert) * share / 3;
    s->forward[WORK_EXPERT] = f.expert * share / 3;
    s->forward[WORK_HEAD] = f.head * share / 3;
    s->forward[WORK_CORE] = f.core * share / 3;
    for (int i = WORK_LINEAR; i <= WORK_CORE; i++) {
        bool again = i == WORK_CORE ? some : full;
        s->backward[i] = s->forward[i] * (again ? 3 : 2);
    }
}

void work_of(struct work *w, const struct model *m, const struct layout *l, const struct recipe *r)
{
    memset(w, 0, sizeof(*w));
    mean_stage(&w->mean, m, l, r);
    w->other = w->last = w->mean;
    w->weights = 1;
    w->updated = traffic_params(m, l) / layout_span(l, layout_shard_axes(l, r)).size;
}
