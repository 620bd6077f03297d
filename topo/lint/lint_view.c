/* SPDX-License-Identifier: BSD-3-Clause */
/* lint_view.c - hosts, what belongs to each, and of what kind they are. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "topo/lint/lint_parts.h"

static void count_gpus(struct lint_view *v)
{
    const struct topo *t = v->t;

    for (int i = t->gpus - 1; i >= 0; i--) {
        v->host[t->gpu[i].host].gpu = i;
        v->host[t->gpu[i].host].gpus++;
    }
    for (int i = 0; i < t->endpoints; i++)
        v->host[t->endpoint[i].place.at[LEVEL_HOST]].named += t->endpoint[i].kind == ENDPOINT_GPU;
}

static void sort_nics(struct lint_view *v)
{
    const struct topo *t = v->t;

    for (int i = 0; i < t->nics; i++) {
        struct lint_host *h = &v->host[t->nic[i].host];
        h->nics++;
        h->hcas += t->nic[i].rdma;
        h->up += t->nic[i].rdma && t->nic[i].up;
    }
    for (int h = 0, at = 0; h < t->hosts; at += v->host[h++].nics)
        v->host[h].nic = at;
    int *next = mem_calloc((size_t)t->hosts + 1, sizeof(*next));
    for (int i = 0; i < t->nics; i++)
        v->nic[v->host[t->nic[i].host].nic + next[t->nic[i].host]++] = i;
    free(next);
}

/* The first GPU's model of each host, NULL: it has none. */
static const char **models(const struct topo *t)
{
    const char **model = mem_calloc((size_t)t->hosts + 1, sizeof(*model));

    for (int i = t->endpoints - 1; i >= 0; i--)
        if (t->endpoint[i].kind == ENDPOINT_GPU)
            model[t->endpoint[i].place.at[LEVEL_HOST]] = t->endpoint[i].model;
    for (int i = t->gpus - 1; i >= 0; i--)
        model[t->gpu[i].host] = t->gpu[i].model;
    return model;
}

/* Kind of each host: its first GPU's model, else what most hosts with that CPU have, else the CPU;
 * of a host that others tell of alone, its name without numbers. */
static void find_kinds(struct lint_view *v)
{
    const struct topo *t = v->t;
    const char **model = models(t);
    struct by_cpu {
        int hosts, with; /* with GPUs */
        const char *model;
    } *cpu = mem_calloc((size_t)t->hosts + 1, sizeof(*cpu));
    int *of = mem_calloc((size_t)t->hosts + 1, sizeof(*of));

    for (int h = 0; h < t->hosts; h++) {
        of[h] = t->host[h].cpu ? topo_add_group(&v->words, LEVEL_DOMAIN, t->host[h].cpu) : -1;
        if (of[h] < 0)
            continue;
        struct by_cpu *c = &cpu[of[h]];
        c->hosts++;
        c->with += model[h] != NULL;
        c->model = c->model ? c->model : model[h];
    }
    for (int h = 0; h < t->hosts; h++) {
        const struct by_cpu *c = of[h] < 0 ? NULL : &cpu[of[h]];
        bool most = c && 2 * c->with > c->hosts - 1; /* of the other ones */
        const char *like = model[h] ? model[h] : most ? c->model : NULL;
        char *family = topo_host_family(t->host[h].name);
        v->host[h].kind = topo_add_group(&v->words, LEVEL_RACK,
                                         like             ? like
                                         : t->host[h].cpu ? t->host[h].cpu
                                                          : family);
        free(family);
    }
    free(of);
    free(cpu);
    free(model);
}

void lint_view_open(struct lint_view *v, const struct topo *t)
{
    memset(v, 0, sizeof(*v));
    v->t = t;
    v->host = mem_calloc((size_t)t->hosts + 1, sizeof(*v->host));
    v->nic = mem_calloc((size_t)t->nics + 1, sizeof(*v->nic));
    v->named = mem_calloc((size_t)t->gpus + 1, sizeof(*v->named));
    topo_init(&v->words);
    for (int h = 0; h < t->hosts; h++)
        v->host[h].gpu = -1;
    count_gpus(v);
    sort_nics(v);
    find_kinds(v);
}

void lint_view_close(struct lint_view *v)
{
    topo_free(&v->words);
    free(v->host);
    free(v->nic);
    free(v->named);
}
