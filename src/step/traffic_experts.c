/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages between experts: ep and etp. */
#include <math.h>

#include "step/traffic_parts.h"

/* None of k distinct experts, drawn from `pool`, is among `part` of them: C(pool - part, k) /
 * C(pool, k). */
static double miss(double pool, double part, int k)
{
    double p = 1;

    for (int i = 0; i < k && p > 0; i++)
        p *= fmax(0, pool - part - i) / (pool - i);
    return p;
}

/* Of `drawn` ones of `pool`, j are among `part`: C(part, j) C(pool - part, drawn - j) / C(pool,
 * drawn), one draw at a time. */
static double hypergeometric(int pool, int part, int drawn, int j)
{
    double p = 1;

    for (int i = 0; i < drawn; i++)
        p *= i < j ? (double)(part - i) / (pool - i) * (drawn - i) / (j - i)
                   : fmax(0, pool - part - (i - j)) / (pool - i);
    return p;
}

/* With limited groups a token first draws groups, then experts of those. */
static double miss_limited(const struct routing *r, double part)
{
    double size = (double)r->experts / r->groups, pool = size * r->groups_max, none = 0;
    int whole = (int)(part / size + 0.5), drawn = r->groups_max;

    if (part < size) {
        double drawn_share = (double)drawn / r->groups;
        return 1 - drawn_share + drawn_share * miss(pool, part, r->topk);
    }
    for (int j = 0; j <= whole && j <= drawn; j++)
        none += hypergeometric(r->groups, whole, drawn, j) * miss(pool, j * size, r->topk);
    return none;
}

double routing_parts(const struct routing *r, int members)
{
    double part = (double)r->experts * members / r->ranks;
    bool limited = r->groups_max > 0 && r->groups_max < r->groups;

    return (double)r->ranks / members *
           (1 - (limited ? miss_limited(r, part) : miss(r->experts, part, r->topk)));
}

double message_crossing_bytes(const struct message *m, int members)
{
    double n = m->span.size;

    if (m->kernel == EP_NONE || !m->route.ranks)
        return m->bytes * (n - members) / n;
    double parts = routing_parts(&m->route, members);
    if (m->route.domains_max)
        parts = fmin(parts, m->route.domains_max);
    return m->bytes / routing_parts(&m->route, 1) * parts * (n - members) / n;
}

static void add_ep(struct step *s, const char *label, enum ep_kernel kernel, double bytes,
                   double count, const struct routing *route, const char *formula)
{
    traffic_add(s, &(struct message){.label = label,
                                     .axes = AXIS_BIT(AXIS_EP),
                                     .exposure = s->r->ep_overlap ? EXPOSE_EP_OVERLAP : EXPOSE_EP,
                                     .op = OP_ALL_TO_ALL,
                                     .kernel = kernel,
                                     .bytes = bytes,
                                     .count = count * s->microbatches,
                                     .phase = PHASE_LAYER,
                                     .rounds = s->microbatches,
                                     .route = *route,
                                     .formula = formula});
}

/* Tokens of one rank to their experts and back, and their gradients the other way: a gradient
 * travels to experts as a token does, in as many bytes (DeepSeek-V3 2024, 3.3.2). */
static void add_all_to_all(struct step *s, const struct mlp *p, double n)
{
    struct routing route = {.ranks = s->l->size[AXIS_EP],
                            .experts = p->experts,
                            .topk = p->topk,
                            .groups = p->groups,
                            .groups_max = p->nodes_max,
                            .domains_max = s->r->route_nodes};
    bool kernel = s->r->dispatch == DISPATCH_KERNEL;
    double width = p->latent ? p->latent : s->m->hidden;
    double values =
        s->tokens / s->l->size[AXIS_TP] * width * (kernel ? routing_parts(&route, 1) : p->topk);

    add_ep(s, "ep dispatch", kernel ? EP_DISPATCH : EP_NONE, values * s->r->dispatch_bytes,
           (2 + s->again) * n, &route,
           kernel ? "s b h / (tp cp) bytes for each rank with an expert of the token, forward and "
                    "backward (DeepSeek-V3 2024, 3.2.2)"
                  : "s b h topk / (tp cp) bytes, forward and backward (Megatron-LM "
                    "core/transformer/moe/token_dispatcher.py)");
    add_ep(s, "ep combine", kernel ? EP_COMBINE : EP_NONE, values * s->r->combine_bytes,
           (2 + s->again) * n, &route,
           kernel ? "as dispatch, the other way (DeepSeek-V3 2024, 3.2.2)"
                  : "as dispatch, the other way (Megatron-LM "
                    "core/transformer/moe/token_dispatcher.py)");
}

/* Before an all_to_all of uneven sizes every rank tells how many tokens go to each expert. */
static void add_counts(struct step *s, const struct mlp *p, double n)
{
    if (s->r->dispatch == DISPATCH_NCCL)
        traffic_add(s, &(struct message){.label = "ep all_gather of counts",
                                         .axes = AXIS_BIT(AXIS_EP),
                                         .exposure = EXPOSE_EP,
                                         .op = OP_ALL_GATHER,
                                         .bytes = 8.0 * p->experts * s->l->size[AXIS_EP],
                                         .count = (1 + s->again) * n * s->microbatches,
                                         .phase = PHASE_LAYER,
                                         .rounds = s->microbatches,
                                         .formula = "8 E ep bytes, forward (Megatron-LM "
                                                    "core/transformer/moe/token_dispatcher.py)"});
}

/* An expert's columns lie on etp ranks: each needs all tokens that came to any of them. */
static void add_expert_tensor(struct step *s, const struct mlp *p, double n)
{
    double width = p->latent ? p->latent : s->m->hidden;
    struct message msg = {.axes = AXIS_BIT(AXIS_ETP),
                          .exposure = EXPOSE_TP_PLAIN,
                          .bytes = s->tokens / s->l->size[AXIS_TP] * p->topk * width *
                                   ACTIVATION_BYTES * s->l->size[AXIS_ETP],
                          .count = (2 + s->again) * n * s->microbatches,
                          .phase = PHASE_LAYER,
                          .rounds = s->microbatches,
                          .formula =
                              "s b h topk 2 etp / (tp cp), forward and backward (Megatron-LM "
                              "core/transformer/moe/token_dispatcher.py)"};

    msg.label = "etp all_gather";
    msg.op = OP_ALL_GATHER;
    traffic_add(s, &msg);
    msg.label = "etp reduce_scatter";
    msg.op = OP_REDUCE_SCATTER;
    traffic_add(s, &msg);
}

void traffic_add_experts(struct step *s)
{
    for (int i = 0; i < s->kinds; i++) {
        const struct mlp *p = &s->kind[i].layer->mlp;
        if (!p->experts)
            continue;
        if (s->l->size[AXIS_EP] > 1) {
            add_all_to_all(s, p, s->kind[i].count);
            add_counts(s, p, s->kind[i].count);
        }
        if (s->l->size[AXIS_ETP] > 1)
            add_expert_tensor(s, p, s->kind[i].count);
    }
}
