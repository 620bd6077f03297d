/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/step.h"

#include <stdio.h>

struct split {
    /* full: layers of a full chunk; missing: layers short in all chunks together */
    int pp, chunks, full, missing;
    int lead; /* layers at the start of the model, in the first stage only */
    /* layers that make up a chunk's share of the cost; 0: split by layers */
    double share;
};

/* Number of layers with the cost of the whole model, including the head. */
static double cost_of(const struct model *m)
{
    double layers = 0;

    for (int i = 0; i < m->kinds; i++)
        layers += m->layer[i].count * m->layer[i].sums.active;
    return m->layers * (1 + (double)m->hidden * m->vocab / layers);
}

static struct split split_of(const struct step *s)
{
    int pp = s->l->size[AXIS_PP], chunks = pp * s->r->stages, lead = 0;
    int full = (s->m->layers + chunks - 1) / chunks;

    for (int i = 0; pp > 1 && i < s->m->kinds; i++)
        lead += s->m->layer[i].count < chunks ? s->m->layer[i].count : 0;
    double share = s->r->stage_split == STAGE_SPLIT_COST && pp > 1 ? cost_of(s->m) / chunks : 0;
    return (struct split){pp,   chunks, full, full * chunks - s->m->layers, lead > full ? 0 : lead,
                          share};
}

/* Returns the layers of the first k chunks, each of which takes layers until it passes its
 * share. */
static int before_chunk(const struct split *s, int k)
{
    int layers = s->full * s->chunks - s->missing, taken = k ? (int)(k * s->share) + 1 : 0;

    return taken < layers ? taken : layers;
}

/* Returns the layers that stage `index` is short of; negative for more, possible by cost. */
static int missing(const struct split *s, int index)
{
    bool first = index == 0, last = index == s->pp - 1;
    int layers = 0;

    for (int k = index; s->share > 0 && k < s->chunks; k += s->pp)
        layers += before_chunk(s, k + 1) - before_chunk(s, k);
    if (s->share > 0)
        return s->full * (s->chunks / s->pp) - layers;
    if (s->missing == 2)
        return first + last;
    if (s->missing <= s->full)
        return last ? s->missing : 0;
    /* the last `missing` chunks lack one each; stage i has chunks i, i + pp, ... */
    int lacking = 0;
    for (int k = s->chunks - s->missing; k < s->chunks; k++)
        lacking += k % s->pp == index;
    return lacking;
}

static void count_layers(struct pipe_stage *out, const struct step *s, const struct split *split)
{
    const struct model *m = s->m;
    int rest = out->layers - (out->first ? split->lead : 0);

    for (int i = 0; i < m->kinds; i++) {
        int n = m->layer[i].count;
        bool leads = split->lead && n < split->chunks;
        out->count[i] = !leads ? (double)rest * n / (m->layers - split->lead) : out->first ? n : 0;
    }
    out->count[m->kinds] = s->r->mtp && out->last ? m->mtp.count : 0;
}

static void hold_kind(struct pipe_stage *out, const struct recipe *r, const struct layer *kind,
                      double count)
{
    const struct layer_sums *one = &kind->sums;

    out->held += count;
    out->held_experts += kind->mlp.experts ? count : 0;
    out->expert += count * one->expert;
    out->dense += count * (one->total - one->expert);
    if (r->lora)
        out->lora +=
            count * r->lora_rank * (one->lora_mixer + (r->lora == LORA_ALL ? one->lora_mlp : 0));
    if (r->lora == LORA_ALL)
        out->lora_expert += count * r->lora_rank * one->lora_expert;
}

/* Embedding, positions, last norm and head; a tied matrix is in both end stages. */
static double end_params(const struct model *m, const struct pipe_stage *s)
{
    double h = m->hidden, table = h * m->vocab;

    return (s->first ? table + h * m->positions : 0) +
           (s->last ? h + (m->tied && s->first ? 0 : table) : 0);
}

static void hold(struct pipe_stage *out, const struct step *s)
{
    const struct model *m = s->m;
    const int *size = s->l->size;
    double tp = size[AXIS_TP], mp = (double)size[AXIS_EP] * size[AXIS_ETP];
    double copies = s->r->schedule == SCHEDULE_DUALPIPE && size[AXIS_PP] > 1 ? 2 : 1;

    out->dense = end_params(m, out);
    for (int i = 0; i < m->kinds; i++)
        hold_kind(out, s->r, &m->layer[i], out->count[i]);
    if (out->count[m->kinds] > 0) {
        double own = m->mtp_shared ? 1 : m->mtp.count, width = m->hidden;
        hold_kind(out, s->r, &m->mtp, own);
        out->dense += own * (2 * width * width + 3 * width); /* as mtp_params() */
    }
    out->dense *= copies / tp;
    out->lora *= copies / tp;
    out->expert *= copies / mp;
    out->lora_expert *= copies / mp;
    out->held *= copies;
    out->held_experts *= copies;
}

static void make_stage(struct pipe_stage *out, const struct step *s, const struct split *split,
                       int index)
{
    out->index = index;
    out->layers = split->full * s->r->stages - missing(split, index);
    out->first = index == 0;
    out->last = index == split->pp - 1;
    out->lora = out->lora_expert = out->expert = out->held = out->held_experts = 0;
    count_layers(out, s, split);
    hold(out, s);
}

void step_stage(struct pipe_stage *out, const struct step *s, int index)
{
    struct split split = split_of(s);

    make_stage(out, s, &split, index);
}

/* Active parameters, proportional to the cost of a token. */
static double active(const struct step *s, const struct pipe_stage *stage)
{
    const struct model *m = s->m;
    double head = (double)m->hidden * m->vocab, sum = stage->last ? head : 0;

    for (int i = 0; i < m->kinds; i++)
        sum += stage->count[i] * m->layer[i].sums.active;
    return sum + stage->count[m->kinds] * (m->mtp.sums.active + head);
}

static void make_stages(struct step *s)
{
    struct split split = split_of(s);
    double most = -1;

    s->stages = split.pp < STEP_STAGES ? split.pp : STEP_STAGES;
    for (int i = 0; i < s->stages; i++) {
        make_stage(&s->stage[i], s, &split, i + 1 < s->stages ? i : split.pp - 1);
        double sum = active(s, &s->stage[i]);
        if (sum > most * (1 + 1e-12)) {
            most = sum;
            s->slowest = i;
        }
    }
}

void step_batch(struct step *s, const struct recipe *r)
{
    s->r = r;
    s->tokens = (double)r->seq * r->micro_batch / s->l->size[AXIS_CP];
    s->microbatches = layout_microbatches(s->l, r);
}

static struct step_grid grid_of(const struct layout *l, const struct recipe *r, bool experts)
{
    unsigned shard = layout_shard_axes(l, r, experts);

    return (struct step_grid){layout_data_axes(l, experts), shard, layout_span(l, shard).size};
}

void step_of(struct step *s, const struct model *m, const struct layout *l, const struct recipe *r)
{
    s->m = m;
    s->l = l;
    step_batch(s, r);
    s->trained = r->lora == LORA_NONE;
    s->dense = grid_of(l, r, false);
    s->expert = grid_of(l, r, true);
    make_stages(s);
    const struct pipe_stage *one = &s->stage[s->slowest];
    s->updated = r->lora ? one->lora / s->dense.shards + one->lora_expert / s->expert.shards
                         : one->dense / s->dense.shards + one->expert / s->expert.shards;
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

char *step_stages_text(char *buf, int size, const struct step *s)
{
    struct split split = split_of(s);
    int used = 0;

    buf[0] = '\0';
    for (int i = 0, next; (split.missing || split.share > 0) && i < split.pp; i = next) {
        int lacks = missing(&split, i);
        for (next = i + 1; next < split.pp && missing(&split, next) == lacks;)
            next++;
        if (next - i == split.pp)
            break;
        append(buf, size, &used, split.full * s->r->stages - lacks, next - i, next == split.pp);
    }
    if (used && used < size)
        snprintf(buf + used, (size_t)(size - used), " layers");
    return buf;
}
