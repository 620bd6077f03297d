/* SPDX-License-Identifier: BSD-3-Clause */
/* railgauge-probe discover. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "emit/text/report.h"
#include "kernels/gpu.h"
#include "probe/gpu/transport_copy.h"
#include "probe/gpu_binding.h"
#include "probe/nccl/nccl_conn.h"
#include "probe/nccl/nccl_ras.h"
#include "probe/nccl/nccl_readback.h"
#include "probe/nccl/transport_nccl.h"
#include "probe/watch/watch.h"
#include "probe_main.h"

void probe_before_nccl(struct world *w)
{
    nccl_readback_strays(w);
    if (w->rank == 0)
        watch_report("ras.txt", nccl_ras_ask);
}

/* The GPU of each rank; with --nccl the library too, and its log to be read back. */
static int start_discovering(const struct probe_args *a, struct world *w, struct nccl_readback **r,
                             struct err *err)
{
    *r = NULL;
    if (!a->look)
        return probe_on_gpus(a) ? gpu_binding_take(w, a->nccl.share_gpu, NULL, err) : 0;
    probe_before_nccl(w);
    if (nccl_readback_open(r, w, true, err) < 0)
        return -1;
    return transport_nccl_start(&a->nccl, w, err);
}

/* FABRIC handles are tried where the endpoints are GPUs and there is somebody to share with; a rank
 * without a GPU of its own ends that and nothing else.  Rank 0's topology keeps the result. */
static void try_fabric(struct topo *t, const struct probe_args *a, struct world *w)
{
    int gpus = w->rank == 0 && w->size > 1 && !a->root && t->endpoint[0].kind == ENDPOINT_GPU;
    struct fabric_try *each = NULL;
    size_t len = sizeof(gpus);
    void *data = &gpus;

    if (w->share(w, &data, &len, NULL) < 0)
        return;
    int wanted = *(int *)data;
    if (data != &gpus)
        free(data);
    if (!wanted || (!gpu_facts() && gpu_binding_take(w, a->nccl.share_gpu, NULL, NULL) < 0) ||
        fabric_try_all(w, &each, NULL) < 0)
        return;
    if (w->rank == 0) {
        free(t->trial);
        t->trial = fabric_trials(t, each, &t->trials);
    }
    free(each);
}

int probe_discover(const struct probe_args *a, struct world *w, struct err *err)
{
    struct nccl_readback *r;
    struct topo topo;

    if (a->transport && strcmp(a->transport, "mpi") && !probe_on_gpus(a))
        return err_usage(err, "no transport \"%s\"; this program has mpi, nccl and copy",
                         a->transport);
    json_provenance_add("transport", probe_on_gpus(a) ? a->transport : "mpi");
    topo_init(&topo);
    int rc = start_discovering(a, w, &r, err);
    if (rc == 0)
        rc = probe_gather(&topo, a, w, a->root ? a->root : "", err);
    if (rc == 0 && a->look)
        rc = nccl_readback_build(r, transport_find("nccl"), w, &topo, err);
    if (rc == 0)
        try_fabric(&topo, a, w);
    if (rc == 0 && w->rank == 0) {
        rc = a->output ? topo_save(&topo, a->output, err) : 0;
        if (rc == 0)
            rc = discover_report(stdout, &topo,
                                 &(struct discover_report){a->quiet, a->json, a->check}, err);
    }
    topo_free(&topo);
    nccl_conn_close_all();
    nccl_readback_close(r);
    gpu_close();
    return w->agree(w, rc, err);
}
