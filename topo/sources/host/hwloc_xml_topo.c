/* SPDX-License-Identifier: BSD-3-Clause */
/* hwloc_xml_topo.c - makes a topology of the contents of hwloc's XML. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"
#include "topo/gpu.h"
#include "topo/nic.h"
#include "topo/sources/host/host_devices_impl.h"
#include "topo/sources/host/hwloc_xml_impl.h"

/* --- common ancestors --- */

/* Deepest object that contains both; -1: none. */
static int meet(const struct hw *h, int a, int b)
{
    while (a != b) {
        if (b < 0 || (a >= 0 && h->object[a].depth >= h->object[b].depth))
            a = h->object[a].above;
        else
            b = h->object[b].above;
    }
    return a;
}

/* Number of PCI bridges between an object and one of its ancestors. */
static int bridges(const struct hw *h, int from, int to)
{
    int n = 0;

    for (from = h->object[from].above; from >= 0 && from != to; from = h->object[from].above)
        n += h->object[from].kind == HW_BRIDGE;
    return n;
}

/* Path as NVML's common ancestor: one PCIe switch, several, host bridge, NUMA node, system. */
static enum gpu_path path_between(const struct hw *h, int a, int b)
{
    int at = meet(h, a, b);

    if (a == b)
        return PATH_SELF;
    if (at >= 0 && (h->object[at].kind == HW_BRIDGE || h->object[at].kind == HW_PCI))
        return bridges(h, a, at) <= 1 && bridges(h, b, at) <= 1 ? PATH_PIX : PATH_PXB;
    if (at >= 0 && h->object[at].kind == HW_HOST_BRIDGE)
        return PATH_PHB;
    return at >= 0 && h->object[at].numa >= 0 ? PATH_NODE : PATH_SYS;
}

/* --- NICs --- */

static void fill_port(struct topo *t, int host, const struct hw *h, const struct hw_object *o,
                      int port, const char *netdev)
{
    const struct hw_object *pci = o->above < 0 ? NULL : &h->object[o->above];
    char name[32];

    snprintf(name, sizeof(name), port > 1 ? "%.26s:%d" : "%.26s", o->name, port);
    if (!*name)
        return;
    bool known = host_find_nic(t, host, name) >= 0;
    struct nic *n = host_nic(t, host, name, o->kind == HW_FABRIC, SOURCE_HWLOC);
    if (!known) {
        n->layer = o->kind == HW_NET ? LINK_ETHERNET : LINK_UNKNOWN;
        n->up = o->port_up[port] != 0;
    }
    if (pci && !n->busid[0])
        memcpy(n->busid, pci->busid, sizeof(n->busid));
    n->numa = n->numa < 0 ? o->numa : n->numa;
    if (!n->guid[0])
        memcpy(n->guid, o->guid, sizeof(n->guid));
    if (!n->gid[0] && port == 1)
        memcpy(n->gid, o->gid, sizeof(n->gid));
    if (!n->netdev[0] && netdev)
        snprintf(n->netdev, sizeof(n->netdev), "%.15s", netdev);
}

/* Add the NICs.  An interface of an RDMA card is entered under the card's name. */
static void fill_nics(struct topo *t, int host, const struct hw *h)
{
    for (int i = 0; i < h->objects; i++) {
        const struct hw_object *o = &h->object[i];
        const char *netdev = o->kind == HW_NET ? o->name : NULL;
        bool card = false;
        if ((o->kind != HW_NET && o->kind != HW_FABRIC) || o->above < 0)
            continue;
        for (int k = 0; k < h->objects; k++) {
            if (h->object[k].above != o->above || k == i)
                continue;
            card = card || (o->kind == HW_NET && h->object[k].kind == HW_FABRIC);
            if (o->kind == HW_FABRIC && h->object[k].kind == HW_NET && !netdev)
                netdev = h->object[k].name;
        }
        if (card || !strncmp(o->name, "lo", 3))
            continue;
        fill_port(t, host, h, o, 1, netdev);
        if (o->port_up[2] >= 0)
            fill_port(t, host, h, o, 2, NULL);
    }
}

/* Nearest NIC: RDMA before plain, up before down, then the nearest, then the one used by the
 * fewest others, as in topo/sources/host/hwloc.c. */
static int nearest(const struct topo *t, int host, const struct hw *h, int at)
{
    int best = -1, best_key = -1;

    for (int i = 0; i < h->objects; i++) {
        const struct hw_object *o = &h->object[i];
        int nic = o->kind == HW_NET || o->kind == HW_FABRIC ? host_find_nic(t, host, o->name) : -1;
        int used = 0;
        if (nic < 0)
            continue;
        int common = meet(h, i, at);
        int near = common < 0 ? 0 : h->object[common].depth + 1;
        for (int e = 0; e < t->endpoints; e++)
            used += t->endpoint[e].nic == nic;
        int key = ((t->nic[nic].rdma * 2 + t->nic[nic].up) * 1000 + near) * 1000 + 999 -
                  (used < 999 ? used : 999);
        if (key > best_key) {
            best = nic;
            best_key = key;
        }
    }
    return best;
}

/* --- NVLinks --- */

/* Rate of one link per direction in hwloc's MB/s, by generation (hwloc/topology-nvml.c: 20000 and
 * 25000; and NVML's own numbers). */
static long long link_rate(const struct hw_distances *d)
{
    static const long long rates[] = {25000, 20000, 26562, 53125};

    for (size_t r = 0; r < sizeof(rates) / sizeof(*rates); r++) {
        bool fits = true;
        for (int i = 0; i < d->values; i++)
            fits = fits && (i % (d->indices + 1) == 0 || d->value[i] % rates[r] == 0);
        if (fits)
            return rates[r];
    }
    return 0;
}

static int object_by_gp(const struct hw *h, long long gp)
{
    for (int i = 0; i < h->objects; i++)
        if (h->object[i].gp == gp)
            return i;
    return -1;
}

/* GPU of a matrix row: the object itself, or the GPU below its OS device; -1: no GPU. */
static int gpu_of(const struct hw *h, int at)
{
    while (at >= 0 && h->object[at].kind != HW_GPU &&
           (h->object[at].kind == HW_OTHER || h->object[at].kind == HW_PCI) &&
           h->object[at].above >= 0 && h->object[h->object[at].above].kind == HW_GPU)
        at = h->object[at].above;
    return at >= 0 && h->object[at].kind == HW_GPU ? at : -1;
}

static void fill_links(struct topo *t, int host, const struct hw *h)
{
    const struct hw_distances *d = &h->nvlink;
    long long rate = d->indices ? link_rate(d) : 0;

    for (int i = 0; i < d->indices && rate; i++) {
        int row = gpu_of(h, object_by_gp(h, d->index[i]));
        struct gpu *g = row < 0 ? NULL : host_gpu(t, host, -1, h->object[row].busid);
        if (!g || g->links >= 0)
            continue;
        g->links = 0;
        g->counted = true;
        g->link_Bps = units_in(FOREIGN_HWLOC_BANDWIDTH, (double)rate);
        for (int k = 0; k < d->indices; k++) {
            long long links = k == i ? 0 : d->value[i * d->indices + k] / rate;
            int end = object_by_gp(h, d->index[k]), peer = gpu_of(h, end);
            if (links <= 0 || links > GPU_LINKS - g->links || g->remotes == GPU_LINKS)
                continue;
            struct gpu_remote *to = &g->remote[g->remotes++];
            memset(to, 0, sizeof(*to));
            to->links = (int)links;
            to->kind = peer >= 0                                       ? LINK_END_GPU
                       : end >= 0 && h->object[end].kind == HW_SWITCH  ? LINK_END_SWITCH
                       : end >= 0 && h->object[end].kind == HW_PACKAGE ? LINK_END_CPU
                                                                       : LINK_END_UNKNOWN;
            end = peer >= 0 ? peer : end;
            if (end >= 0)
                memcpy(to->busid, h->object[end].busid, sizeof(to->busid));
            g->links += to->links;
        }
        if (!g->links)
            g->link_Bps = 0;
    }
}

/* --- the whole file --- */

static int by_busid(const void *x, const void *y)
{
    const struct hw_object *const *a = x, *const *b = y;

    return strcmp((*a)->busid, (*b)->busid);
}

/* GPUs sorted by address, as in NVML; *count of them. */
static const struct hw_object **gpus_of(const struct hw *h, int *count)
{
    const struct hw_object **list = NULL;

    *count = 0;
    for (int i = 0; i < h->objects; i++)
        if (h->object[i].kind == HW_GPU)
            MEM_PUSH(list, *count) = &h->object[i];
    if (*count)
        qsort(list, (size_t)*count, sizeof(*list), by_busid);
    return list;
}

static void fill_gpus(struct topo *t, int host, const struct hw *h, const struct hw_object **list,
                      int count)
{
    for (int i = 0; i < count; i++) {
        struct gpu *g = host_gpu(t, host, -1, list[i]->busid);
        if (!g) {
            topo_unseen(t, "GPUs", "more than %d on a host", GPU_PEERS);
            return;
        }
        if (!g->uuid[0])
            memcpy(g->uuid, list[i]->uuid, sizeof(g->uuid));
        if (!g->model[0])
            memcpy(g->model, list[i]->model, sizeof(g->model));
    }
    for (int i = 0; i < count; i++)
        for (int k = 0; k < count; k++) {
            struct gpu *peer = host_gpu(t, host, -1, list[k]->busid);
            int index = peer->index;
            struct gpu *g = host_gpu(t, host, -1, list[i]->busid);
            while (g->paths <= index)
                g->path[g->paths++] = -1;
            if (g->path[index] < 0)
                g->path[index] =
                    path_between(h, (int)(list[i] - h->object), (int)(list[k] - h->object));
        }
    fill_links(t, host, h);
}

static void fill_host(struct host *to, const struct hw *h)
{
    to->sockets = to->sockets ? to->sockets : h->packages;
    to->cores = to->cores ? to->cores : h->cores ? h->cores : h->pus;
    to->memory_bytes = to->memory_bytes > 0 ? to->memory_bytes : h->memory;
    if (!to->cpu && h->cpu[0])
        to->cpu = mem_strdup(h->cpu);
}

static void add_sockets(struct topo *t, int host, const struct hw *h)
{
    for (int i = 0; i < h->objects; i++) {
        /* Without packages use the machine, which is the first object. */
        if (h->object[i].kind != HW_PACKAGE && (h->packages || i))
            continue;
        int nic = nearest(t, host, h, i), id = topo_add_endpoint(t, host, ENDPOINT_CPU);
        struct endpoint *e = &t->endpoint[id];
        e->source[LEVEL_HOST] = SOURCE_HWLOC;
        e->numa = h->object[i].numa;
        e->nic = nic;
        snprintf(e->model, sizeof(e->model), "%.47s", h->cpu);
    }
}

void hw_fill(struct topo *t, int host, const struct hw *h)
{
    int count;
    const struct hw_object **list = gpus_of(h, &count);
    bool bare = t->host[host].endpoints == 0;

    if (count > GPU_PEERS) {
        topo_unseen(t, "GPUs", "%d on host %.200s, of which %d are kept", count, t->host[host].name,
                    GPU_PEERS);
        count = GPU_PEERS;
    }
    fill_host(&t->host[host], h);
    fill_nics(t, host, h);
    fill_gpus(t, host, h, list, count);
    if (bare && !count)
        add_sockets(t, host, h);
    host_finish(t, host, SOURCE_HWLOC);
    for (int e = 0; e < t->endpoints; e++)
        for (int i = 0; i < count; i++) {
            if (t->endpoint[e].place.at[LEVEL_HOST] != host ||
                strcmp(t->endpoint[e].busid, list[i]->busid) != 0)
                continue;
            int at = (int)(list[i] - h->object);
            int nic = t->endpoint[e].nic < 0 ? nearest(t, host, h, at) : t->endpoint[e].nic;
            t->endpoint[e].nic = nic;
            t->endpoint[e].numa = t->endpoint[e].numa < 0 ? list[i]->numa : t->endpoint[e].numa;
        }
    free(list);
}
