/* SPDX-License-Identifier: BSD-3-Clause */
/* railgauge-probe probe: a campaign from its plan to its files. */
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "emit/export/nccl_tuner.h"
#include "emit/text/nccl_tests.h"
#include "kernels/gpu.h"
#include "probe/campaign_files.h"
#include "probe/gpu/transport_copy.h"
#include "probe/gpu_binding.h"
#include "probe/mpi/mpi_ops.h"
#include "probe/nccl/nccl_readback.h"
#include "probe/nccl/transport_nccl.h"
#include "probe_main.h"

static int choose_transport(const struct transport **tr, const char *name, struct err *err)
{
    *tr = name ? transport_find(name) : transports[0];
    if (name && !strcmp(name, "sim"))
        return err_usage(err, "transport sim needs no ranks: use railgauge probe --transport sim");
    if (!*tr)
        return err_usage(err, "no transport \"%s\"; this program has mpi, nccl and copy", name);
    return 0;
}

/* --sweep: the combinations into their files, and what is best on the terminal. */
static int sweep(const struct campaign_files *f, const struct probe_args *a, struct world *w,
                 struct err *err)
{
    int rc =
        transport_nccl_sweep(&a->nccl, w, &f->topo, &f->plan, &a->probe.measure, f->output, err);
    char *copy = mem_strdup(f->output);
    struct tuner t;

    if (rc == 0 && w->rank == 0 && (rc = tuner_load(&t, dirname(copy), err)) == 0) {
        tuner_print(stdout, &t);
        tuner_free(&t);
    }
    free(copy);
    return w->agree(w, rc, err);
}

/* What NCCL built goes into the topology that the points lie beside; another path than was asked
 * for is an error. */
static int read_back(struct campaign_files *f, const struct probe_args *a, struct nccl_readback *r,
                     struct world *w, struct err *err)
{
    int rc = nccl_readback_campaign(r, w, &f->topo, a->nccl.path,
                                    f->log ? points_all(f->log) : NULL, err);

    if (w->rank == 0 && f->topo.nccl)
        campaign_files_save_topology(f, rc < 0 ? NULL : err);
    return rc;
}

static int measure(struct campaign_files *f, const struct transport *tr, const struct probe_args *a,
                   struct nccl_readback *r, struct world *w, struct err *err)
{
    int rc = campaign_files_open(f, a, w, tr->name, err);

    if (rc == 0)
        rc = measure_plan(w, tr, &f->topo, &f->plan, &a->probe.measure, f->log, err);
    if (rc == 0 && probe_is(a, "nccl") && a->nccl.sweep)
        rc = sweep(f, a, w, err);
    if (rc == 0 && r)
        rc = read_back(f, a, r, w, err);
    if (rc == 0 && a->format && w->rank == 0)
        rc = nccl_tests_print(
            stdout, points_all(f->log), &f->plan, &f->topo,
            &(struct nccl_tests_how){.warmup = a->probe.measure.warmup,
                                     .nccl = probe_is(a, "nccl") ? &a->nccl : NULL},
            err);
    return w->agree(w, campaign_files_close(f, rc, err), err);
}

static int start_nccl(const struct probe_args *a, struct world *w, struct nccl_readback **r,
                      struct err *err)
{
    probe_before_nccl(w);
    if (!a->dry_run && nccl_readback_open(r, w, false, err) < 0)
        return -1;
    return transport_nccl_start(&a->nccl, w, err);
}

/* What connecting cost is told even when the campaign was cut short. */
static int finish_nccl(const struct campaign_files *f, struct world *w, int rc, struct err *err)
{
    char *words = NULL;
    int end = transport_nccl_finish(w, f->output, &words, rc < 0 ? NULL : err);

    if (words && *words)
        log_info("%s", words);
    free(words);
    return rc < 0 ? rc : end;
}

static int start_copy(const struct probe_args *a, struct world *w, struct err *err)
{
    return gpu_binding_take(w, a->nccl.share_gpu, NULL, err) < 0
               ? -1
               : transport_copy_start(&a->copy, w, err);
}

int probe_campaign(const struct probe_args *a, struct world *w, struct err *err)
{
    const struct transport *tr;
    struct campaign_files f = {.output = NULL};
    struct nccl_readback *r = NULL;

    if (a->compute)
        return probe_compute(a, w, err);
    int rc = choose_transport(&tr, a->transport, err);

    topo_init(&f.topo);
    if (rc == 0 && !strcmp(tr->name, "mpi"))
        transport_mpi_start(&a->mpi);
    if (rc == 0 && probe_is(a, "nccl"))
        rc = start_nccl(a, w, &r, err);
    if (rc == 0 && probe_is(a, "copy"))
        rc = start_copy(a, w, err);
    if (rc == 0)
        rc = probe_topo(&f.topo, a, w, err);
    if (rc == 0)
        rc = campaign_files_plan(&f, a, w, err);
    if (rc == 0 && !a->dry_run) {
        rc = measure(&f, tr, a, r, w, err);
        if (probe_is(a, "nccl"))
            rc = finish_nccl(&f, w, rc, err);
    } else if (rc == 0 && w->rank == 0)
        plan_cost_print(stdout, &f.plan, &f.topo, &a->probe.measure);
    nccl_readback_close(r);
    gpu_close();
    plan_free(&f.plan);
    topo_free(&f.topo);
    return rc;
}
