/* SPDX-License-Identifier: BSD-3-Clause */
/* mnnvl_odd.c - what is odd about GPUs, hosts and domains without being a verdict on NVLink. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "topo/host/gpu.h"
#include "topo/host/mnnvl_facts.h"
#include "topo/host/nvml.h"

struct list {
    char ***items;
    int *count;
};

__attribute__((format(printf, 2, 3))) static void add(struct list *l, const char *fmt, ...)
{
    char text[400];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    MEM_PUSH(*l->items, *l->count) = mem_strdup(text);
}

static void odd_gpu(struct list *l, const struct topo *t, const struct gpu *g)
{
    const char *host = t->host[g->host].name;
    char slow[96];

    nvml_throttle_words(g->throttle, slow, sizeof(slow));
    if (*slow)
        add(l, "host %s GPU %d: %s", host, g->index, slow);
    if (g->pcie_width > 0 && g->pcie_width < g->pcie_width_max)
        add(l, "host %s GPU %d: PCIe x%d of x%d", host, g->index, g->pcie_width, g->pcie_width_max);
    if (g->ecc_uncorrected > 0)
        add(l, "host %s GPU %d: %lld uncorrected memory error%s since the driver was loaded", host,
            g->index, g->ecc_uncorrected, g->ecc_uncorrected == 1 ? "" : "s");
    if (g->remap == REMAP_PENDING || g->remap == REMAP_FAILED)
        add(l, "host %s GPU %d: remapping of bad memory rows %s", host, g->index,
            g->remap == REMAP_FAILED ? "failed" : "waits for a reset");
}

static void odd_domains(struct list *l, const struct facts *f)
{
    int *whole = mem_calloc((size_t)f->domains + 1, sizeof(*whole));
    int *parts = mem_calloc((size_t)f->names.group[LEVEL_RAIL].count + 1, sizeof(*parts));
    bool *seen = mem_calloc((size_t)f->domains + 1, sizeof(*seen));

    for (int i = 0; i < f->t->gpus; i++) {
        int d = f->gpu_domain[i];
        if (d < 0)
            continue;
        whole[d] = fact_whole_domain(f->t->gpu[i].model);
        if (!seen[d] && f->host[f->t->gpu[i].host].cluster >= 0)
            parts[f->host[f->t->gpu[i].host].cluster]++;
        seen[d] = true;
    }
    for (int d = 0; d < f->domains; d++)
        if (f->domain[d].gpus < whole[d])
            add(l, "domain %s: %d of %d GPUs are visible", f->names.group[LEVEL_DOMAIN].name[d],
                f->domain[d].gpus, whole[d]);
    for (int c = 0; c < f->names.group[LEVEL_RAIL].count; c++)
        if (parts[c] > 1)
            add(l, "cluster %s is split into %d cliques: NVLink does not join them",
                f->names.group[LEVEL_RAIL].name[c], parts[c]);
    free(whole);
    free(parts);
    free(seen);
}

static void odd_hosts(struct list *l, const struct facts *f)
{
    const struct topo *t = f->t;
    int most = 0;

    for (int h = 0; h < t->hosts; h++)
        most = f->host[h].gpus > most ? f->host[h].gpus : most;
    for (int h = 0; h < t->hosts; h++)
        if (f->host[h].gpus < most)
            add(l, "host %s: %d GPUs where others have %d", t->host[h].name, f->host[h].gpus, most);
    for (int i = 1; i < t->gpus; i++)
        if (strcmp(t->gpu[i].driver, t->gpu[0].driver) != 0) {
            add(l, "drivers differ: %s on %s, %s on %s", t->gpu[0].driver,
                t->host[t->gpu[0].host].name, t->gpu[i].driver, t->host[t->gpu[i].host].name);
            break;
        }
}

int facts_odd(const struct facts *f, char ***items, int *count)
{
    struct list l = {items, count};

    for (int i = 0; i < f->t->gpus; i++)
        odd_gpu(&l, f->t, &f->t->gpu[i]);
    odd_domains(&l, f);
    int own = *count;
    if (f->t->gpus)
        odd_hosts(&l, f);
    return *count - own;
}
