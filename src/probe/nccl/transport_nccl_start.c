/* SPDX-License-Identifier: BSD-3-Clause */
/* transport_nccl_start.c - before and after a campaign: what NCCL is told. */
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "probe/gpu_binding.h"
#include "probe/nccl/transport_nccl.h"

/* Ranks with different libraries cannot talk to each other: say so before they try. */
static int same_library(struct world *w, struct err *err)
{
    int *each = mem_calloc((size_t)w->size, sizeof(*each)), rc = 0;
    char a[24], b[24];

    rc = w->gather(w, &nccl.version, sizeof(int), each, err);
    for (int r = 1; r < w->size && rc == 0 && w->rank == 0; r++)
        if (each[r] != each[0])
            rc = err_config(err, "rank 0 has NCCL %s, but rank %d has NCCL %s",
                            nccl_version_text(each[0], a), r, nccl_version_text(each[r], b));
    free(each);
    return w->agree(w, rc, err);
}

static void note_versions(void)
{
    char text[320], version[24];

    snprintf(text, sizeof(text), "%s (%s)", nccl_version_text(nccl.version, version), nccl.path);
    json_provenance_add("nccl", text);
    snprintf(text, sizeof(text), "%d.%d", gpu_facts()->driver / 1000,
             gpu_facts()->driver % 1000 / 10);
    json_provenance_add("cuda_driver", text);
    json_provenance_add("gpu", gpu_facts()->name);
}

int transport_nccl_start(const struct nccl_opts *o, struct world *w, struct err *err)
{
    bool one_host;

    if (gpu_binding_take(w, o->share_gpu, &one_host, err) < 0 ||
        w->agree(w, nccl_opts_apply(o, w->rank, one_host, err), err) < 0 ||
        w->agree(w, nccl_load(err), err) < 0 || same_library(w, err) < 0 ||
        nccl_opts_check(o, nccl.version, err) < 0)
        return -1;
    note_versions();
    return 0;
}

int transport_nccl_finish(struct world *w, const char *points, char **words, struct err *err)
{
    char *copy = mem_strdup(points), *path = file_join(dirname(copy), "connections.tsv");
    int rc = nccl_conn_finish(w, path, words, err);

    free(path);
    free(copy);
    return rc;
}
