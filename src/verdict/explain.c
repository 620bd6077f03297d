/* SPDX-License-Identifier: BSD-3-Clause */
#include "verdict/explain.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "verdict/explain_parts.h"

void explain_say(struct texts *t, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    MEM_PUSH(t->text, t->count) = mem_vprintf(fmt, args);
    va_end(args);
}

void explain_hop(struct explain *e, double Bps, const char *basis, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    MEM_PUSH(e->hop, e->hops) =
        (struct hop){mem_vprintf(fmt, args), Bps, basis ? mem_strdup(basis) : NULL};
    va_end(args);
    if (Bps > 0 && (e->narrowest < 0 || Bps < e->hop[e->narrowest].Bps))
        e->narrowest = e->hops - 1;
}

static void take_pair(struct explain *e, const struct obs *obs, int count)
{
    for (int i = 0; i < count; i++) {
        const struct obs *o = &obs[i];
        bool there = o->src == e->src && o->dst == e->dst,
             back = o->src == e->dst && o->dst == e->src;
        if (!(there || back) || !(o->sec > 0))
            continue;
        MEM_PUSH(e->measured, e->count) = (struct measured){
            o->op, o->bytes, o->sec, o->src, o->dst, o->n, o->epochs, o->alone, false};
        if (o->op == OP_PAIR_BW && there)
            e->Bps = fmax(e->Bps, o->bytes / o->sec);
    }
}

/* What the tier was measured to give stands in for a direction that this pair was not measured in.
 */
static void take_tier(struct explain *e, const struct tier *t, double factor)
{
    static const enum op of[DIR_COUNT] = {OP_PAIR_LATENCY, OP_PAIR_BW, OP_PAIR_BIBW};

    for (int d = 0; d < DIR_COUNT; d++) {
        const struct curve *c = &t->curve[d];
        bool known = false;
        for (int i = 0; i < e->count; i++)
            known |= e->measured[i].op == of[d];
        if (known || !c->points)
            continue;
        const struct curve_point *p = &c->point[d == DIR_ONEWAY ? 0 : c->points - 1];
        MEM_PUSH(e->measured, e->count) = (struct measured){
            of[d], p->bytes, p->sec, e->src, e->dst, tier_pairs(t), 0, false, true};
        if (d == DIR_UNI && !(e->Bps > 0)) {
            e->Bps = factor * p->bytes / p->sec;
            e->inferred = true;
        }
    }
}

void explain_pair(struct explain *e, const struct matrix *m, const struct topo *t,
                  const struct obs *obs, int count, int a, int b)
{
    struct nccl_profile p = {.lines = 0};
    int tier = topo_tier(m->topo.tier, m->topo.tiers, &m->topo.endpoint[a].place,
                         &m->topo.endpoint[b].place);

    *e = (struct explain){.src = a, .dst = b, .narrowest = -1, .share = NAN};
    if (t->nccl && nccl_profile_read(&p, t->nccl, "topology", NULL) == 0)
        nccl_pair_path(&p, a, b, &e->nccl);
    explain_way(e, t);
    take_pair(e, obs, obs ? count : 0);
    if (m->tiers) {
        e->tier = mem_strdup(m->tier[tier].rule.name);
        take_tier(e, &m->tier[tier], matrix_factor(m, a, b, NULL, NULL));
    }
    if (e->Bps > 0 && e->narrowest >= 0)
        e->share = e->Bps / e->hop[e->narrowest].Bps;
    if (!e->count)
        explain_say(&e->unseen, "nothing was measured of this pair or its tier");
    explain_odd(e, m, t, &p);
    nccl_profile_free(&p);
}

static void texts_free(struct texts *t)
{
    for (int i = 0; i < t->count; i++)
        free(t->text[i]);
    free(t->text);
}

void explain_free(struct explain *e)
{
    for (int i = 0; i < e->hops; i++) {
        free(e->hop[i].text);
        free(e->hop[i].basis);
    }
    free(e->hop);
    free(e->measured);
    free(e->tier);
    texts_free(&e->odd);
    texts_free(&e->unseen);
    memset(e, 0, sizeof(*e));
}

static json_t *texts_json(const struct texts *t)
{
    json_t *list = json_array();

    for (int i = 0; i < t->count; i++)
        json_array_append_new(list, json_string(t->text[i]));
    return list;
}

static json_t *known(double x)
{
    return x > 0 && isfinite(x) ? json_real(x) : json_null();
}

json_t *explain_json(const struct explain *e, const struct topo *t)
{
    json_t *hops = json_array(), *measured = json_array();

    for (int i = 0; i < e->hops; i++)
        json_array_append_new(
            hops,
            json_pack("{s:s, s:o, s:o, s:b}", "text", e->hop[i].text, "Bps", known(e->hop[i].Bps),
                      "basis", e->hop[i].basis ? json_string(e->hop[i].basis) : json_null(),
                      "narrowest", i == e->narrowest));
    for (int i = 0; i < e->count; i++) {
        const struct measured *x = &e->measured[i];
        json_array_append_new(measured,
                              json_pack("{s:s, s:i, s:i, s:f, s:f, s:i, s:i, s:b, s:s}", "op",
                                        op_name(x->op), "src", x->src, "dst", x->dst, "bytes",
                                        x->bytes, "sec", x->sec, "n", x->n, "epochs", x->epochs,
                                        "alone", x->alone, "of", x->tier ? "tier" : "pair"));
    }
    const struct endpoint *a = &t->endpoint[e->src], *b = &t->endpoint[e->dst];
    return json_pack("{s:s, s:i, s:i, s:i, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:o}",
                     "format", "railgauge-explain", "version", 1, "src", e->src, "dst", e->dst,
                     "src_host", t->host[a->place.at[LEVEL_HOST]].name, "dst_host",
                     t->host[b->place.at[LEVEL_HOST]].name, "tier", e->tier ? e->tier : "", "hops",
                     hops, "measured", measured, "Bps", known(e->Bps), "of_narrowest",
                     known(e->share), "inferred", e->inferred, "nccl_Bps", known(e->nccl), "odd",
                     texts_json(&e->odd), "unseen", texts_json(&e->unseen));
}
