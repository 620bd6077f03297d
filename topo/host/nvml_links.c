/* SPDX-License-Identifier: BSD-3-Clause */
/* NVLinks of a GPU and what they lead to; where the other GPUs are on PCI. */
#include <stdio.h>
#include <string.h>

#include "base/convert.h"
#include "topo/host/gpu.h"
#include "topo/host/nvml_parts.h"

void nvml_busid(char to[16], const struct nvml_pci *pci)
{
    snprintf(to, 16, "%04x:%02x:%02x.0", pci->domain & 0xffffff, pci->bus & 0xff,
             pci->device & 0xff);
}

static void add_remote(struct gpu *g, enum link_end kind, const char *busid)
{
    struct gpu_remote *r = g->remote;

    while (r < g->remote + g->remotes && (r->kind != kind || strcmp(r->busid, busid) != 0))
        r++;
    if (r == g->remote + g->remotes) {
        g->remotes++;
        r->kind = kind;
        snprintf(r->busid, sizeof(r->busid), "%s", busid);
        r->links = 0;
    }
    r->links++;
}

static void read_remote(const struct nvml_api *a, nvml_device d, unsigned link, struct gpu *g)
{
    static const enum link_end ends[] = {LINK_END_GPU, LINK_END_CPU, LINK_END_SWITCH};
    struct nvml_pci pci = {.domain = 0};
    char busid[16] = "";
    int kind = -1;

    if (!a->link_end || a->link_end(d, link, &kind) != NVML_SUCCESS || kind < 0 || kind > 2)
        kind = -1;
    /* A virtual machine and a rack's switches hide their address behind one of all ones. */
    if (a->link_pci && a->link_pci(d, link, &pci) == NVML_SUCCESS && pci.domain < 0xfffffff &&
        pci.bus < 0xff)
        nvml_busid(busid, &pci);
    add_remote(g, kind < 0 ? LINK_END_UNKNOWN : ends[kind], busid);
}

/* The slowest of the active links; fields tell MB/s. */
static double read_speed(const struct nvml_api *a, nvml_device d, unsigned long long active)
{
    struct nvml_field f[GPU_LINKS] = {{.id = 0}};
    double slowest = 0;
    int n = 0;

    for (unsigned i = 0; i < GPU_LINKS; i++)
        if (active >> i & 1)
            f[n++] = (struct nvml_field){.id = NVML_FIELD_LINK_SPEED, .scope = i};
    nvml_ask(a, d, f, n);
    for (int i = 0; i < n; i++) {
        double Bps = convert_in(CONVERT_NVML_LINK, (double)nvml_value(&f[i]));
        if (Bps > 0 && (slowest == 0 || Bps < slowest))
            slowest = Bps;
    }
    long long common = slowest == 0 && n ? nvml_field_of(a, d, NVML_FIELD_LINK_SPEED_ALL) : 0;
    return common > 0 ? convert_in(CONVERT_NVML_LINK, (double)common) : slowest;
}

/* A link that the GPU does not have is refused; their numbers may have gaps. */
void nvml_read_links(const struct nvml_api *a, nvml_device d, struct gpu *g)
{
    unsigned long long active = 0;
    int is;

    if (!a->link_state)
        return;
    g->links = 0;
    for (unsigned i = 0; i < GPU_LINKS; i++) {
        if (a->link_state(d, i, &is) != NVML_SUCCESS)
            continue;
        g->links++;
        active |= (unsigned long long)!!is << i;
        g->down |= (unsigned long long)!is << i;
        if (is)
            read_remote(a, d, i, g);
    }
    g->link_Bps = read_speed(a, d, active);
}

void nvml_read_paths(const struct nvml *n, int i, struct gpu *g)
{
    static const int level[] = {0, 10, 20, 30, 40, 50}; /* in the order of enum gpu_path */

    for (int k = 0; n->api.ancestor && k < n->devices && k < GPU_PEERS; k++) {
        int is = -1, path = k == i ? PATH_SELF : -1;
        if (k != i && n->device[k].handle &&
            n->api.ancestor(n->device[i].handle, n->device[k].handle, &is) == NVML_SUCCESS)
            for (int p = PATH_SELF; p <= PATH_SYS; p++)
                path = level[p] == is ? p : path;
        g->path[g->paths++] = path;
    }
}
