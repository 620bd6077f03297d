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
struct api_opening {
    struct railgauge_job *job;
    const struct matrix *m;
    const char *text;
    struct err why;
};

static int open_job(void *opening)
{
    struct api_opening *o = opening;
    struct railgauge_job *job = mem_calloc(1, sizeof(*job));

    if (place_job_open(&job->job, o->m, o->text, &o->why) < 0) {
        railgauge_job_close(job);
        return -1;
    }
    o->job = job;
    return 0;
}

/* text may be NULL. */
static void say(char text[256], const char *sentence)
{
    if (text)
        snprintf(text, 256, "%.255s", sentence);
}

int railgauge_job_open(struct railgauge_job **out, const struct railgauge *r, const char *text,
                       char err[256])
{
    struct api_opening o = {.m = api_matrix(r), .text = text};
    int rc = mem_guarded(open_job, &o, &o.why);

    if (rc < 0)
        say(err, o.why.text);
    *out = o.job;
    return rc;
}

void railgauge_job_close(struct railgauge_job *job)
{
    if (!job)
        return;
    place_job_close(&job->job);
    free(job);
}

struct api_costing {
    const struct place_job *job;
    const int *hosts;
    int n;
    double sec;
    struct err why;
};

static int cost_nodes(void *costing)
{
    struct api_costing *c = costing;

    c->sec = place_job_cost(c->job, c->hosts, c->n, &c->why);
    return 0;
}

double railgauge_nodes_cost(const struct railgauge_job *job, const int *hosts, int n, char err[256])
{
    struct api_costing c = {&job->job, hosts, n, NAN, {0, ""}};

    mem_guarded(cost_nodes, &c, &c.why);
    say(err, c.why.text);
    return c.sec;
}

struct api_choosing {
    const struct place_job *job;
    const int *free_hosts;
    int n, need, k, count, exact;
    int *hosts;
    double *seconds;
    struct err why;
};

static int choose_nodes(void *choosing)
{
    struct api_choosing *c = choosing;
    struct place_sets best;

    if (place_job_sets(&best, c->job, c->free_hosts, c->n, c->need, c->k, 0, &c->why) == 0) {
        memcpy(c->hosts, best.host, (size_t)best.count * (size_t)c->need * sizeof(*c->hosts));
        memcpy(c->seconds, best.sec, (size_t)best.count * sizeof(*c->seconds));
        c->count = best.count;
        c->exact = best.exact;
    }
    place_sets_free(&best);
    return 0;
}

int railgauge_nodes_best(const struct railgauge_job *job, const int *free_hosts, int n, int need,
                         int k, int *hosts, double *seconds, int *exact, char err[256])
{
    struct api_choosing c = {&job->job, free_hosts, n, need, k, -1, 0, hosts, seconds, {0, ""}};

    mem_guarded(choose_nodes, &c, &c.why);
    if (exact && c.count >= 0)
        *exact = c.exact;
    say(err, c.why.text);
    return c.count;
}

struct api_placing {
    const struct place_job *job;
    const int *free_hosts;
    int n, need, max, rc;
    double limit;
    int *order;
    struct railgauge_placed *out;
    struct err why;
};

static int place(void *placing)
{
    struct api_placing *c = placing;
    struct placed p;

    c->rc = place_job_run(&p, c->job, c->free_hosts, c->n, c->need, c->limit, &c->why);
    if (c->rc == 0 && p.ranks > c->max)
        c->rc =
            err_usage(&c->why, "the job has %d ranks, and there is room for %d", p.ranks, c->max);
    if (c->rc == 0) {
        memcpy(c->order, p.order, (size_t)p.ranks * sizeof(*c->order));
        *c->out = (struct railgauge_placed){p.ranks, p.sec, p.in_order, p.bound, ""};
        snprintf(c->out->how, sizeof(c->out->how), "%s", p.how);
    }
    placed_free(&p);
    return 0;
}

int railgauge_place(const struct railgauge_job *job, const int *free_hosts, int n, int need,
                    double limit, int *order, int max, struct railgauge_placed *placed,
                    char err[256])
{
    struct api_placing c = {&job->job, free_hosts, n, need, max, -1, limit, order, placed, {0, ""}};

    if (limit >= 0 && limit <= LIMIT_MAX)
        mem_guarded(place, &c, &c.why);
    else
        err_usage(&c.why, "%g s of search: 0 to %d are possible", limit, LIMIT_MAX);
    say(err, c.why.text);
    return c.rc;
}
