/* SPDX-License-Identifier: BSD-3-Clause */
/* chain_fit.c - the files of a campaign become a cost matrix, with what no point tells. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cmd/campaign/chain.h"
#include "step/compute.h"

/* Tiers that the preset knows by name get its peak, unless a NIC that was seen told one. */
static void note_peaks(struct matrix *m, const struct fabric *f)
{
    for (int i = 0; i < m->tiers; i++)
        for (int k = 0; k < f->tiers; k++)
            if (m->tier[i].peak_Bps <= 0 && !strcmp(m->tier[i].rule.name, f->tier[k].rule.name))
                m->tier[i].peak_Bps = f->tier[k].peak.value;
}

/* What the preset of this machine says: rates of tiers, and peaks that measured products are shares
 * of. */
static int note_preset(struct matrix *m, const struct device_table *alone, struct err *err)
{
    struct fabric f = {0};
    bool known = m->fabric && fabric_shipped(m->fabric);
    char *name = known ? mem_strdup(m->fabric) : NULL;

    if (!m->fabric && alone->rows)
        name = fabric_of_gpu(alone->row[0].gpu);
    int rc = name ? fabric_load(&f, name, err) : 0;
    if (rc == 0 && known)
        note_peaks(m, &f);
    if (rc == 0 && alone->rows)
        rc = fit_compute(m, alone, f.name ? &f : NULL, err);
    fabric_free(&f);
    free(name);
    return rc;
}

/* What a core of this host computes stands for a device, and says so. */
static int note_compute(struct matrix *m, struct err *err)
{
    struct compute rate;

    if (m->fabric || m->compute.flops > 0 || m->compute.devices ||
        m->topo.endpoint[0].kind == ENDPOINT_GPU)
        return 0;
    if (compute_measure(&rate, 0.3, err) < 0)
        return -1;
    m->compute.flops = rate.flops;
    m->compute.flops_spread = rate.spread;
    m->compute.source = mem_strdup(rate.source);
    return 0;
}

int chain_fit_files(struct matrix *m, const char *topology, const char *plan_path,
                    const char *points_path, const char *compute, const struct fit_opts *o,
                    struct err *err)
{
    struct device_table alone = {NULL, 0};
    struct topo topo;
    struct plan plan = {0};
    struct points points = {0};

    topo_init(&topo);
    int rc = topo_load(&topo, topology, err);
    if (rc == 0)
        rc = plan_load(&plan, plan_path, topo.endpoints, err);
    if (rc == 0)
        rc = points_load(&points, points_path, err);
    if (rc == 0 && plan_crc(&plan) != points.plan_crc)
        rc = err_data(err, "%s was measured by another plan (%08x) than %s (%08x)", points_path,
                      points.plan_crc, plan_path, plan_crc(&plan));
    if (rc == 0)
        rc = points_check(&points, points_path, &topo, topology, err);
    if (rc == 0)
        rc = fit_matrix(m, &topo, &plan, &points, o, err);
    if (rc == 0 && compute)
        rc = device_load(&alone, compute, err);
    if (rc == 0)
        rc = note_preset(m, &alone, err);
    if (rc == 0)
        rc = note_compute(m, err);
    device_free(&alone);
    points_free(&points);
    plan_free(&plan);
    topo_free(&topo);
    return rc;
}
