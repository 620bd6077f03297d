/* SPDX-License-Identifier: BSD-3-Clause */
/* nccl_paths.c - paths between GPUs and NICs: first the best plain path from every GPU and NIC to
 * all others, then NCCL's changes: GPUs without direct access go through a CPU, a NIC behind the
 * C2C link is P2C, another GPU's NIC is reached over NVLink (PXN), and without GPUDirect RDMA data
 * cross the CPU. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "topo/sources/nccl/nccl_xml_impl.h"

struct label { /* path from the base to a node */
    int type, hops;
    double Bps;
};

/* Extend a path by one link to `to`; false: data do not take it. */
static bool extend(struct label *out, const struct machine *m, int base, int at,
                   const struct label *have, const struct machine_link *k)
{
    enum machine_kind here = m->node[at].kind, there = m->node[k->to].kind;
    int type = k->type == NCCL_PATH_NET ? NCCL_PATH_LOC : k->type;

    /* GPUs forward only NVLink traffic to the next GPU, and only once. */
    if (at != base && here == MACHINE_GPU) {
        if (k->type != NCCL_PATH_NVL || there != MACHINE_GPU || have->hops > 1)
            return false;
        if (have->type == NCCL_PATH_NVL)
            type = NCCL_PATH_NVB;
    }
    if (here == MACHINE_PCI && there == MACHINE_PCI)
        type = NCCL_PATH_PXB;
    if (k->type == NCCL_PATH_PIX && (here == MACHINE_CPU || there == MACHINE_CPU))
        type = NCCL_PATH_PHB;
    out->type = type > have->type ? type : have->type;
    out->Bps = k->Bps < have->Bps ? k->Bps : have->Bps;
    out->hops = have->hops + 1;
    return true;
}

static bool better(const struct label *a, const struct label *b)
{
    if (a->type != b->type)
        return a->type < b->type;
    return a->Bps > b->Bps || (a->Bps == b->Bps && a->hops < b->hops);
}

/* Fill label[node] for one base.  work has room for two lists of nodes and a mark for each node. */
static void spread(struct label *label, const struct machine *m, int base, int *work)
{
    int *now = work, *next = work + m->nodes, *mark = work + 2 * m->nodes, n = 1;

    for (int i = 0; i < m->nodes; i++)
        label[i] = (struct label){.type = NCCL_PATH_DIS};
    label[base] = (struct label){.type = NCCL_PATH_LOC, .Bps = 5000e9};
    now[0] = base;
    while (n) {
        int more = 0;
        memset(mark, 0, (size_t)m->nodes * sizeof(*mark));
        for (int i = 0; i < n; i++) {
            const struct machine_node *node = &m->node[now[i]];
            for (int l = 0; l < node->links; l++) {
                struct label way;
                int to = node->link[l].to;
                if (!extend(&way, m, base, now[i], &label[now[i]], &node->link[l]) ||
                    !better(&way, &label[to]))
                    continue;
                label[to] = way;
                if (!mark[to])
                    next[more++] = to;
                mark[to] = 1;
            }
        }
        int *swap = now;
        now = next;
        next = swap;
        n = more;
    }
}

struct finder {
    struct nccl_paths *p;
    const struct machine *m;
    struct nccl_route *back;         /* [net][gpu] */
    struct label *gpu_cpu, *net_cpu; /* [gpu][cpu], [net][cpu] */
    int *local_cpu;                  /* indexed by GPU; -1: no CPU */
};

static struct nccl_route route(const struct label *l)
{
    return (struct nccl_route){.type = (unsigned char)l->type, .Bps = l->Bps};
}

static void keep_ways(struct finder *f, int base, const struct label *label)
{
    const struct machine_node *b = &f->m->node[base];
    struct nccl_paths *p = f->p;

    for (int i = 0; i < f->m->nodes; i++) {
        const struct machine_node *n = &f->m->node[i];
        if (b->kind == MACHINE_GPU && n->kind == MACHINE_GPU)
            p->pair[n->index * p->gpus + b->index] = route(&label[i]);
        else if (b->kind == MACHINE_GPU && n->kind == MACHINE_NET)
            f->back[n->index * p->gpus + b->index] = route(&label[i]);
        else if (b->kind == MACHINE_NET && n->kind == MACHINE_GPU)
            p->nic[n->index * p->nets + b->index] = route(&label[i]);
        else if (n->kind == MACHINE_CPU && b->kind == MACHINE_GPU)
            f->gpu_cpu[b->index * f->m->cpus + n->index] = label[i];
        else if (n->kind == MACHINE_CPU && b->kind == MACHINE_NET)
            f->net_cpu[b->index * f->m->cpus + n->index] = label[i];
    }
}

static int merge_types(int a, int b)
{
    int high = a > b ? a : b, low = a > b ? b : a;

    return high == NCCL_PATH_PHB && low == NCCL_PATH_C2C ? NCCL_PATH_P2C : high;
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

/* Find the nearest members of a row, by width, then by type.  Fills list, returns its length. */
static int nearest(const struct nccl_route *row, int n, int *list)
{
    int count = 0;

    for (int i = 0; i < n; i++) {
        const struct nccl_route *best = count ? &row[list[0]] : NULL;
        double widest = best ? best->Bps : 0;
        int type = best ? best->type : NCCL_PATH_DIS;
        if (row[i].Bps > widest || (row[i].Bps == widest && row[i].type < type))
            count = 0;
        else if (row[i].Bps != widest || row[i].type != type)
            continue;
        list[count++] = i;
    }
    return count;
}

static void find_local_cpus(struct finder *f)
{
    int cpus = f->m->cpus;

    for (int g = 0; g < f->p->gpus; g++) {
        int best = -1;
        for (int c = 0; c < cpus; c++) {
            const struct label *l = &f->gpu_cpu[g * cpus + c];
            const struct label *b = best < 0 ? NULL : &f->gpu_cpu[g * cpus + best];
            if (l->Bps > 0 && (!b || l->Bps > b->Bps || (l->Bps == b->Bps && l->type < b->type) ||
                               (l->Bps == b->Bps && l->type == b->type && l->hops < b->hops)))
                best = c;
        }
        f->local_cpu[g] = best;
    }
}

/* GPUs beyond the PCIe switches of a socket cannot read each other's memory (AMD: two GPUs can). */
static void divert_pairs(struct finder *f)
{
    struct nccl_paths *p = f->p;
    int limit = f->m->amd && p->gpus <= 2 ? NCCL_PATH_SYS : NCCL_PATH_PXB, cpus = f->m->cpus;

    for (int g = 0; g < p->gpus; g++)
        for (int o = 0; o < p->gpus; o++) {
            struct nccl_route *r = &p->pair[o * p->gpus + g];
            int c = f->local_cpu[g];
            if (r->type <= limit || c < 0)
                continue;
            const struct label *a = &f->gpu_cpu[o * cpus + c], *b = &f->gpu_cpu[g * cpus + c];
            r->type = (unsigned char)merge_types(a->type, b->type);
            r->Bps = least(a->Bps, b->Bps);
        }
}

static void find_p2c(struct finder *f, int *list)
{
    struct nccl_paths *p = f->p;

    for (int g = 0; g < p->gpus; g++) {
        int c = f->local_cpu[g], n = c < 0 ? 0 : nearest(&p->nic[g * p->nets], p->nets, list);
        for (int i = 0; i < n; i++) {
            struct nccl_route *r = &p->nic[g * p->nets + list[i]];
            struct nccl_route *b = &f->back[list[i] * p->gpus + g];
            if (merge_types(f->gpu_cpu[g * f->m->cpus + c].type,
                            f->net_cpu[list[i] * f->m->cpus + c].type) != NCCL_PATH_P2C)
                continue;
            if (r->type > NCCL_PATH_P2C)
                r->type = NCCL_PATH_P2C;
            if (b->type > NCCL_PATH_P2C)
                b->type = NCCL_PATH_P2C;
        }
    }
}

static int mirror_bits(int value, int below)
{
    int out = 0;

    for (int bit = 1, top = below / 2; bit < below; bit *= 2, top /= 2)
        if (value & bit)
            out |= top;
    return out;
}

/* First channel on which a GPU uses this NIC; -1: none. */
static int channel_of(const struct finder *f, int g, int n, int *list)
{
    const struct nccl_paths *p = f->p;
    int nets = nearest(&p->nic[g * p->nets], p->nets, list);

    if (!nets)
        return -1;
    int gpus = nearest(&f->back[list[0] * p->gpus], p->gpus, list + p->nets);
    if (!gpus)
        return -1;
    int each = (nets + gpus - 1) / gpus, at = p->gpu[g].dev % gpus;
    if ((nets & (nets - 1)) == 0)
        at = mirror_bits(at, nets);
    for (int channel = 0; channel < each; channel++)
        if (list[(at + channel) % nets] == n)
            return channel;
    return -1;
}

/* GPU that owns a NIC: among the nearest GPUs, the first user; -1: no GPU. */
static int owner_of(const struct finder *f, int n, int *list)
{
    const struct nccl_paths *p = f->p;
    int gpus = nearest(&f->back[n * p->gpus], p->gpus, list), owner = -1, first = 0;

    for (int i = 0; i < gpus; i++) {
        int channel = channel_of(f, list[i], n, list + p->gpus);
        if (channel >= 0 && (owner < 0 || channel < first)) {
            owner = list[i];
            first = channel;
        }
    }
    return owner;
}

static bool gpu_direct(const struct finder *f, int g, int n, bool read)
{
    const struct nccl_paths *p = f->p;
    bool nvlink = p->gpus == 1;

    for (int o = 0; o < p->gpus; o++)
        nvlink = nvlink || (o != g && p->pair[g * p->gpus + o].type == NCCL_PATH_NVL);
    if (read && p->gpu[g].sm < 80 && !nvlink)
        return false;
    return p->net[n].gdr && p->gpu[g].gdr && p->nic[g * p->nets + n].type <= NCCL_PATH_P2C;
}

/* Use PXN: a GPU of the host, near the NIC and on NVLink with GPU g, forwards the data. */
static void use_pxn(struct finder *f, int g, int n, int owner)
{
    struct nccl_paths *p = f->p;
    const struct nccl_route *its = &p->nic[owner * p->nets + n],
                            *link = &p->pair[owner * p->gpus + g];
    struct nccl_route *mine = &p->nic[g * p->nets + n];

    if (its->type > NCCL_PATH_P2C || link->type > NCCL_PATH_NVL ||
        p->gpu[owner].host != p->gpu[g].host || !gpu_direct(f, owner, n, true) ||
        (its->Bps <= mine->Bps && mine->type <= NCCL_PATH_PXN))
        return;
    mine->type = NCCL_PATH_PXN;
    mine->Bps = least(p->pair[g * p->gpus + owner].Bps, its->Bps);
}

static void without_gpu_direct(struct finder *f, int g, int n)
{
    struct nccl_paths *p = f->p;
    struct nccl_route *mine = &p->nic[g * p->nets + n];
    int c = f->local_cpu[g];

    if (mine->type >= NCCL_PATH_PHB || mine->type == NCCL_PATH_PXN || c < 0 ||
        gpu_direct(f, g, n, false))
        return;
    const struct label *a = &f->gpu_cpu[g * f->m->cpus + c], *b = &f->net_cpu[n * f->m->cpus + c];
    mine->type = (unsigned char)merge_types(a->type, b->type);
    mine->Bps = least(a->Bps, b->Bps);
    f->back[n * p->gpus + g] = *mine;
}

static void adjust(struct finder *f)
{
    struct nccl_paths *p = f->p;
    int *list = mem_calloc(2 * (size_t)(p->gpus + p->nets) + 2, sizeof(*list));

    find_local_cpus(f);
    divert_pairs(f);
    find_p2c(f, list);
    for (int n = 0; n < p->nets; n++) {
        int owner = owner_of(f, n, list);
        for (int g = 0; g < p->gpus; g++) {
            if (owner >= 0 && owner != g)
                use_pxn(f, g, n, owner);
            without_gpu_direct(f, g, n);
        }
    }
    free(list);
}

void nccl_paths_find(struct nccl_paths *p, const struct machine *m)
{
    size_t gpus = (size_t)p->gpus, nets = (size_t)p->nets, nodes = (size_t)m->nodes;
    struct finder f = {.p = p, .m = m};
    struct label *label = mem_calloc(nodes + 1, sizeof(*label));
    int *work = mem_calloc(3 * nodes + 1, sizeof(*work));

    p->pair = mem_calloc(gpus * gpus + 1, sizeof(*p->pair));
    p->nic = mem_calloc(gpus * nets + 1, sizeof(*p->nic));
    f.back = mem_calloc(gpus * nets + 1, sizeof(*f.back));
    f.gpu_cpu = mem_calloc(gpus * (size_t)m->cpus + 1, sizeof(*f.gpu_cpu));
    f.net_cpu = mem_calloc(nets * (size_t)m->cpus + 1, sizeof(*f.net_cpu));
    f.local_cpu = mem_calloc(gpus + 1, sizeof(*f.local_cpu));
    for (int i = 0; i < m->nodes; i++)
        if (m->node[i].kind == MACHINE_GPU || m->node[i].kind == MACHINE_NET) {
            spread(label, m, i, work);
            keep_ways(&f, i, label);
        }
    adjust(&f);
    free(label);
    free(work);
    free(f.back);
    free(f.gpu_cpu);
    free(f.net_cpu);
    free(f.local_cpu);
}
