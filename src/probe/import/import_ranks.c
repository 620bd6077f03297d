/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/import/import_ranks.h"

#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "base/mem.h"

enum { DEVICES_MAX = 1024 };

static void note_seat(struct import *im, int host, int device, int endpoint)
{
    struct import_host *h = &im->host[host];

    MEM_PUSH(h->seat, h->seats) = (struct import_seat){device, endpoint};
}

void import_hosts(struct import *im)
{
    im->hosts = im->topo.hosts;
    im->host = mem_calloc((size_t)im->hosts, sizeof(*im->host));
    for (int i = 0; i < im->topo.endpoints; i++)
        note_seat(im, im->topo.endpoint[i].place.at[LEVEL_HOST], im->topo.endpoint[i].local, i);
}

void import_hosts_free(struct import *im)
{
    for (int i = 0; i < im->hosts; i++)
        free(im->host[i].seat);
    free(im->host);
}

/* The host's index and room for its devices; -1: the given topology does not have it. */
static int host_of(struct import *im, const char *name)
{
    int before = im->topo.hosts, host = topo_add_host(&im->topo, name);

    if (host < before)
        return host;
    if (im->opts->topo)
        return -1;
    MEM_PUSH(im->host, im->hosts) = (struct import_host){.seats = 0};
    return host;
}

static int new_endpoint(struct import *im, int host, const struct recording_rank *k)
{
    int id = topo_add_endpoint(&im->topo, host, ENDPOINT_GPU);
    struct endpoint *e = &im->topo.endpoint[id];

    e->local = k->device;
    e->source[LEVEL_HOST] = SOURCE_USER;
    memcpy(e->busid, k->busid, sizeof(e->busid));
    memcpy(e->model, k->model, sizeof(e->model));
    note_seat(im, host, k->device, id);
    return id;
}

/* The endpoint that a rank is, a new one unless the topology was given; -1: EXIT_DATA. */
static int endpoint_of(struct import *im, const struct recording *r, const struct recording_rank *k,
                       struct err *err)
{
    int host = host_of(im, k->host);

    if (host < 0)
        return err_data(err, "%s: rank %d ran on host %s, which the topology does not have",
                        r->path, k->rank, k->host);
    for (int i = 0; i < im->host[host].seats; i++)
        if (im->host[host].seat[i].device == k->device)
            return im->host[host].seat[i].endpoint;
    if (im->opts->topo)
        return err_data(err, "%s: rank %d ran on device %d of %s, which the topology does not have",
                        r->path, k->rank, k->device, k->host);
    if (k->device >= DEVICES_MAX)
        return err_data(err, "%s: rank %d ran on device %d: no host has so many", r->path, k->rank,
                        k->device);
    return new_endpoint(im, host, k);
}

static int by_rank(const void *a, const void *b)
{
    const struct recording_rank *x = a, *y = b;

    return (x->rank > y->rank) - (x->rank < y->rank);
}

static int by_group(const void *a, const void *b)
{
    const struct recording_rank *x = a, *y = b;

    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    return by_rank(a, b);
}

/* `ranks` of them in blocks on the hosts, devices from 0. */
static int deal_ranks(struct recording_table *t, const struct recording *r, char *const *host,
                      int hosts, int ranks, struct err *err)
{
    if (!hosts || ranks % hosts)
        return err_usage(err, "%d ranks on %d hosts: no whole number of ranks a host", ranks,
                         hosts);
    for (int i = 0, each = ranks / hosts; i < ranks; i++) {
        struct recording_rank k = {.line = t->line, .rank = i, .device = i % each};
        const char *name = host[i / each];
        if (recording_plain(r, t->line, "a host's name", name, sizeof(k.host) - 1, err) < 0)
            return -1;
        memcpy(k.host, name, strlen(name) + 1);
        MEM_PUSH(t->rank, t->ranks) = k;
    }
    return 0;
}

/* Recordings without rank lines. */
static int ranks_of_options(struct recording_table *t, const struct recording *r,
                            const struct import_opts *o, struct err *err)
{
    char **host = NULL;
    int hosts = 0;

    if (!o->hosts || !o->ranks)
        return err_data(err,
                        "%s:%d: no line \"#  Rank\" says which GPUs took part; --hosts LIST "
                        "--ranks N can",
                        r->path, t->line);
    if (hostlist_expand(&host, &hosts, o->hosts, err) < 0)
        return -1;
    int rc = deal_ranks(t, r, host, hosts, o->ranks, err);
    hostlist_free(host, hosts);
    return rc;
}

/* Ranks must be 0..n-1, each on a GPU that can be said; endpoints are made in their order. */
static int check_ranks(struct import *im, const struct recording *r, struct recording_table *t,
                       struct err *err)
{
    char at[320];

    qsort(t->rank, (size_t)t->ranks, sizeof(*t->rank), by_rank);
    for (int i = 0; i < t->ranks; i++) {
        const struct recording_rank *k = &t->rank[i];
        if (k->rank != i)
            return err_data(err, "%s: rank %d %s; %d ranks are listed",
                            recording_at(r, "devices", k->line, at), k->rank,
                            k->rank < i ? "is listed twice" : "while lower ones are missing",
                            t->ranks);
        if (endpoint_of(im, r, k, err) < 0)
            return -1;
    }
    return 0;
}

static int check_sizes(const struct import_groups *g, const struct recording *r,
                       const struct recording_table *t, struct err *err)
{
    for (int i = 0; i < g->count; i++)
        if (g->at[i + 1] - g->at[i] != g->at[1])
            return err_data(err,
                            "%s:%d: groups of %d and of %d ranks: the rows are the average of both",
                            r->path, t->line, g->at[1], g->at[i + 1] - g->at[i]);
    return g->at[1] >= 2 ? 0
                         : err_data(err, "%s:%d: groups of one rank move nothing between GPUs",
                                    r->path, t->line);
}

/* Is one endpoint a member twice?  mark[] has room for every endpoint. */
static int check_members(const struct import_groups *g, const struct import *im,
                         const struct recording *r, const struct recording_table *t,
                         struct err *err)
{
    char *mark = mem_calloc((size_t)im->topo.endpoints, 1), at[320];
    int rc = 0;

    for (int i = 0; i < g->at[g->count] && rc == 0; i++)
        if (mark[g->member[i]]++)
            rc = err_data(err, "%s: rank %d shares device %d of %s with another rank",
                          recording_at(r, "devices", t->rank[i].line, at), t->rank[i].rank,
                          t->rank[i].device, t->rank[i].host);
    free(mark);
    return rc;
}

int import_groups(struct import_groups *g, struct import *im, const struct recording *r,
                  struct recording_table *t, struct err *err)
{
    if ((!t->ranks && ranks_of_options(t, r, im->opts, err) < 0) || check_ranks(im, r, t, err) < 0)
        return -1;
    qsort(t->rank, (size_t)t->ranks, sizeof(*t->rank), by_group);
    g->member = mem_calloc((size_t)t->ranks, sizeof(*g->member));
    for (int i = 0; i < t->ranks; i++) {
        if (i == 0 || t->rank[i].group != t->rank[i - 1].group)
            MEM_PUSH(g->at, g->count) = i;
        if ((g->member[i] = endpoint_of(im, r, &t->rank[i], err)) < 0)
            return -1;
    }
    MEM_PUSH(g->at, g->count) = t->ranks;
    g->count--;
    return check_sizes(g, r, t, err) < 0 ? -1 : check_members(g, im, r, t, err);
}

void import_groups_free(struct import_groups *g)
{
    free(g->member);
    free(g->at);
}
