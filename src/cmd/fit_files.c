/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmd/fit_files.h"

#include <string.h>

#include "base/mem.h"
#include "step/compute.h"

/* Tiers that the preset knows by name get its peak, unless a NIC that was seen told one. */
static int note_peaks(struct matrix *m, struct err *err)
{
    struct fabric f = {0};
    int rc = m->fabric ? fabric_load(&f, m->fabric, err) : 0;

    for (int i = 0; i < m->tiers && rc == 0; i++)
        for (int k = 0; k < f.tiers; k++)
            if (m->tier[i].peak_Bps <= 0 && !strcmp(m->tier[i].rule.name, f.tier[k].rule.name))
                m->tier[i].peak_Bps = f.tier[k].peak.value;
    fabric_free(&f);
    return rc;
}

/* What a core of this host computes stands for a device, and says so. */
static int note_compute(struct matrix *m, struct err *err)
{
    struct compute rate;

    if (m->fabric || m->compute.flops > 0 || m->topo.endpoint[0].kind == ENDPOINT_GPU)
        return 0;
    if (compute_measure(&rate, 0.3, err) < 0)
        return -1;
    m->compute.flops = rate.flops;
    m->compute.source = mem_strdup(rate.source);
    return 0;
}

int fit_files(struct matrix *m, const char *topology, const char *plan_path,
              const char *points_path, const struct fit_opts *o, struct err *err)
{
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
        rc = fit_matrix(m, &topo, &plan, &points, o, err);
    if (rc == 0)
        rc = note_peaks(m, err);
    if (rc == 0)
        rc = note_compute(m, err);
    points_free(&points);
    plan_free(&plan);
    topo_free(&topo);
    return rc;
}
