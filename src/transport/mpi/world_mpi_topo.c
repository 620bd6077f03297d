/* SPDX-License-Identifier: BSD-3-Clause */
/* world_mpi_topo.c - topology of the ranks, gathered or read, and the part that every rank
 * knows. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "kernels/gpu.h"
#include "measure/device/gpu_binding.h"
#include "topo/sources/gather.h"
#include "transport/gpu/transport_copy_impl.h"
#include "transport/mpi/world_mpi.h"

/* Set the driver's name for each rank's GPU, unless the topology has a better name. */
static int name_gpus(struct topo *t, struct world *w, struct err *err)
{
    enum { LEN = sizeof(t->endpoint->model) };
    char mine[LEN] = "", *all = mem_calloc((size_t)w->size, LEN);

    snprintf(mine, LEN, "%.*s", LEN - 1, gpu_facts()->name);
    int rc = w->gather(w, mine, LEN, all, err);
    for (int i = 0; rc == 0 && i < t->endpoints; i++)
        if (!t->endpoint[i].model[0])
            memcpy(t->endpoint[i].model, all + (size_t)i * LEN, LEN);
    free(all);
    return rc;
}

int world_mpi_topo_gather(struct world *w, struct topo *t, const char *root, bool share_gpu,
                          struct err *err)
{
    const struct gpu_facts *gpu = gpu_facts();
    int rc = topo_gather(t, MPI_COMM_WORLD, root ? root : "", gpu ? gpu->busid : NULL, err);

    if (rc == 0 && gpu)
        rc = name_gpus(t, w, err);
    if (rc == 0 && share_gpu)
        topo_unseen(t, "fabric", "several ranks share one GPU: not a fabric measurement");
    return rc;
}

/* Other ranks need only the GPU of each rank from the topology. */
static int share_gpus(struct topo *t, struct world *w, struct err *err)
{
    enum { BUSID = sizeof(t->endpoint->busid) };
    size_t len = (size_t)w->size * BUSID;
    char *text = NULL;

    if (w->rank == 0) {
        text = mem_calloc((size_t)w->size, BUSID);
        for (int i = 0; i < w->size; i++)
            if (t->endpoint[i].kind == ENDPOINT_GPU)
                memcpy(text + i * BUSID, t->endpoint[i].busid, BUSID);
    }
    void *data = text;
    if (w->share(w, &data, &len, err) < 0) {
        free(text);
        return -1;
    }
    int host = w->rank == 0 ? 0 : topo_add_host(t, "elsewhere");
    for (int i = 0; w->rank != 0 && i < w->size; i++) {
        const char *busid = (const char *)data + i * BUSID;
        int id = topo_add_endpoint(t, host, *busid ? ENDPOINT_GPU : ENDPOINT_CPU);
        memcpy(t->endpoint[id].busid, busid, BUSID);
    }
    free(data);
    return 0;
}

int world_mpi_topo(struct world *w, struct topo *t, const char *path, bool share_gpu,
                   struct err *err)
{
    int rc = 0;

    if (!path)
        rc = world_mpi_topo_gather(w, t, NULL, share_gpu, err);
    else if (w->rank == 0)
        rc = topo_load(t, path, err);
    if (rc == 0 && w->rank == 0 && t->endpoints != w->size)
        rc = err_config(err, "%s has %d endpoints, but %d ranks run: start one rank an endpoint",
                        path, t->endpoints, w->size);
    return w->agree(w, rc, err) < 0 ? -1 : share_gpus(t, w, err);
}

void world_mpi_topo_try(struct world *w, struct topo *t, bool share_gpu)
{
    int wanted = w->rank == 0 && w->size > 1 && t->endpoint[0].kind == ENDPOINT_GPU;
    struct fabric_handle *each = NULL;

    if (w->tell(w, &wanted, sizeof(wanted), NULL) < 0 || !wanted ||
        (!gpu_facts() && gpu_binding_take(w, share_gpu, NULL, NULL) < 0) ||
        fabric_handle_try(w, &each, NULL) < 0)
        return;
    if (w->rank == 0) {
        free(t->trial);
        t->trial = fabric_handle_trials(t, each, &t->trials);
    }
    free(each);
}
