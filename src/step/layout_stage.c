/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "step/layout.h"

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
