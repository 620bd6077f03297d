/* SPDX-License-Identifier: BSD-3-Clause */
/* librailgauge: jobs on nodes, the part of railgauge.h that knows steps. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cost/api.h"
#include "place/nodes.h"

struct railgauge_job {
    struct nodes_job job;
};

/* What a call was given and what it answers, for mem_guarded(). */
struct opening {
    struct railgauge_job *job;
    const struct matrix *m;
    const char *text;
    struct err why;
};

static int open_job(void *opening)
{
    struct opening *o = opening;
    struct railgauge_job *job = mem_calloc(1, sizeof(*job));

    if (nodes_job_open(&job->job, o->m, o->text, &o->why) < 0) {
        railgauge_job_close(job);
        return -1;
    }
    o->job = job;
    return 0;
}

int railgauge_job_open(struct railgauge_job **out, const struct railgauge *r, const char *text,
                       char err[256])
{
    struct opening o = {.m = api_matrix(r), .text = text};
    int rc = mem_guarded(open_job, &o, &o.why);

    if (rc < 0)
        api_say(err, o.why.text);
    *out = o.job;
    return rc;
}

void railgauge_job_close(struct railgauge_job *job)
{
    if (!job)
        return;
    nodes_job_close(&job->job);
    free(job);
}

struct costing {
    const struct nodes_job *job;
    const int *hosts;
    int n;
    double sec;
    struct err why;
};

static int cost_nodes(void *costing)
{
    struct costing *c = costing;

    c->sec = nodes_cost(c->job, c->hosts, c->n, &c->why);
    return 0;
}

double railgauge_nodes_cost(const struct railgauge_job *job, const int *hosts, int n, char err[256])
{
    struct costing c = {&job->job, hosts, n, NAN, {0, ""}};

    mem_guarded(cost_nodes, &c, &c.why);
    api_say(err, c.why.text);
    return c.sec;
}

struct choosing {
    const struct nodes_job *job;
    const int *free_hosts;
    int n, need, k, count, exact;
    int *hosts;
    double *seconds;
    struct err why;
};

static int choose_nodes(void *choosing)
{
    struct choosing *c = choosing;
    struct nodes_best best;

    if (nodes_best(&best, c->job, c->free_hosts, c->n, c->need, c->k, &c->why) == 0) {
        memcpy(c->hosts, best.host, (size_t)best.count * (size_t)c->need * sizeof(*c->hosts));
        memcpy(c->seconds, best.sec, (size_t)best.count * sizeof(*c->seconds));
        c->count = best.count;
        c->exact = best.exact;
    }
    nodes_best_free(&best);
    return 0;
}

int railgauge_nodes_best(const struct railgauge_job *job, const int *free_hosts, int n, int need,
                         int k, int *hosts, double *seconds, int *exact, char err[256])
{
    struct choosing c = {&job->job, free_hosts, n, need, k, -1, 0, hosts, seconds, {0, ""}};

    mem_guarded(choose_nodes, &c, &c.why);
    if (exact && c.count >= 0)
        *exact = c.exact;
    api_say(err, c.why.text);
    return c.count;
}
