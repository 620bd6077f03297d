/* SPDX-License-Identifier: BSD-3-Clause */
/* api.c - librailgauge: jobs on nodes, the part of railgauge.h that knows steps. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cost/matrix.h"
#include "place/place.h"
#include "railgauge.h"

enum { LIMIT_MAX = 86400 }; /* s */

struct railgauge_job {
    struct place_job job;
};

/* What a call was given and what it answers, for mem_guarded(). */
struct api_call {
    const struct place_job *job;
    struct railgauge_job *opened;
    const struct matrix *m;
    const char *text;
    const int *host;
    int hosts, need, most, count, exact;
    double limit, sec, *secs;
    int *out;
    struct railgauge_placed *placed;
    struct err why;
};

/* What was said of it; text may be NULL. */
static void say(char text[256], const struct api_call *c)
{
    if (text)
        snprintf(text, 256, "%.255s", c->why.text);
}

static int open_job(void *call)
{
    struct api_call *c = call;
    struct railgauge_job *job = mem_calloc(1, sizeof(*job));

    if (place_job_open(&job->job, c->m, c->text, &c->why) < 0) {
        railgauge_job_close(job);
        return -1;
    }
    c->opened = job;
    return 0;
}

int railgauge_job_open(struct railgauge_job **out, const struct railgauge *r, const char *text,
                       char err[256])
{
    struct api_call c = {.m = api_matrix(r), .text = text};
    int rc = mem_guarded(open_job, &c, &c.why);

    if (rc < 0)
        say(err, &c);
    *out = c.opened;
    return rc;
}

void railgauge_job_close(struct railgauge_job *job)
{
    if (!job)
        return;
    place_job_close(&job->job);
    free(job);
}

static int cost_nodes(void *call)
{
    struct api_call *c = call;

    c->sec = place_job_cost(c->job, c->host, c->hosts, &c->why);
    return 0;
}

double railgauge_nodes_cost(const struct railgauge_job *job, const int *hosts, int n, char err[256])
{
    struct api_call c = {.job = &job->job, .host = hosts, .hosts = n, .sec = NAN};

    mem_guarded(cost_nodes, &c, &c.why);
    say(err, &c);
    return c.sec;
}

static int choose_nodes(void *call)
{
    struct api_call *c = call;
    struct place_sets best;

    if (place_job_sets(&best, c->job, c->host, c->hosts, c->need, c->most, 0, &c->why) == 0) {
        memcpy(c->out, best.host, (size_t)best.count * (size_t)c->need * sizeof(*c->out));
        memcpy(c->secs, best.sec, (size_t)best.count * sizeof(*c->secs));
        c->count = best.count;
        c->exact = best.exact;
    }
    place_sets_free(&best);
    return 0;
}

int railgauge_nodes_best(const struct railgauge_job *job, const int *free_hosts, int n, int need,
                         int k, int *hosts, double *seconds, int *exact, char err[256])
{
    struct api_call c = {.job = &job->job,
                         .host = free_hosts,
                         .hosts = n,
                         .need = need,
                         .most = k,
                         .count = -1,
                         .out = hosts,
                         .secs = seconds};

    mem_guarded(choose_nodes, &c, &c.why);
    if (exact && c.count >= 0)
        *exact = c.exact;
    say(err, &c);
    return c.count;
}

static int place(void *call)
{
    struct api_call *c = call;
    struct placed p;

    if (place_job_run(&p, c->job, c->host, c->hosts, c->need, c->limit, &c->why) < 0) {
        c->count = -1;
    } else if (p.ranks > c->most) {
        c->count =
            err_usage(&c->why, "the job has %d ranks, and there is room for %d", p.ranks, c->most);
    } else {
        c->count = 0;
        memcpy(c->out, p.order, (size_t)p.ranks * sizeof(*c->out));
        *c->placed = (struct railgauge_placed){p.ranks, p.sec, p.in_order, p.bound, ""};
        snprintf(c->placed->how, sizeof(c->placed->how), "%s", p.how);
    }
    placed_free(&p);
    return 0;
}

int railgauge_place(const struct railgauge_job *job, const int *free_hosts, int n, int need,
                    double limit, int *order, int max, struct railgauge_placed *placed,
                    char err[256])
{
    struct api_call c = {.job = &job->job,
                         .host = free_hosts,
                         .hosts = n,
                         .need = need,
                         .most = max,
                         .count = -1,
                         .limit = limit,
                         .out = order,
                         .placed = placed};

    if (limit >= 0 && limit <= LIMIT_MAX)
        mem_guarded(place, &c, &c.why);
    else
        err_usage(&c.why, "%g s of search: 0 to %d are possible", limit, LIMIT_MAX);
    say(err, &c);
    return c.count;
}
