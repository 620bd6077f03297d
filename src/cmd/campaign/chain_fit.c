/* SPDX-License-Identifier: BSD-3-Clause */
/* chain_fit.c - the files of a campaign become a cost matrix, with what no point tells, and
 * predictions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "cmd/campaign/chain.h"
#include "cost/reference.h"
#include "step/compute.h"

/* Tiers that the preset knows by name get its peak, unless a NIC that was seen told one or they outrun
 * it. */
static void note_peaks(struct matrix *m, const struct fabric *f)
{
    for (int i = 0; i < m->tiers; i++)
        for (int k = 0; k < f->tiers; k++)
            if (m->tier[i].peak_Bps <= 0 && !strcmp(m->tier[i].rule.name, f->tier[k].rule.name) &&
                !reference_outruns(&m->tier[i], f->tier[k].peak.value))
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
    if (compute_measure(&rate, 0.05, err) < 0)
        return -1;
    m->compute.flops = rate.flops;
    m->compute.flops_spread = rate.spread;
    m->compute.source = mem_strdup(rate.source);
    return 0;
}

/* These are of each other: the matrix, and what no point tells. */
static int fit_these(struct matrix *m, struct topo *t, const struct plan *plan,
                     const struct points *points, const char *compute, const struct fit_opts *o,
                     struct err *err)
{
    struct device_table alone = {NULL, 0};
    int rc = fit_matrix(m, t, plan, points, o, err);

    if (rc == 0 && compute)
        rc = device_load(&alone, compute, err);
    if (rc == 0)
        rc = note_preset(m, &alone, err);
    if (rc == 0)
        rc = note_compute(m, err);
    device_free(&alone);
    return rc;
}

int chain_fit_files(struct matrix *m, const char *topology, const char *plan_path,
                    const char *points_path, struct points *points, const char *compute,
                    const struct fit_opts *o, struct err *err)
{
    struct topo topo;
    struct plan plan = {0};
    unsigned crc = 0;

    topo_init(&topo);
    int rc = topo_load(&topo, topology, err);
    if (rc == 0)
        rc = plan_load(&plan, plan_path, topo.endpoints, err);
    if (rc == 0) {
        crc = plan_crc(&plan);
        plan_forget_pairs(&plan);
    }
    if (rc == 0 && !points->count)
        rc = points_load(points, points_path, err);
    if (rc == 0 && crc != points->plan_crc)
        rc = err_data(err, "%s was measured by another plan (%08x) than %s (%08x)", points_path,
                      points->plan_crc, plan_path, crc);
    if (rc == 0)
        rc = points_check(points, points_path, &topo, topology, err);
    if (rc == 0)
        rc = fit_these(m, &topo, &plan, points, compute, o, err);
    plan_free(&plan);
    topo_free(&topo);
    return rc;
}

/* The largest power of two up to 8 that divides the endpoints of every host. */
static int tensor_size(const struct topo *t)
{
    int *per = mem_calloc((size_t)t->hosts, sizeof(*per)), size = 8;

    for (int i = 0; i < t->endpoints; i++)
        per[t->endpoint[i].place.at[LEVEL_HOST]]++;
    for (int i = 0; i < t->hosts; i++)
        while (per[i] % size)
            size /= 2;
    free(per);
    return size;
}

/* prediction.json: the step time of the model sharded over everything (FSDP), and with tensor
 * parallelism inside a host where that divides; what does not divide is left out with a note.
 * Every layout at the same global batch, one sequence an endpoint, so that the shorter step is the
 * faster layout.  CPUs train nothing unless a model is asked for. */
static int predict(struct chain *c, struct err *err)
{
    const char *model = c->model ? c->model : "llama3.1-8b";
    if (c->until > 0 || (!c->model && c->matrix.topo.endpoint[0].kind != ENDPOINT_GPU))
        return 0;
    char layout[CHAIN_LAYOUTS][64], *path = file_join(c->dir, "prediction.json");
    int n = c->matrix.topo.endpoints, tp = tensor_size(&c->matrix.topo), layouts = 0;
    json_t *list = json_array();

    snprintf(layout[layouts++], sizeof(*layout), "dp_shard=%d", n);
    while (tp > 1 && n / tp < 2)
        tp /= 2;
    if (tp > 1)
        snprintf(layout[layouts++], sizeof(*layout), "dp_shard=%d,tp=%d", n / tp, tp);
    else if (n % 2 == 0 && n > 2)
        snprintf(layout[layouts++], sizeof(*layout), "dp_replicate=2,dp_shard=%d", n / 2);
    for (int i = 0; i < layouts; i++) {
        struct prediction *p = &c->predicted[c->predictions];
        enum strategy strategy = strstr(layout[i], "dp_replicate") ? STRATEGY_HSDP : STRATEGY_FSDP;
        struct err why = {0, ""};
        if (predict_layout(p, &c->matrix, model, layout[i], strategy, n, &why) < 0) {
            log_warn("no prediction for %s %s: %s", model, layout[i], why.text);
            prediction_free(p);
            continue;
        }
        json_array_append_new(list, predict_json(p, &c->matrix));
        c->predictions++;
    }
    json_t *root = json_pack("{s:s, s:i, s:o, s:o}", "format", "railgauge-predictions", "version",
                             1, "provenance", json_provenance(), "predictions", list);
    int rc = json_save(root, path, err);
    json_decref(root);
    free(path);
    return rc;
}

/* Of a simulation that was just measured everything is here; the ranks of other transports may have
 * learned more of the topology, in its file. */
static int fit_campaign(struct chain *c, const char *compute, const struct fit_opts *o,
                        struct err *err)
{
    if (c->points.count && chain_is_sim(c))
        return fit_these(&c->matrix, &c->topo, &c->plan, &c->points, compute, o, err);
    char *topology = file_join(c->dir, "topology.json"), *plan = file_join(c->dir, "plan.tsv"),
         *points = file_join(c->dir, "points.tsv");
    int rc = chain_fit_files(&c->matrix, topology, plan, points, &c->points, compute, o, err);
    free(topology);
    free(plan);
    free(points);
    return rc;
}

int chain_fit(struct chain *c, struct err *err)
{
    char *path = file_join(c->dir, "matrix.json"), *compute = file_join(c->dir, "compute.tsv");
    struct fit_opts o;

    fit_defaults(&o);
    int rc = fit_campaign(c, access(compute, F_OK) == 0 ? compute : NULL, &o, err);
    if (rc == 0)
        rc = matrix_save(&c->matrix, path, err);
    free(compute);
    free(path);
    return rc < 0 ? -1 : predict(c, err);
}
