/* SPDX-License-Identifier: BSD-3-Clause */
#include "emit/text/report.h"

#include <stdlib.h>

#include "base/host.h"
#include "base/json.h"
#include "base/mem.h"
#include "topo/host/mnnvl.h"

static int check(const struct topo *t, const struct mnnvl *m, struct err *err)
{
    if (!t->gpus)
        return err_set(err, "no verdict on NVLink: NVML told of no GPU");
    if (!m->bad)
        return 0;
    char **names = mem_calloc((size_t)m->hosts, sizeof(*names));
    int n = 0;
    for (int i = 0; i < m->hosts; i++)
        if (m->host[i].verdict == MNNVL_BAD)
            names[n++] = t->host[i].name;
    char *list = hostlist_fold(names, n);
    err_code(err, EXIT_BELOW, "NVLink is bad on %d of %d host%s: %.300s", n, m->hosts,
             m->hosts == 1 ? "" : "s", list);
    free(list);
    free(names);
    return -1;
}

int discover_report(FILE *out, const struct topo *t, const struct discover_report *what,
                    struct err *err)
{
    struct mnnvl m;

    mnnvl_judge(&m, t, t->trial, t->trials);
    if (what->json)
        json_answer(json_pack("{s:s, s:i, s:i, s:i, s:i, s:o}", "format", "railgauge-discover",
                              "version", 1, "hosts", t->hosts, "endpoints", t->endpoints, "gpus",
                              t->gpus, "nvlink", mnnvl_json(&m, t)),
                    NULL, true, err);
    else if (!what->quiet)
        topo_print(t, out);
    int rc = what->check ? check(t, &m, err) : 0;
    mnnvl_free(&m);
    return rc;
}
