/* SPDX-License-Identifier: BSD-3-Clause */
#include "cost/fit/fit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "cost/fit/fit_state.h"
#include "topo/host/nic.h"

void fit_defaults(struct fit_opts *o)
{
    o->outlier = 0.035;
}

bool fit_is_bandwidth(const struct fit *f, const struct obs *o)
{
    return o->op == OP_PAIR_BW && o->bytes == f->bw_bytes;
}

bool fit_healthy(const struct fit *f, int src, int dst)
{
    double there, back;

    return matrix_factor(f->m, src, dst, NULL, &there) >= 1 &&
           matrix_factor(f->m, dst, src, NULL, &back) >= 1 && !(there > 0) && !(back > 0);
}

const char *fit_endpoint(const struct fit *f, int id, char buf[96])
{
    const struct endpoint *e = &f->m->topo.endpoint[id];

    snprintf(buf, 96, "%d (%.64s:%d)", id, f->m->topo.host[e->place.at[LEVEL_HOST]].name, e->local);
    return buf;
}

static int check(const struct topo *t, const struct points *p, struct err *err)
{
    if (t->endpoints < 2)
        return err_data(err, "the topology has %d endpoints; a fit needs two", t->endpoints);
    if (t->tiers < 1)
        return err_data(err, "the topology has no tiers");
    if (p->endpoints != t->endpoints)
        return err_data(err, "the points are of %d endpoints, the topology has %d", p->endpoints,
                        t->endpoints);
    for (int i = 0; i < p->count; i++) {
        const struct point *q = &p->point[i];
        if (op_is_pair(q->op) && (q->src < 0 || q->dst < 0 || q->src >= t->endpoints ||
                                  q->dst >= t->endpoints || q->src == q->dst))
            return err_data(err, "point %d: no pair %d, %d among %d endpoints", i + 1, q->src,
                            q->dst, t->endpoints);
    }
    return p->count ? 0 : err_data(err, "no points: nothing to fit");
}

/* Tiers as the topology has them now, before anything is known of them. */
static void start_tiers(struct matrix *m)
{
    m->tiers = m->topo.tiers;
    for (int i = 0; i < m->tiers; i++) {
        struct tier *t = &m->tier[i];
        t->rule = m->topo.tier[i];
        t->basis = BASIS_MEASURED;
        t->loaded = NAN;
        t->nic = !(t->rule.same & (1u << LEVEL_HOST | 1u << LEVEL_DOMAIN));
    }
}

/* Data-sheet rate of tiers that cross NICs: the NICs', where all seen ones agree. */
static void peaks_from_nics(struct matrix *m)
{
    double rate = 0;

    for (int i = 0; i < m->topo.endpoints; i++) {
        int nic = m->topo.endpoint[i].nic;
        double r = nic >= 0 ? m->topo.nic[nic].rate_Bps : 0;
        if (r <= 0 || (rate > 0 && r != rate))
            return;
        rate = r;
    }
    for (int i = 0; i < m->tiers; i++)
        if (m->tier[i].nic)
            m->tier[i].peak_Bps = rate;
}

int fit_matrix(struct matrix *m, const struct topo *t, const struct plan *plan,
               const struct points *p, const struct fit_opts *o, struct err *err)
{
    struct fit f = {.m = m, .plan = plan, .points = p, .o = *o};

    matrix_init(m);
    if (check(t, p, err) < 0)
        return -1;
    topo_copy(&m->topo, t);
    m->transport = mem_strdup(p->transport);
    m->fabric = t->fabric ? mem_strdup(t->fabric) : NULL;
    m->provenance = json_provenance();
    f.count = observe(&f.obs, p, true);
    f.bw_bytes = observe_size(f.obs, f.count, OP_PAIR_BW);
    f.lat_bytes = observe_size(f.obs, f.count, OP_PAIR_LATENCY);
    fit_racks(&f);
    start_tiers(m);
    fit_levels(&f);
    fit_parts(&f);
    fit_latency(&f);
    fit_curves(&f);
    peaks_from_nics(m);
    fit_collectives(&f);
    fit_findings(&f);
    free(f.obs);
    free(f.sample);
    return 0;
}
