/* SPDX-License-Identifier: BSD-3-Clause */
/* api.c - librailgauge: jobs on nodes, the functions of railgauge.h that use steps. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "matrix/matrix.h"
#include "place/place.h"
#include "railgauge.h"

enum { LIMIT_MAX = 86400 }; /* s */

struct railgauge_job {
    struct place_job job;
};

/* Arguments and results of a call, for mem_guarded(). */
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
    const size_t *start;
    struct railgauge_list *list;
    struct err why;
};

/* Copy the error text; text may be NULL. */
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

struct freeing {
    const struct place_job *job;
    const uint64_t *gpus;
    struct host_slots slots;
    struct err why;
};

static int make_slots(void *freeing)
{
    struct freeing *f = freeing;
    const struct topo *t = &f->job->matrix.topo;

    for (int i = 0; f->gpus && i < t->endpoints; i++)
        if (t->endpoint[i].local >= 64)
            return err_usage(&f->why, "host %.200s has more than 64 endpoints",
                             t->host[topo_at(t, i, LEVEL_HOST)].name);
    host_slots_make(&f->slots, t);
    if (f->gpus)
        host_slots_keep(&f->slots, t->hosts, f->gpus);
    return 0;
}

int railgauge_job_free_gpus(struct railgauge_job *job, const uint64_t *gpus, char err[256])
{
    struct freeing f = {.job = &job->job, .gpus = gpus};
    int rc = mem_guarded(make_slots, &f, &f.why);

    if (rc == 0) {
        host_slots_free(&job->job.slots);
        job->job.slots = f.slots;
    }
    if (err)
        snprintf(err, 256, "%.255s", f.why.text);
    return rc;
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

/* --- many lists --- */

struct priced {
    double sec;
    int index;
};

/* Cheapest first, then dead, then without a price; equal ones keep their order. */
static int cheaper(const void *a, const void *b)
{
    const struct priced *x = a, *y = b;

    if (isnan(x->sec) != isnan(y->sec))
        return isnan(x->sec) ? 1 : -1;
    if (x->sec != y->sec && !isnan(x->sec))
        return x->sec < y->sec ? -1 : 1;
    return x->index - y->index;
}

static void rank(int *out, const double *sec, int n)
{
    struct priced *p = mem_calloc((size_t)n, sizeof(*p));

    for (int i = 0; i < n; i++)
        p[i] = (struct priced){sec[i], i};
    qsort(p, (size_t)n, sizeof(*p), cheaper);
    for (int i = 0; i < n; i++)
        out[i] = p[i].index;
    free(p);
}

/* Size of list i in start; invalid if it ends before it begins or exceeds the number of hosts. */
static int hosts_of(const struct api_call *c, int i)
{
    size_t from = c->start[i], to = c->start[i + 1];

    return to < from ? -1 : to - from > INT_MAX ? INT_MAX : (int)(to - from);
}

static int rank_lists(void *call)
{
    struct api_call *c = call;
    struct place_list l;
    struct err why;

    place_list_open(&l, c->job);
    c->count = 0;
    for (int i = 0; i < c->most; i++) {
        why = (struct err){0, ""};
        c->secs[i] = place_list_cost(&l, c->host + c->start[i], hosts_of(c, i), &why);
        if (isfinite(c->secs[i]))
            c->count++;
        else if (!*c->why.text)
            err_set(&c->why, "list %d: %.240s", i, why.text);
    }
    place_list_close(&l);
    if (c->out)
        rank(c->out, c->secs, c->most);
    return 0;
}

int railgauge_rank(const struct railgauge_job *job, const int *hosts, const size_t *start, int n,
                   double *seconds, int *order, char err[256])
{
    struct api_call c = {.job = &job->job,
                         .host = hosts,
                         .start = start,
                         .most = n,
                         .secs = seconds,
                         .out = order,
                         .count = -1};

    if (n < 0)
        err_usage(&c.why, "%d lists", n);
    else if (mem_guarded(rank_lists, &c, &c.why) < 0)
        c.count = -1;
    say(err, &c);
    return c.count;
}

/* --- a list that changes --- */

struct railgauge_list {
    struct place_list list;
    double sec;
};

static int open_list(void *call)
{
    struct api_call *c = call;
    struct railgauge_list *l = mem_calloc(1, sizeof(*l));

    place_list_open(&l->list, c->job);
    l->sec = place_list_cost(&l->list, c->host, c->hosts, &c->why);
    if (isnan(l->sec)) {
        railgauge_list_close(l);
        return -1;
    }
    c->list = l;
    return 0;
}

int railgauge_list_open(struct railgauge_list **out, const struct railgauge_job *job,
                        const int *hosts, int n, char err[256])
{
    struct api_call c = {.job = &job->job, .host = hosts, .hosts = n};
    int rc = mem_guarded(open_list, &c, &c.why);

    if (rc < 0)
        say(err, &c);
    *out = c.list;
    return rc;
}

static int swap_host(void *call)
{
    struct api_call *c = call;

    c->sec = place_list_swap(&c->list->list, c->need, c->most, &c->why);
    return 0;
}

double railgauge_list_swap(struct railgauge_list *list, int at, int host, char err[256])
{
    struct api_call c = {.list = list, .need = at, .most = host, .sec = NAN};

    if (mem_guarded_kept(swap_host, &c, &c.why) < 0)
        place_list_forget(&list->list);
    if (!isnan(c.sec))
        list->sec = c.sec;
    say(err, &c);
    return c.sec;
}

double railgauge_list_cost(const struct railgauge_list *list)
{
    return list->sec;
}

void railgauge_list_close(struct railgauge_list *list)
{
    if (!list)
        return;
    place_list_close(&list->list);
    free(list);
}

/* --- the best lists --- */

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
