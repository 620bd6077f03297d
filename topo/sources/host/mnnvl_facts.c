/* SPDX-License-Identifier: BSD-3-Clause */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "topo/gpu.h"
#include "topo/sources/host/mnnvl.h"

bool mnnvl_zero_cluster(const struct gpu *g)
{
    return strspn(g->cluster, "0-") == strlen(g->cluster);
}

bool mnnvl_registered(const struct gpu *g)
{
    return g->state == FABRIC_COMPLETED && g->status == 0 && !mnnvl_zero_cluster(g);
}

/* --- the domain of one GPU --- */

static bool to_switch(const struct gpu *g)
{
    for (int i = 0; i < g->remotes; i++)
        if (g->remote[i].kind == LINK_END_SWITCH ||
            (g->remote[i].kind == LINK_END_UNKNOWN && !g->remote[i].busid[0]))
            return true;
    return false;
}

static bool to_gpu(const struct gpu *a, const struct gpu *b)
{
    for (int i = 0; i < a->remotes; i++)
        if (!strcmp(a->remote[i].busid, b->busid))
            return true;
    return false;
}

static bool joined(const struct gpu *a, const struct gpu *b)
{
    return (to_switch(a) && to_switch(b)) || to_gpu(a, b) || to_gpu(b, a);
}

/* True if registration is pending, failed, or wrongly absent. */
static bool unregistered(const struct gpu *g)
{
    return g->chassis[0] || g->state == FABRIC_NOT_STARTED || g->state == FABRIC_IN_PROGRESS ||
           (g->state == FABRIC_COMPLETED && g->status != 0) || mnnvl_registered(g);
}

/* Mark the GPUs of i's host that NVLinks connect to it; returns their number, i included. */
static int component(const struct topo *t, int i, int first, int count, bool *in)
{
    int queue[GPU_PEERS], n = 1;

    queue[0] = i - first;
    in[i - first] = true;
    for (int at = 0; at < n; at++)
        for (int b = 0; b < count; b++)
            if (!in[b] && !unregistered(&t->gpu[first + b]) &&
                joined(&t->gpu[first + queue[at]], &t->gpu[first + b])) {
                in[b] = true;
                queue[n++] = b;
            }
    return n;
}

bool mnnvl_domain(const struct topo *t, int i, char *name, size_t len)
{
    const struct gpu *g = &t->gpu[i];
    int first = i, end = i + 1, lowest = 0;
    bool in[GPU_PEERS] = {false};

    if (mnnvl_registered(g)) {
        snprintf(name, len, "%s.%lld", g->cluster, g->clique);
        return true;
    }
    if (unregistered(g) || !gpu_links_up(g))
        return false;
    while (first > 0 && t->gpu[first - 1].host == g->host)
        first--;
    while (end < t->gpus && t->gpu[end].host == g->host)
        end++;
    int n = component(t, i, first, end - first, in);
    while (!in[lowest])
        lowest++;
    if (n == end - first)
        snprintf(name, len, "%s", t->host[g->host].name);
    else
        snprintf(name, len, "%s/GPU%d", t->host[g->host].name, t->gpu[first + lowest].index);
    return n > 1;
}

int mnnvl_whole_domain(const char *model)
{
    static const char *const racks[] = {"GB200", "GB300"};

    for (size_t i = 0; i < sizeof(racks) / sizeof(*racks); i++)
        if (strstr(model, racks[i]))
            return 72;
    return 0;
}

/* --- all GPUs --- */

static int intern(struct names *names, const char *name)
{
    return name[0] ? names_add(names, name) : -1;
}

static void intern_gpus(struct mnnvl_facts *f)
{
    char name[96];

    for (int i = 0; i < f->t->gpus; i++) {
        const struct gpu *g = &f->t->gpu[i];
        struct mnnvl_host_facts *h = &f->host[g->host];
        if (!h->gpus++)
            h->first = i;
        f->gpu_model[i] = names_add(&f->names.models, g->model);
        f->gpu_domain[i] = -1;
        if (mnnvl_registered(g) && mnnvl_domain(f->t, i, name, sizeof(name))) {
            f->gpu_domain[i] = names_add(&f->names.domains, name);
            h->cluster = intern(&f->names.clusters, g->cluster);
        } else if (!h->inside) {
            h->inside = mnnvl_domain(f->t, i, name, sizeof(name));
        }
        if (g->chassis[0])
            h->chassis = intern(&f->names.chassis, g->chassis);
        h->rack = h->rack || g->chassis[0] || mnnvl_whole_domain(g->model);
    }
    f->domains = f->names.domains.count;
}

static void count_models(struct mnnvl_facts *f)
{
    for (int i = 0; i < f->t->gpus; i++) {
        const struct gpu *g = &f->t->gpu[i];
        struct mnnvl_model_facts *m = &f->model[f->gpu_model[i]];
        m->gpus++;
        if (gpu_links_up(g) > m->up)
            m->up = gpu_links_up(g);
        if (g->link_Bps > m->link_Bps)
            m->link_Bps = g->link_Bps;
    }
}

/* Domain of most GPUs on the host; ties: the first. */
static int home_of(const struct mnnvl_facts *f, const struct mnnvl_host_facts *h)
{
    int best = -1, most = 0;

    for (int i = h->first; i < h->first + h->gpus; i++) {
        int n = 0;
        for (int k = h->first; k < h->first + h->gpus; k++)
            n += f->gpu_domain[i] >= 0 && f->gpu_domain[k] == f->gpu_domain[i];
        if (n > most) {
            most = n;
            best = f->gpu_domain[i];
        }
    }
    return best;
}

static void note_home(const struct mnnvl_facts *f, int *home, int at, int domain)
{
    if (at >= 0 && domain >= 0 &&
        (home[at] < 0 || f->domain[domain].hosts > f->domain[home[at]].hosts))
        home[at] = domain;
}

static void count_domains(struct mnnvl_facts *f)
{
    for (int h = 0; h < f->t->hosts; h++) {
        f->host[h].domain = home_of(f, &f->host[h]);
        if (f->host[h].domain >= 0)
            f->domain[f->host[h].domain].hosts++;
    }
    for (int i = 0; i < f->t->gpus; i++)
        if (f->gpu_domain[i] >= 0)
            f->domain[f->gpu_domain[i]].gpus++;
    for (int h = 0; h < f->t->hosts; h++) {
        note_home(f, f->cluster_home, f->host[h].cluster, f->host[h].domain);
        note_home(f, f->chassis_home, f->host[h].chassis, f->host[h].domain);
    }
}

/* Set `rack`.  Not for a host alone in its cluster without a rack product, as H100 boxes are. */
static void find_racks(struct mnnvl_facts *f)
{
    int *hosts = mem_calloc((size_t)f->names.clusters.count + 1, sizeof(*hosts));

    for (int h = 0; h < f->t->hosts; h++)
        if (f->host[h].cluster >= 0)
            hosts[f->host[h].cluster]++;
    for (int h = 0; h < f->t->hosts; h++) {
        struct mnnvl_host_facts *k = &f->host[h];
        k->rack = k->rack || (k->cluster >= 0 && hosts[k->cluster] > 1);
        k->inside = k->inside || (!k->rack && k->domain >= 0);
    }
    free(hosts);
}

void mnnvl_facts_open(struct mnnvl_facts *f, const struct topo *t)
{
    memset(f, 0, sizeof(*f));
    f->t = t;
    f->host = mem_calloc((size_t)t->hosts + 1, sizeof(*f->host));
    for (int h = 0; h < t->hosts; h++)
        f->host[h].domain = f->host[h].cluster = f->host[h].chassis = -1;
    f->gpu_domain = mem_ints(t->gpus, -1);
    f->gpu_model = mem_ints(t->gpus, -1);
    intern_gpus(f);
    f->domain = mem_calloc((size_t)f->domains + 1, sizeof(*f->domain));
    f->model = mem_calloc((size_t)f->names.models.count + 1, sizeof(*f->model));
    f->cluster_home = mem_ints(f->names.clusters.count, -1);
    f->chassis_home = mem_ints(f->names.chassis.count, -1);
    count_models(f);
    count_domains(f);
    find_racks(f);
}

void mnnvl_facts_close(struct mnnvl_facts *f)
{
    names_free(&f->names.domains);
    names_free(&f->names.chassis);
    names_free(&f->names.clusters);
    names_free(&f->names.models);
    free(f->host);
    free(f->domain);
    free(f->model);
    free(f->gpu_domain);
    free(f->gpu_model);
    free(f->cluster_home);
    free(f->chassis_home);
}

bool mnnvl_outnumbered(const struct mnnvl_facts *f, int domain, int home)
{
    return home >= 0 && home != domain && 2 * f->domain[domain].hosts < f->domain[home].hosts;
}

const char *mnnvl_clique(const struct mnnvl_facts *f, int domain)
{
    const char *dot = strrchr(f->names.domains.name[domain], '.');

    return dot ? dot + 1 : "";
}
