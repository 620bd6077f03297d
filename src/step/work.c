/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/work.h"

#include <string.h>

#include "step/traffic.h"
#include "step/work_parts.h"

const char *const work_name[WORK_PARTS] = {
    [WORK_LINEAR] = "matrix products",  [WORK_EXPERT] = "routed experts",
    [WORK_HEAD] = "output head",        [WORK_CORE] = "attention core",
    [WORK_SCAN] = "state-space scan",   [WORK_OPERANDS] = "experts' operands",
    [WORK_MEMORY] = "between products", [WORK_LAUNCH] = "kernel launches",
};

/* One microbatch of one layer of each kind, and of what the last stage has more. */
struct kinds {
    struct stage_work layer[MODEL_KINDS_MAX], head, mtp;
};

static void add_stage(struct stage_work *s, const struct kinds *k, const struct model *m,
                      const struct recipe *r, const struct pipe_stage *stage)
{
    memset(s, 0, sizeof(*s));
    for (int i = 0; i < m->kinds; i++)
        work_add(s, &k->layer[i], stage_layers(stage, m, &m->layer[i]));
    if (stage->last)
        work_add(s, &k->head, 1);
    if (stage->last && r->mtp)
        work_add(s, &k->mtp, m->mtp.count);
}

static void mean_stage(struct stage_work *s, const struct kinds *k, const struct model *m,
                       const struct recipe *r, double stages)
{
    for (int i = 0; i < m->kinds; i++)
        work_add(s, &k->layer[i], m->layer[i].count / stages);
    work_add(s, &k->head, 1 / stages);
    if (r->mtp)
        work_add(s, &k->mtp, m->mtp.count / stages);
}

static double products_of(const struct stage_work *s)
{
    return s->forward[WORK_LINEAR] + s->forward[WORK_EXPERT] + s->forward[WORK_CORE];
}

/* The stages that can be the slowest: of those without the head the fullest, and the one with it.
 * DualPipe gives each rank a stage from either end (DeepSeek-V3, 2024, 3.2.1): two of the mean,
 * half the microbatches through each. */
static void add_stages(struct work *w, const struct kinds *k, const struct model *m,
                       const struct layout *l, const struct recipe *r)
{
    int pp = l->size[AXIS_PP], at[] = {0, 1, pp / 2};
    struct pipe_stage stage;

    mean_stage(&w->mean, k, m, r, pp);
    if (r->schedule == SCHEDULE_DUALPIPE || pp == 1) {
        w->other = w->last = w->mean;
        return;
    }
    layout_stage(&stage, l, m, r, pp - 1);
    add_stage(&w->last, k, m, r, &stage);
    for (int i = 0; i < 3 && at[i] < pp - 1; i++) {
        struct stage_work one;
        layout_stage(&stage, l, m, r, at[i]);
        add_stage(&one, k, m, r, &stage);
        if (products_of(&one) > products_of(&w->other))
            w->other = one;
    }
}

static double updated(const struct model *m, const struct layout *l, const struct recipe *r)
{
    struct pipe_stage slowest;
    struct held held;

    layout_slowest(&slowest, l, m, r);
    traffic_held(&held, m, l, r, &slowest);
    return traffic_states(&held, l, r);
}

void work_of(struct work *w, const struct model *m, const struct layout *l, const struct recipe *r)
{
    struct work_step st;
    struct kinds k;

    memset(w, 0, sizeof(*w));
    work_step(&st, m, l, r);
    for (int i = 0; i < m->kinds; i++)
        work_layer(&k.layer[i], &st, &m->layer[i]);
    work_head(&k.head, &st);
    if (r->mtp && m->mtp.count)
        work_mtp(&k.mtp, &st, &k.head);
    add_stages(w, &k, m, l, r);
    w->weights = st.trained;
    w->updated = updated(m, l, r);
}
