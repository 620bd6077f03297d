/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/sources/host/host_devices_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "topo/gpu.h"
#include "topo/nic.h"
#include "topo/sources/host/mnnvl.h"

int host_read(struct topo *t, int host, const char *path, size_t bytes,
              int (*parse)(struct topo *t, int host, const char *text, size_t len, const char *path,
                           struct err *err),
              struct err *err)
{
    char *text;
    size_t len;

    if (file_read(&text, &len, path, bytes, err) < 0)
        return -1;
    int rc = parse(t, host, text, len, path, err);
    free(text);
    return rc;
}

bool host_has_file(const char *root, const char *path, const char *more)
{
    char *full = mem_printf("%s%s%s", root, path, more);
    bool yes = access(full, F_OK) == 0;

    free(full);
    return yes;
}

bool host_busid(char to[16], const char *from)
{
    unsigned domain, bus, device, function;
    char rest;

    to[0] = '\0';
    if (!from || sscanf(from, "%8x:%2x:%2x.%1x%c", &domain, &bus, &device, &function, &rest) != 4 ||
        domain > 0xfffff)
        return false;
    snprintf(to, 16, "%04x:%02x:%02x.%x", domain & 0xfffff, bus & 0xff, device & 0xff,
             function & 0xf);
    return true;
}

/* --- GPUs --- */

static void add_row(struct topo *t, int host, int index, const char *busid)
{
    int at = 0;

    while (at < t->gpus &&
           (t->gpu[at].host < host || (t->gpu[at].host == host && t->gpu[at].index < index)))
        at++;
    MEM_PUSH(t->gpu, t->gpus) = (struct gpu){.host = host};
    memmove(&t->gpu[at + 1], &t->gpu[at], (size_t)(t->gpus - 1 - at) * sizeof(*t->gpu));
    gpu_init(&t->gpu[at]);
    t->gpu[at].host = host;
    t->gpu[at].index = index;
    snprintf(t->gpu[at].busid, sizeof(t->gpu[at].busid), "%s", busid);
}

struct gpu *host_gpu(struct topo *t, int host, int index, const char *busid)
{
    int last = -1;
    bool taken = false;

    for (int i = 0; i < t->gpus; i++) {
        struct gpu *g = &t->gpu[i];
        if (g->host != host)
            continue;
        if (*busid && !strcmp(g->busid, busid))
            return g;
        last = g->index > last ? g->index : last;
        taken = taken || g->index == index;
    }
    for (int i = 0; i < t->gpus && index >= 0; i++) {
        struct gpu *g = &t->gpu[i];
        if (g->host != host || g->index != index || (*busid && g->busid[0]))
            continue;
        if (*busid)
            snprintf(g->busid, sizeof(g->busid), "%s", busid);
        return g;
    }
    if (index < 0 || taken)
        index = last + 1;
    if (index >= GPU_PEERS)
        return NULL;
    add_row(t, host, index, busid);
    for (int i = 0;; i++)
        if (t->gpu[i].host == host && t->gpu[i].index == index)
            return &t->gpu[i];
}

/* --- NICs --- */

int host_find_nic(const struct topo *t, int host, const char *name)
{
    for (int i = 0; i < t->nics; i++)
        if (t->nic[i].host == host && !strcmp(t->nic[i].name, name))
            return i;
    return -1;
}

struct nic *host_nic(struct topo *t, int host, const char *name, bool rdma, enum source source)
{
    int i = host_find_nic(t, host, name);
    struct nic n;

    if (i >= 0)
        return &t->nic[i];
    nic_init(&n, host);
    snprintf(n.name, sizeof(n.name), "%s", name);
    n.rdma = rdma;
    n.up = true;
    n.source = source;
    MEM_PUSH(t->nic, t->nics) = n;
    return &t->nic[t->nics - 1];
}

/* --- endpoints --- */

/* Exchange addresses between endpoints and entries of topo.gpu.  Both are the same device if either
 * has no address and their numbers are equal, because both count in the order of PCI addresses. */
static void exchange(struct topo *t, int host)
{
    for (int i = 0; i < t->endpoints; i++) {
        struct endpoint *e = &t->endpoint[i];
        for (int k = 0; k < t->gpus && e->place.at[LEVEL_HOST] == host; k++) {
            struct gpu *g = &t->gpu[k];
            if (g->host != host || g->index != e->local || e->kind != ENDPOINT_GPU)
                continue;
            if (!g->busid[0])
                memcpy(g->busid, e->busid, sizeof(g->busid));
            else if (!e->busid[0])
                memcpy(e->busid, g->busid, sizeof(g->busid));
            break;
        }
    }
}

static bool put(struct topo *t, int row, enum level level, const char *name, enum source source)
{
    bool changed = false;

    for (int i = 0; i < t->endpoints; i++)
        if (t->endpoint[i].gpu == row && t->endpoint[i].place.at[level] < 0) {
            topo_place(t, &t->endpoint[i], level, name, source);
            changed = true;
        }
    return changed;
}

void host_finish(struct topo *t, int host, enum source source)
{
    bool bare = t->host[host].endpoints == 0, changed = bare;
    char name[320];

    for (int i = 0; i < t->gpus && bare; i++)
        if (t->gpu[i].host == host && !gpu_is_lost(&t->gpu[i])) {
            int id = topo_add_endpoint(t, host, ENDPOINT_GPU); /* may move t->endpoint */
            struct endpoint *e = &t->endpoint[id];
            memcpy(e->busid, t->gpu[i].busid, sizeof(e->busid));
            e->local = t->gpu[i].index; /* the driver's index, which may have gaps */
            e->source[LEVEL_HOST] = (unsigned char)source;
        }
    exchange(t, host);
    topo_link_gpus(t);
    for (int i = 0; i < t->endpoints; i++) {
        struct endpoint *e = &t->endpoint[i];
        if (e->gpu >= 0 && !e->model[0])
            memcpy(e->model, t->gpu[e->gpu].model, sizeof(e->model));
    }
    for (int i = 0; i < t->gpus; i++) {
        if (t->gpu[i].host != host)
            continue;
        if (mnnvl_domain(t, i, name, sizeof(name)))
            changed |= put(t, i, LEVEL_DOMAIN, name, source);
        if (t->gpu[i].chassis[0])
            changed |= put(t, i, LEVEL_RACK, t->gpu[i].chassis, source);
    }
    if (changed) /* otherwise keep the tiers of a loaded topology */
        topo_default_tiers(t);
}
