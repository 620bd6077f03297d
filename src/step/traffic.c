/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/traffic.h"

#include <assert.h>

#include "step/traffic_parts.h"

const char *const exposure_name[EXPOSE_COUNT] = {
    [EXPOSE_WINDOW] = "exposed.dp",
    [EXPOSE_TP] = "exposed.tp",
    [EXPOSE_TP_PLAIN] = "exposed.tp.plain",
    [EXPOSE_CP] = "exposed.cp",
    [EXPOSE_EP] = "exposed.ep",
    [EXPOSE_EP_OVERLAP] = "exposed.ep.overlap",
    [EXPOSE_PP] = "exposed.pp.1f1b",
    [EXPOSE_PP_INTERLEAVED] = "exposed.pp.interleaved",
};
const char *const phase_name[PHASE_COUNT] = {"layer", "boundary", "forward", "backward"};

enum { LABELS = 25 };

/* The same message of another kind of layers, or when the list runs full one that differs only in
 * size. */
static struct message *find(struct traffic *t, const struct message *msg)
{
    for (int i = 0; i < t->messages; i++)
        if (t->message[i].label == msg->label &&
            (t->message[i].bytes == msg->bytes || t->messages >= TRAFFIC_MAX - LABELS))
            return &t->message[i];
    return NULL;
}

void traffic_add(struct step *s, const struct message *msg)
{
    struct span span = layout_span(s->l, msg->axes);

    if (span.size < 2 || !(msg->bytes > 0) || !(msg->count > 0))
        return;
    struct message *to = find(s->t, msg);
    if (to) {
        double count = to->count + msg->count;
        to->bytes = (to->bytes * to->count + msg->bytes * msg->count) / count;
        to->count = count;
        return;
    }
    assert(s->t->messages < TRAFFIC_MAX);
    to = &s->t->message[s->t->messages++];
    *to = *msg;
    to->span = span;
}

double message_wire_bytes(const struct message *m, int n)
{
    switch (m->op) {
    case OP_ALL_GATHER:
    case OP_REDUCE_SCATTER:
    case OP_ALL_TO_ALL:
        return m->bytes * (n - 1) / n;
    case OP_ALL_REDUCE:
        return 2 * m->bytes * (n - 1) / n;
    default:
        return m->bytes;
    }
}

/* One activation and one gradient per chunk and microbatch; sequence parallelism sends a tp-th of
 * it.  Zero-bubble schedules send the same; DualPipe sends each microbatch one way and hides it. */
static void add_pipeline(struct step *s)
{
    bool hidden = s->r->schedule == SCHEDULE_INTERLEAVED || s->r->schedule == SCHEDULE_DUALPIPE;
    double share = s->r->sequence_parallel ? s->l->size[AXIS_TP] : 1;

    traffic_add(s, &(struct message){.label = "pp sendrecv",
                                     .axes = AXIS_BIT(AXIS_PP),
                                     .exposure = hidden ? EXPOSE_PP_INTERLEAVED : EXPOSE_PP,
                                     .op = OP_SENDRECV,
                                     .bytes = s->tokens * s->m->hidden * ACTIVATION_BYTES / share,
                                     .count = 2.0 * s->r->stages * s->microbatches,
                                     .phase = PHASE_BOUNDARY,
                                     .rounds = s->microbatches,
                                     .formula =
                                         "s b h 2 / (tp cp), 2 v per microbatch (Narayanan et al. "
                                         "2021, 2.2)"});
}

static void take_layers(struct step *s)
{
    s->kinds = 0;
    for (int i = 0; i <= s->m->kinds; i++) {
        const struct layer *layer = i < s->m->kinds ? &s->m->layer[i] : &s->m->mtp;
        if (layer == &s->m->mtp && !s->r->mtp)
            continue;
        double count = stage_layers(&s->t->stage, s->m, layer);
        if (count > 0) {
            s->kind[s->kinds].layer = layer;
            s->kind[s->kinds++].count = count;
        }
    }
}

void traffic_of(struct traffic *t, const struct model *m, const struct layout *l,
                const struct recipe *r)
{
    struct step s;

    s.t = t;
    s.m = m;
    s.l = l;
    s.r = r;
    s.microbatches = layout_microbatches(l, r);
    s.tokens = (double)r->seq * r->micro_batch / l->size[AXIS_CP];
    s.again = r->recompute == RECOMPUTE_FULL;
    t->messages = 0;
    layout_slowest(&t->stage, l, m, r);
    take_layers(&s);
    traffic_add_tensor(&s);
    traffic_add_context(&s);
    traffic_add_experts(&s);
    add_pipeline(&s);
    traffic_add_state(&s);
}
