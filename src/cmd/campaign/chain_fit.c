/* SPDX-License-Identifier: BSD-3-Clause */
/* chain_fit.c - make a cost matrix and predictions from the files of a campaign, with data that
 * points lack. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "cmd/campaign/chain_impl.h"
#include "matrix/reference.h"
#include "step/predict.h"

/* Tiers with the name of a preset tier get its peak, unless a visible NIC gave a peak or the tier
 * is faster. */
static void note_peaks(struct matrix *m, const struct fabric *f)
{
    for (int i = 0; i < m->tiers; i++)
        for (int k = 0; k < f->tiers; k++)
            if (m->tier[i].peak_Bps <= 0 && !strcmp(m->tier[i].rule.name, f->tier[k].rule.name) &&
                !(matrix_rate(m, i, DIR_UNI) > TIER_BEYOND * f->tier[k].peak.value))
                m->tier[i].peak_Bps = f->tier[k].peak.value;
}

/* Add the preset of this machine: rates of tiers, and peaks for the shares of measured products. */
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

/* The compute rate of a core of this host represents a device, with a note. */
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

/* Fit inputs that belong together, and add data that points lack. */
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

/* Largest power of two up to 8 that divides the endpoints of every host. */
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

/* Write prediction.json: the step time of the model sharded over everything (FSDP), and with tensor
 * parallelism inside a host; a layout that does not divide the model is left out with a note.  All
 * layouts have the same global batch, one sequence per endpoint, so that the shorter step is the
 * faster layout.  CPUs have a prediction only if a model is given. */
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

/* After a simulation all data is in memory.  The ranks of other transports may have added to the
 * topology file, so the files are read. */
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
