/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/gpu_binding.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/units.h"
#include "kernels/gpu.h"

/* What each rank tells the others; bytes between equal programs. */
struct gpu_binding {
    char host[64], uuid[48], busid[16];
};

/* What the launcher says of the place among the ranks of a host; -1: it says nothing. */
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

static int open_gpu(int local, struct gpu_binding *mine, struct err *err)
{
    int gpus = gpu_count(err);

    if (gpus < 1 || gpu_open(local % gpus, err) < 0)
        return -1;
    snprintf(mine->uuid, sizeof(mine->uuid), "%s", gpu_facts()->uuid);
    snprintf(mine->busid, sizeof(mine->busid), "%s", gpu_facts()->busid);
    return 0;
}

/* The first two ranks on one GPU; by UUID, because the instances of a divided GPU share a bus id.
 */
static bool find_shared(const struct gpu_binding *all, int n, int *a, int *b)
{
    for (*b = 1; *b < n; ++*b)
        for (*a = 0; *a < *b; ++*a)
            if (!strcmp(all[*a].host, all[*b].host) && !strcmp(all[*a].busid, all[*b].busid) &&
                !strcmp(all[*a].uuid, all[*b].uuid))
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
    struct gpu_binding mine = {.host = ""};
    void *all;
    int local = local_by_launcher();

    host_self(mine.host, sizeof(mine.host));
    int rc = world_trade(w, &mine, sizeof(mine), &all, err);
    if (rc == 0 && one_host)
        *one_host = same_host(all, w->size);
    if (rc == 0 && local < 0)
        local = local_by_host(all, w->rank);
    free(all);
    if (rc < 0 || w->agree(w, open_gpu(local, &mine, err), err) < 0)
        return -1;
    rc = world_trade(w, &mine, sizeof(mine), &all, err);
    if (rc == 0)
        rc = judge_sharing(share, all, w->size, err);
    free(all);
    return rc;
}
