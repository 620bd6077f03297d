/* SPDX-License-Identifier: BSD-3-Clause */
/* librailgauge: jobs on nodes, the part of railgauge.h that knows steps. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cost/api.h"
#include "step/nodes.h"

struct railgauge_job {
    struct nodes_job job;
};

int railgauge_job_open(struct railgauge_job **out, const struct railgauge *r, const char *text,
                       char err[256])
{
    struct railgauge_job *job = mem_calloc(1, sizeof(*job));
    struct err why = {0, ""};

    *out = NULL;
    if (nodes_job_open(&job->job, api_matrix(r), text, &why) < 0) {
        api_say(err, why.text);
        railgauge_job_close(job);
        return -1;
    }
    *out = job;
    return 0;
}

void railgauge_job_close(struct railgauge_job *job)
{
    if (!job)
        return;
    nodes_job_close(&job->job);
    free(job);
}

double railgauge_nodes_cost(const struct railgauge_job *job, const int *hosts, int n, char err[256])
{
    struct err why = {0, ""};
    double sec = nodes_cost(&job->job, hosts, n, &why);

    api_say(err, why.text);
    return sec;
}

int railgauge_nodes_best(const struct railgauge_job *job, const int *free_hosts, int n, int need,
                         int k, int *hosts, double *seconds, int *exact, char err[256])
{
    struct err why = {0, ""};
    struct nodes_best best;
    int count = -1;

    if (nodes_best(&best, &job->job, free_hosts, n, need, k, &why) == 0) {
        count = best.count;
        memcpy(hosts, best.host, (size_t)count * (size_t)need * sizeof(*hosts));
        memcpy(seconds, best.sec, (size_t)count * sizeof(*seconds));
        if (exact)
            *exact = best.exact;
    }
    nodes_best_free(&best);
    api_say(err, why.text);
    return count;
}
