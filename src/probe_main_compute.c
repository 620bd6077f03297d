/* SPDX-License-Identifier: BSD-3-Clause */
/* railgauge-probe probe --compute: what each GPU does alone. */
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "emit/text/report.h"
#include "kernels/gpu.h"
#include "probe/gpu_binding.h"
#include "probe_main.h"
#include "step/work.h"

/* Rank 0's list to everybody; the caller frees *shape. */
static int choose_products(struct gemm_shape **shape, int *count, const struct probe_args *a,
                           struct world *w, struct err *err)
{
    int rc = 0;

    if (w->rank == 0)
        rc = a->device.gemm
                 ? gemm_shapes_parse(shape, count, a->device.gemm, err)
                 : products_shapes(shape, count, a->model ? a->model : DEVICE_MODELS, err);
    size_t len = sizeof(**shape) * (size_t)*count;
    void *data = *shape;
    if (w->agree(w, rc, err) < 0 || w->share(w, &data, &len, err) < 0)
        return -1;
    *shape = data;
    *count = (int)(len / sizeof(**shape));
    return 0;
}

static int measure_compute(const struct probe_args *a, const struct device_opts *o, struct world *w,
                           struct err *err)
{
    const char *path = a->output ? a->output : "compute.tsv";
    struct device_table t = {NULL, 0};
    int rc = gpu_binding_take(w, a->nccl.share_gpu, NULL, err);

    if (rc == 0)
        rc = device_measure_all(&t, o, w, err);
    if (rc == 0 && w->rank == 0) {
        json_provenance_add("gpu", gpu_facts()->name);
        rc = device_save(&t, path, err);
        device_text(stdout, &t);
    }
    device_free(&t);
    gpu_close();
    return w->agree(w, rc, err);
}

int probe_compute(const struct probe_args *a, struct world *w, struct err *err)
{
    struct gemm_shape *shape = NULL;
    struct device_opts o;
    int count = 0;

    device_defaults(&o);
    o.bytes = a->device.bytes;
    o.half_width = a->probe.measure.half_width;
    if (a->probe.measure.time_cap > 0)
        o.time_cap = a->probe.measure.time_cap;
    int rc = choose_products(&shape, &count, a, w, err);
    o.shape = shape;
    o.shapes = count;
    if (rc == 0 && !a->dry_run)
        rc = measure_compute(a, &o, w, err);
    else if (rc == 0 && w->rank == 0)
        printf("%d figures of each GPU alone, about %.0f s\n", device_rows(&o), device_seconds(&o));
    free(shape);
    return rc;
}
