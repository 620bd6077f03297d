/* SPDX-License-Identifier: BSD-3-Clause */
/* smi_topo.c - what the table of `nvidia-smi topo -m` tells of a host. */
#include <stdlib.h>

#include "base/mem.h"
#include "topo/host/gpu.h"
#include "topo/host/host_devices.h"
#include "topo/host/smi.h"
#include "topo/host/smi_table.h"

enum { LINKS_OF_A_GPU = 18 };

/* All its links lead to switches when every peer shows the same number and their sum is more than
 * a GPU has; one peer alone leaves it open. */
static void set_links(struct gpu *g, const struct smi_table *b, int at, bool anybody)
{
    int sum = 0, same = 0, peers = 0;
    bool equal = true;

    for (int c = 0; c < b->devices; c++) {
        int links = b->device[c].gpu ? b->cell[at][c] - SMI_NVLINKS : 0;
        if (links <= 0)
            continue;
        equal = equal && (!peers || links == same);
        same = links;
        sum += links;
        peers++;
    }
    if (g->links >= 0 || (!peers && !anybody))
        return;
    g->links = 0;
    g->counted = true;
    if (!peers)
        return;
    bool switched = equal && (sum > LINKS_OF_A_GPU || same > LINKS_OF_A_GPU);
    if (switched || peers == 1 || sum > GPU_LINKS) {
        g->links = same;
        g->remote[g->remotes++] =
            (struct gpu_remote){switched ? LINK_END_SWITCH : LINK_END_UNKNOWN, "", same};
        return;
    }
    g->links = sum;
    for (int c = 0; c < b->devices; c++)
        if (b->device[c].gpu && b->cell[at][c] > SMI_NVLINKS && g->remotes < GPU_LINKS)
            g->remote[g->remotes++] =
                (struct gpu_remote){LINK_END_GPU, "", b->cell[at][c] - SMI_NVLINKS};
}

/* PCI paths to other GPUs; where there is NVLink the table does not tell them. */
static void set_paths(struct gpu *g, const struct smi_table *b, int at)
{
    for (int c = 0; c < b->devices; c++) {
        int peer = b->device[c].number, path = b->cell[at][c];
        if (!b->device[c].gpu || peer >= GPU_PEERS)
            continue;
        while (g->paths <= peer)
            g->path[g->paths++] = -1;
        if (g->path[peer] < 0 && path >= 0 && path < SMI_NVLINKS)
            g->path[peer] = path;
    }
}

/* The nearest NIC, of several the one that fewest GPUs have; where all are across sockets nothing
 * is near. */
static int nearest(const struct topo *t, int host, const struct smi_table *b, int at,
                   const int *nic)
{
    int best = -1, best_key = 0, count = 0;

    for (int c = 0; c < b->devices; c++) {
        int path = b->cell[at][c], used = 0;
        if (b->device[c].gpu || path < 0 || path >= SMI_NVLINKS)
            continue;
        count++;
        for (int e = 0; e < t->endpoints; e++)
            used += t->endpoint[e].place.at[LEVEL_HOST] == host && t->endpoint[e].nic == nic[c];
        int key = (PATH_SYS - path) * 1000 + 999 - used;
        if (path < PATH_SYS && key > best_key) {
            best = nic[c];
            best_key = key;
        }
    }
    for (int c = 0; c < b->devices && count == 1; c++)
        if (!b->device[c].gpu)
            best = nic[c];
    return best;
}

static int fill(struct topo *t, int host, const struct smi_table *b, const char *path,
                struct err *err)
{
    int nic[SMI_DEVICES], rc = 0;
    bool anybody = false;

    for (int i = 0; i < b->devices; i++)
        for (int c = 0; c < b->devices; c++)
            anybody = anybody || b->cell[i][c] > SMI_NVLINKS;
    for (int i = 0; i < b->devices && rc == 0; i++) {
        nic[i] = -1;
        if (!b->device[i].gpu) {
            host_nic(t, host, b->device[i].name, true, SOURCE_SMI);
            nic[i] = host_find_nic(t, host, b->device[i].name);
            continue;
        }
        struct gpu *g = host_gpu(t, host, b->device[i].number, "");
        if (!g) {
            rc = err_data(err, "%s: GPU%d is more than the %d GPUs of a host", path,
                          b->device[i].number, GPU_PEERS);
            break;
        }
        set_links(g, b, i, anybody);
        set_paths(g, b, i);
    }
    host_finish(t, host, SOURCE_SMI);
    for (int i = 0; i < b->devices && rc == 0; i++)
        for (int e = 0; e < t->endpoints && b->device[i].gpu; e++) {
            struct endpoint *p = &t->endpoint[e];
            if (p->place.at[LEVEL_HOST] != host || p->gpu < 0 ||
                t->gpu[p->gpu].index != b->device[i].number)
                continue;
            p->numa = p->numa < 0 ? b->numa[i] : p->numa;
            p->nic = p->nic < 0 ? nearest(t, host, b, i, nic) : p->nic;
        }
    return rc;
}

int smi_topo_parse(struct topo *t, int host, const char *text, size_t len, const char *path,
                   struct err *err)
{
    struct smi_table *b = mem_calloc(1, sizeof(*b));
    int rc = smi_table_parse(b, text, len, path, err);

    if (rc == 0)
        rc = fill(t, host, b, path, err);
    free(b);
    return rc;
}

int smi_topo_read(struct topo *t, int host, const char *path, struct err *err)
{
    return host_read(t, host, path, SMI_TOPO_BYTES_MAX, smi_topo_parse, err);
}
