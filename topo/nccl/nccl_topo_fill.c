/* SPDX-License-Identifier: BSD-3-Clause */
/* nccl_topo_fill.c - devices of a topology file of NCCL, put into the topology. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/convert.h"
#include "base/mem.h"
#include "topo/host/gpu.h"
#include "topo/host/host_devices.h"
#include "topo/host/nic.h"
#include "topo/nccl/nccl_parts.h"
#include "topo/nccl/nccl_topo.h"

/* --- into the topology --- */

static enum gpu_path path_between(const struct device *a, const struct device *b)
{
    int same = 0;

    if (a->cpu != b->cpu)
        return a->numa >= 0 && a->numa == b->numa ? PATH_NODE : PATH_SYS;
    while (same < a->links_of_chain && same < b->links_of_chain && a->chain[same] == b->chain[same])
        same++;
    if (!same)
        return PATH_PHB;
    return a->links_of_chain - same <= 1 && b->links_of_chain - same <= 1 ? PATH_PIX : PATH_PXB;
}

struct fill {
    struct topo *t;
    int host;
    struct device **gpu, **net;
    int gpus, nets, *nic; /* nic: index into t->nic of each net */
};

static int by_busid(const void *x, const void *y)
{
    return strcmp((*(struct device *const *)x)->busid, (*(struct device *const *)y)->busid);
}

/* A rail or plane that nobody told before. */
static void number(int *to, enum source *source, int told)
{
    if (*to >= 0 || told < 0)
        return;
    *to = told;
    *source = SOURCE_NCCL;
}

static void fill_nic(struct fill *f, int i)
{
    const struct device *d = f->net[i];
    char name[32];
    int at = d->name[0] ? -1 : host_find_nic_busid(f->t, f->host, d->busid);

    if (d->name[0])
        snprintf(name, sizeof(name), d->port > 1 ? "%.26s:%d" : "%.31s", d->name, d->port);
    else
        snprintf(name, sizeof(name), "%s", d->busid);
    if (at < 0) {
        host_nic(f->t, f->host, name, !d->name[0] || strncmp(d->name, "eth", 3) != 0, SOURCE_NCCL);
        at = host_find_nic(f->t, f->host, name);
    }
    struct nic *n = &f->t->nic[at];
    if (!n->busid[0])
        memcpy(n->busid, d->busid, sizeof(n->busid));
    if (n->rate_Bps <= 0 && d->Mbps > 0)
        n->rate_Bps = convert_in(CONVERT_NCCL_SPEED, (double)d->Mbps);
    n->numa = n->numa < 0 ? d->numa : n->numa;
    number(&n->rail, &n->rail_source, d->rail);
    number(&n->plane, &n->plane_source, d->plane);
    f->nic[i] = at;
}

static void fill_gpu(struct fill *f, int i)
{
    const struct device *d = f->gpu[i];
    struct gpu *g = host_gpu(f->t, f->host, -1, d->busid);

    if (!g)
        return;
    if (g->links < 0 && d->links.links >= 0) {
        g->links = d->links.links;
        g->counted = true;
        g->remotes = d->links.remotes;
        memcpy(g->remote, d->links.remote, sizeof(g->remote));
    }
    if (!g->model[0] && d->pci_device)
        snprintf(g->model, sizeof(g->model), "PCI device %04x", d->pci_device & 0xffff);
}

static void fill_paths(struct fill *f)
{
    for (int i = 0; i < f->gpus; i++)
        for (int k = 0; k < f->gpus; k++) {
            struct gpu *peer = host_gpu(f->t, f->host, -1, f->gpu[k]->busid);
            int index = peer ? peer->index : -1;
            struct gpu *g = host_gpu(f->t, f->host, -1, f->gpu[i]->busid);
            if (!g || index < 0)
                continue;
            while (g->paths <= index)
                g->path[g->paths++] = -1;
            if (g->path[index] < 0)
                g->path[index] = i == k ? PATH_SELF : path_between(f->gpu[i], f->gpu[k]);
        }
}

/* The nearest, of several the one that fewest GPUs have; across CPUs nothing is near. */
static int nearest(const struct fill *f, const struct device *gpu)
{
    int best = -1, best_key = -1;

    for (int i = 0; i < f->nets; i++) {
        int path = path_between(gpu, f->net[i]), used = 0;
        for (int e = 0; e < f->t->endpoints; e++)
            used += f->t->endpoint[e].nic == f->nic[i];
        int key = (PATH_SYS - path) * 1000 + 999 - (used < 999 ? used : 999);
        if ((path < PATH_SYS || f->nets == 1) && key > best_key) {
            best = f->nic[i];
            best_key = key;
        }
    }
    return best;
}

static void fill_endpoints(struct fill *f)
{
    for (int e = 0; e < f->t->endpoints; e++)
        for (int i = 0; i < f->gpus; i++) {
            struct endpoint *p = &f->t->endpoint[e];
            if (p->place.at[LEVEL_HOST] != f->host || strcmp(p->busid, f->gpu[i]->busid) != 0)
                continue;
            p->numa = p->numa < 0 ? f->gpu[i]->numa : p->numa;
            p->nic = p->nic < 0 ? nearest(f, f->gpu[i]) : p->nic;
        }
}

/* All on the host bridge of CPUs without a NUMA node: no real board of this size is like that. */
static void say_flat(const struct fill *f)
{
    bool flat = f->gpus > 1 && f->nets > 0;
    char what[300];

    for (int i = 0; i < f->gpus; i++)
        flat = flat && !f->gpu[i]->links_of_chain && f->gpu[i]->numa < 0;
    for (int i = 0; i < f->nets; i++)
        flat = flat && !f->net[i]->links_of_chain;
    snprintf(what, sizeof(what), "PCIe switches of %.200s", f->t->host[f->host].name);
    if (flat)
        topo_unseen(f->t, what,
                    "a virtual machine shows the PCIe tree flat: %d GPUs and %d NICs on one host "
                    "bridge, so that NCCL cannot know which NIC is near a GPU; a topology file "
                    "with the real switches (NCCL_TOPO_FILE) tells it",
                    f->gpus, f->nets);
}

static void fill_host(const struct nccl_devices *r, struct topo *t, int host, uint64_t hash)
{
    struct fill f = {.t = t, .host = host};

    for (int i = 0; i < r->devices; i++) {
        if (r->device[i].host != hash)
            continue;
        if (!r->device[i].gpu)
            MEM_PUSH(f.net, f.nets) = &r->device[i];
        else
            MEM_PUSH(f.gpu, f.gpus) = &r->device[i];
    }
    if (f.gpus)
        qsort(f.gpu, (size_t)f.gpus, sizeof(*f.gpu), by_busid);
    if (f.gpus > GPU_PEERS) {
        topo_unseen(t, "GPUs", "%d on host %.200s, of which %d are kept", f.gpus,
                    t->host[host].name, GPU_PEERS);
        f.gpus = GPU_PEERS;
    }
    f.nic = mem_calloc((size_t)f.nets + 1, sizeof(*f.nic));
    for (int i = 0; i < f.nets; i++)
        fill_nic(&f, i);
    for (int i = 0; i < f.gpus; i++)
        fill_gpu(&f, i);
    fill_paths(&f);
    host_finish(t, host, SOURCE_NCCL);
    fill_endpoints(&f);
    say_flat(&f);
    free(f.gpu);
    free(f.net);
    free(f.nic);
}

/* NCCL fuses hosts of one NVLink domain: GPUs with links in it are one, unless others told it. */
static void join_domain(struct topo *t, const char *name)
{
    for (int i = 0; i < t->endpoints; i++)
        if (t->endpoint[i].place.at[LEVEL_DOMAIN] >= 0 &&
            t->endpoint[i].source[LEVEL_DOMAIN] != SOURCE_NCCL)
            return;
    topo_clear_level(t, LEVEL_DOMAIN);
    for (int i = 0; i < t->endpoints; i++) {
        struct endpoint *e = &t->endpoint[i];
        if (e->gpu < 0 || gpu_links_up(&t->gpu[e->gpu]) == 0)
            continue;
        e->place.at[LEVEL_DOMAIN] = topo_add_group(t, LEVEL_DOMAIN, name);
        e->source[LEVEL_DOMAIN] = SOURCE_NCCL;
    }
    topo_default_tiers(t);
}

void nccl_topo_fill(struct topo *t, int host, const struct nccl_devices *r, const char *path)
{
    uint64_t *hash = NULL;
    int hosts = 0;

    for (int i = 0; i < r->devices; i++) {
        int k = 0;
        while (k < hosts && hash[k] != r->device[i].host)
            k++;
        if (k == hosts)
            MEM_PUSH(hash, hosts) = r->device[i].host;
    }
    char *own = mem_strdup(t->host[host].name);
    for (int k = 0; k < hosts; k++) {
        char *name = mem_printf("%.200s-%d", own, k + 1);
        fill_host(r, t, k ? topo_add_host(t, name) : host, hash[k]);
        free(name);
    }
    if (hosts > 1)
        join_domain(t, own);
    free(own);
    if (hosts > 1)
        topo_unseen(
            t, "host names",
            "%.200s is a dump of %d hosts, whose names NCCL does not tell (and which it does "
            "not take as NCCL_TOPO_FILE)",
            path, hosts);
    else if (r->elements > NCCL_OWN_XML_NODES)
        topo_unseen(t, "NCCL_TOPO_FILE",
                    "%.200s has %d elements, and NCCL takes %d of a host (nccl issue 2160)", path,
                    r->elements, NCCL_OWN_XML_NODES);
    free(hash);
}
