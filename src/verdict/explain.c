/* SPDX-License-Identifier: BSD-3-Clause */
#include "verdict/explain.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "topo/gpu.h"
#include "topo/lint/lint.h"
#include "topo/nccl_profile.h"
#include "topo/nic.h"

enum { FLAT_GPUS = 4 }; /* this many GPUs behind one host bridge are no real machine */

static void take_pair(struct explain *e, const struct obs *obs, int count)
{
    for (int i = 0; i < count; i++) {
        const struct obs *o = &obs[i];
        bool there = o->src == e->src && o->dst == e->dst,
             back = o->src == e->dst && o->dst == e->src;
        if (!(there || back) || o->by_nic || !(o->sec > 0))
            continue;
        MEM_PUSH(e->measured, e->count) =
            (struct measured){o->op,          o->bytes,      o->sec,   o->src, o->dst,
                              obs_samples(o), obs_epochs(o), o->alone, false};
        if (o->op == OP_PAIR_BW && there)
            e->Bps = fmax(e->Bps, o->bytes / o->sec);
    }
}

/* Use the measured tier rate for a direction that this pair was not measured in. */
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

/* --- oddities: slow parts, devices unlike their peers, far NICs --- */

static void odd_exceptions(struct explain *e, const struct matrix *m)
{
    int tier = matrix_tier(m, e->src, e->dst);
    char part[MATRIX_PART], effect[MATRIX_EFFECT];

    for (int i = 0; i < m->exceptions; i++) {
        const struct exception *x = &m->exception[i];
        bool there = matrix_crosses(m, x, e->src, e->dst, tier),
             back = matrix_crosses(m, x, e->dst, e->src, tier);
        const char *way = there ? "" : " (on the way back)", *why = x->why ? x->why : "";
        if (there || back)
            explain_say(&e->odd, "%s%s: %s%s%s", matrix_part(m, x, part), way,
                        matrix_effect(x, true, effect), *why ? ": " : "", why);
    }
}

/* Add findings of the lint about these two hosts, devices and NICs. */
static void odd_peers(struct explain *e, const struct topo *t)
{
    struct lint l = {0};

    lint_hosts(&l, t);
    for (int i = 0; i < l.findings; i++)
        for (int side = 0; side < 2; side++) {
            const struct endpoint *x = &t->endpoint[side ? e->dst : e->src];
            const char *host = t->host[x->place.at[LEVEL_HOST]].name, *what = l.finding[i].what;
            size_t len = strlen(host);
            char device[32];
            if (strncmp(what, host, len) != 0 || (what[len] && what[len] != ' '))
                continue;
            snprintf(device, sizeof(device), " GPU %d", x->local);
            if (!what[len] || !strcmp(what + len, device) ||
                (x->nic >= 0 && !strcmp(what + len + 1, t->nic[x->nic].name))) {
                explain_say(&e->odd, "%s", l.finding[i].text);
                if (!strcmp(what, host) &&
                    topo_at(t, e->src, LEVEL_HOST) == topo_at(t, e->dst, LEVEL_HOST))
                    break; /* both ends are on this host: print once */
            }
        }
    lint_free(&l);
}

static void odd_pcie(struct explain *e, const struct topo *t, int endpoint)
{
    int i = t->endpoint[endpoint].gpu, nic = t->endpoint[endpoint].nic;
    const struct gpu *g = i >= 0 ? &t->gpu[i] : NULL;
    const char *host = t->host[topo_at(t, endpoint, LEVEL_HOST)].name;
    int local = t->endpoint[endpoint].local;

    if (g && g->pcie_width > 0 && g->pcie_width < g->pcie_width_max)
        explain_say(&e->odd, "%s GPU %d: PCIe x%d of x%d", host, local, g->pcie_width,
                    g->pcie_width_max);
    if (g && g->pcie_gen > 0 && g->pcie_gen < g->pcie_gen_max)
        explain_say(&e->odd,
                    "%s GPU %d: PCIe generation %d of %d when it was looked at (an idle GPU saves "
                    "power that way)",
                    host, local, g->pcie_gen, g->pcie_gen_max);
    if (nic >= 0 && t->nic[nic].numa >= 0 && t->endpoint[endpoint].numa >= 0 &&
        t->nic[nic].numa != t->endpoint[endpoint].numa)
        explain_say(&e->odd,
                    "%s GPU %d: its NIC %s is on NUMA node %d and the GPU on %d: across sockets "
                    "(SYS)",
                    host, local, t->nic[nic].name, t->nic[nic].numa, t->endpoint[endpoint].numa);
}

/* True if all GPUs and NICs share one host bridge without a PCIe switch. */
static bool flat_by_nccl(const struct nccl_profile *p, int endpoint)
{
    int dump = endpoint < p->wheres ? p->where[endpoint].dump : -1;

    if (dump < 0)
        return false;
    const struct nccl_paths *d = &p->paths[dump];
    for (int i = 0; i < d->gpus * d->nets; i++)
        if (d->nic[i].type != NCCL_PATH_PHB)
            return false;
    return d->gpus > 1 && d->nets > 0;
}

static bool flat_by_driver(const struct topo *t, int host)
{
    int gpus = 0;

    for (int i = 0; i < t->gpus; i++) {
        const struct gpu *g = &t->gpu[i];
        if (g->host != host)
            continue;
        gpus++;
        for (int k = 0; k < g->paths; k++)
            if (k != g->index && g->path[k] != PATH_PHB)
                return false;
        if (g->paths < FLAT_GPUS)
            return false;
    }
    return gpus >= FLAT_GPUS;
}

static void odd_host(struct explain *e, const struct topo *t, const struct nccl_profile *p,
                     int endpoint)
{
    int host = topo_at(t, endpoint, LEVEL_HOST);

    if (flat_by_nccl(p, endpoint) || flat_by_driver(t, host))
        explain_say(&e->odd,
                    "%s: all paths of its GPUs%s are PHB and the bridges are hidden: a virtual "
                    "machine; NCCL needs NCCL_TOPO_FILE to know what is near",
                    t->host[host].name, flat_by_nccl(p, endpoint) ? " and NICs" : "");
    if (!strcmp(t->host[host].gdr, "none"))
        explain_say(&e->odd,
                    "%s: no GPUDirect RDMA: what leaves a GPU is copied through host memory",
                    t->host[host].name);
}

static void odd_rails(struct explain *e, const struct topo *t)
{
    const struct place *x = &t->endpoint[e->src].place, *y = &t->endpoint[e->dst].place;
    int a = x->at[LEVEL_RAIL], b = y->at[LEVEL_RAIL];

    if (x->at[LEVEL_HOST] == y->at[LEVEL_HOST] || a < 0 || b < 0 || a == b ||
        (x->at[LEVEL_DOMAIN] >= 0 && x->at[LEVEL_DOMAIN] == y->at[LEVEL_DOMAIN]))
        return;
    explain_say(&e->odd,
                "the two are on different rails, %s and %s: the way crosses the spines (NCCL's PXN "
                "goes over NVLink to a GPU of the other rail first)",
                t->group[LEVEL_RAIL].name[a], t->group[LEVEL_RAIL].name[b]);
}

static void explain_odd(struct explain *e, const struct matrix *m, const struct topo *t,
                        const struct nccl_profile *p)
{
    bool inside = topo_at(t, e->src, LEVEL_HOST) == topo_at(t, e->dst, LEVEL_HOST);

    odd_exceptions(e, m);
    odd_pcie(e, t, e->src);
    odd_pcie(e, t, e->dst);
    odd_host(e, t, p, e->src);
    if (!inside)
        odd_host(e, t, p, e->dst);
    odd_rails(e, t);
    odd_peers(e, t);
    if (e->nccl > 0 && e->Bps > 0 && e->Bps < 0.67 * e->nccl)
        explain_say(&e->odd, "measured %.1f GB/s where NCCL assumes %.1f", e->Bps / 1e9,
                    e->nccl / 1e9);
}

void explain_pair(struct explain *e, const struct matrix *m, const struct topo *t,
                  const struct obs *obs, int count, int a, int b)
{
    struct nccl_profile p = {.lines = 0};
    int tier = matrix_tier(m, a, b);

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

void explain_below(struct explain *e, const struct below *b)
{
    e->has_below = true;
    below_pair(&e->below, b, e->src, e->dst);
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
    below_said_free(&e->below);
    texts_free(&e->odd);
    texts_free(&e->unseen);
    memset(e, 0, sizeof(*e));
}

static json_t *known(double x)
{
    return x > 0 && isfinite(x) ? json_real(x) : json_null();
}

json_t *explain_json(const struct explain *e, const struct topo *t, const struct below *below)
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
    return json_pack(
        "{s:s, s:i, s:i, s:i, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:o*}",
        "format", "railgauge-explain", "version", 1, "src", e->src, "dst", e->dst, "src_host",
        t->host[a->place.at[LEVEL_HOST]].name, "dst_host", t->host[b->place.at[LEVEL_HOST]].name,
        "tier", e->tier ? e->tier : "", "hops", hops, "measured", measured, "Bps", known(e->Bps),
        "of_narrowest", known(e->share), "inferred", e->inferred, "nccl_Bps", known(e->nccl), "odd",
        json_texts(e->odd.text, e->odd.count), "unseen",
        json_texts(e->unseen.text, e->unseen.count), "below",
        below && e->has_below ? below_json(below, &e->below) : NULL);
}
