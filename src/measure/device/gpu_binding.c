/* SPDX-License-Identifier: BSD-3-Clause */
#include "measure/device/gpu_binding.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/units.h"
#include "kernels/gpu.h"

int gpu_binding_trade(struct world *w, struct gpu_binding **all, struct err *err)
{
    const struct gpu_facts *gpu = gpu_facts();
    struct gpu_binding mine = {.host = ""};
    void *each;

    host_self(mine.host, sizeof(mine.host));
    if (gpu) {
        snprintf(mine.uuid, sizeof(mine.uuid), "%s", gpu->uuid);
        snprintf(mine.busid, sizeof(mine.busid), "%s", gpu->busid);
    }
    int rc = world_trade(w, &mine, sizeof(mine), &each, err);
    *all = each;
    return rc;
}

bool gpu_binding_same(const struct gpu_binding *a, const struct gpu_binding *b)
{
    return !strcmp(a->host, b->host) && !strcmp(a->busid, b->busid) && !strcmp(a->uuid, b->uuid);
}

/* Place among the ranks of a host, as the launcher declares it; -1: not declared. */
static int local_by_launcher(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
                                        "SLURM_LOCALID", "PMI_LOCAL_RANK"};
    int local;

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        const char *text = getenv(names[i]);
        if (text && units_int(&local, text, 0, 1 << 20, NULL) == 0)
            return local;
    }
    return -1;
}

static int local_by_host(const struct gpu_binding *all, int rank)
{
    int local = 0;

    for (int r = 0; r < rank; r++)
        local += !strcmp(all[r].host, all[rank].host);
    return local;
}

static int open_gpu(int local, struct err *err)
{
    int gpus = gpu_count(err);

    return gpus < 1 ? -1 : gpu_open(local % gpus, err);
}

/* Find the first two ranks on one GPU. */
static bool find_shared(const struct gpu_binding *all, int n, int *a, int *b)
{
    for (*b = 1; *b < n; ++*b)
        for (*a = 0; *a < *b; ++*a)
            if (gpu_binding_same(&all[*a], &all[*b]))
                return true;
    return false;
}

static bool same_host(const struct gpu_binding *all, int n)
{
    for (int r = 1; r < n; r++)
        if (strcmp(all[r].host, all[0].host))
            return false;
    return true;
}

static int judge_sharing(bool share, const struct gpu_binding *all, int n, struct err *err)
{
    int a, b;

    if (!find_shared(all, n, &a, &b))
        return 0;
    if (!share)
        return err_config(err,
                          "ranks %d and %d (host %s) would use the same GPU %s: start one rank a "
                          "GPU, or try things out with --share-gpu",
                          a, b, all[a].host, all[a].busid);
    json_provenance_add("shared_gpu", "several ranks share one GPU: not a fabric measurement");
    return 0;
}

int gpu_binding_take(struct world *w, bool share, bool *one_host, struct err *err)
{
    int local = local_by_launcher();
    struct gpu_binding *all;
    int rc = gpu_binding_trade(w, &all, err);

    if (rc == 0 && one_host)
        *one_host = same_host(all, w->size);
    if (rc == 0 && local < 0)
        local = local_by_host(all, w->rank);
    free(all);
    if (rc < 0 || w->agree(w, open_gpu(local, err), err) < 0)
        return -1;
    rc = gpu_binding_trade(w, &all, err);
    if (rc == 0)
        rc = judge_sharing(share, all, w->size, err);
    free(all);
    return rc;
}
