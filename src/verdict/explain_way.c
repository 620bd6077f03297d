/* SPDX-License-Identifier: BSD-3-Clause */
/* explain_way.c - the hops between two endpoints, as far as the topology tells. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"
#include "topo/host/gpu.h"
#include "topo/host/nic.h"
#include "topo/net/net.h"
#include "topo/net/rails.h"
#include "verdict/explain_parts.h"

static const char *host_name(const struct topo *t, int endpoint)
{
    return t->host[t->endpoint[endpoint].place.at[LEVEL_HOST]].name;
}

static const char *kind(const struct topo *t, int endpoint)
{
    return t->endpoint[endpoint].kind == ENDPOINT_GPU ? "GPU" : "socket";
}

static const struct gpu *gpu_of(const struct topo *t, int endpoint)
{
    int g = t->endpoint[endpoint].gpu;

    return g >= 0 ? &t->gpu[g] : NULL;
}

/* Per direction after coding: 8 GT/s a lane of 3.0 and twice that each generation on, 128b/130b
 * (PCI Express base specification 3.0; 6.0's flit mode is within 2 % of it). */
static double pcie_Bps(int gen, int width)
{
    if (gen < 1 || width < 1)
        return 0;
    double lane = gen == 1 ? 0.25e9 : gen == 2 ? 0.5e9 : 8e9 / 8 * 128 / 130 * (1 << (gen - 3));
    return lane * width;
}

/* The generation that it can: an idle GPU shows a lower one. */
static void say_pcie(struct explain *e, const struct topo *t, int endpoint, const char *to)
{
    const struct gpu *g = gpu_of(t, endpoint);
    int gen = g ? g->pcie_gen_max : -1, width = g ? g->pcie_width : -1;
    char basis[64];

    snprintf(basis, sizeof(basis), "PCIe generation %d x%d", gen, width);
    double Bps = pcie_Bps(gen, width);
    explain_hop(e, Bps, Bps > 0 ? basis : NULL, "%s %s %d, PCIe%s", host_name(t, endpoint),
                kind(t, endpoint), t->endpoint[endpoint].local, to);
    if (!(Bps > 0) && t->endpoint[endpoint].kind == ENDPOINT_GPU)
        explain_say(&e->unseen, "PCIe of %s GPU %d: the driver's view of it is not in the topology",
                    host_name(t, endpoint), t->endpoint[endpoint].local);
}

static void say_nvlinks(struct explain *e, const struct topo *t, int endpoint)
{
    const struct gpu *g = gpu_of(t, endpoint);
    char basis[96], rate[UNITS_TEXT], links[GPU_LINKS_TEXT];
    int up = g && g->links > 0 ? gpu_links_up(g) : 0;

    if (!up || !(g->link_Bps > 0)) {
        explain_hop(e, 0, NULL, "%s GPU %d, NVLink", host_name(t, endpoint),
                    t->endpoint[endpoint].local);
        explain_say(&e->unseen, "NVLinks of %s GPU %d: %s", host_name(t, endpoint),
                    t->endpoint[endpoint].local,
                    g ? "the driver does not tell them" : "no driver told of this GPU");
        return;
    }
    snprintf(basis, sizeof(basis), "%s%s, %s each", gpu_links_text(g, links),
             g->counted ? "" : " up", units_rate_text(rate, g->link_Bps));
    explain_hop(e, up * g->link_Bps, basis, "%s GPU %d, NVLink", host_name(t, endpoint),
                t->endpoint[endpoint].local);
}

static bool nvlinked(const struct topo *t, int a, int b)
{
    const struct place *x = &t->endpoint[a].place, *y = &t->endpoint[b].place;

    return t->endpoint[a].kind == ENDPOINT_GPU && x->at[LEVEL_DOMAIN] >= 0 &&
           x->at[LEVEL_DOMAIN] == y->at[LEVEL_DOMAIN];
}

static void way_nvlink(struct explain *e, const struct topo *t)
{
    int domain = t->endpoint[e->src].place.at[LEVEL_DOMAIN];
    const struct gpu *g = gpu_of(t, e->src);
    bool switched = !g || !g->remotes || g->remote[0].kind != LINK_END_GPU;

    say_nvlinks(e, t, e->src);
    explain_hop(e, 0, NULL, "%s of NVLink domain %s", switched ? "NVSwitches" : "bridges",
                t->group[LEVEL_DOMAIN].name[domain]);
    say_nvlinks(e, t, e->dst);
}

/* Inside a host without NVLink between the two. */
static void way_inside(struct explain *e, const struct topo *t)
{
    static const char *const word[] = {"itself",
                                       "one PCIe switch (PIX)",
                                       "several PCIe switches (PXB)",
                                       "the CPU's PCIe host bridge (PHB)",
                                       "host bridges of one NUMA node (NODE)",
                                       "the link between sockets (SYS)"};
    const struct gpu *g = gpu_of(t, e->src), *o = gpu_of(t, e->dst);
    int path = g && o && o->index < g->paths ? g->path[o->index] : -1;

    if (t->endpoint[e->src].kind != ENDPOINT_GPU) {
        explain_hop(e, 0, NULL, "memory of %s", host_name(t, e->src));
        return;
    }
    say_pcie(e, t, e->src, "");
    explain_hop(e, 0, NULL, "%s", path >= 0 ? word[path] : "a way that is not visible");
    if (path < 0)
        explain_say(&e->unseen, "PCIe between the two GPUs of %s: nobody told their path",
                    host_name(t, e->src));
    say_pcie(e, t, e->dst, "");
}

static int nic_of(const struct topo *t, int endpoint)
{
    int host = t->endpoint[endpoint].place.at[LEVEL_HOST], only = -1, n = 0;

    if (t->endpoint[endpoint].nic >= 0)
        return t->endpoint[endpoint].nic;
    for (int i = 0; i < t->nics; i++)
        if (t->nic[i].host == host && t->nic[i].up) {
            only = i;
            n++;
        }
    return n == 1 ? only : -1;
}

static void say_nic(struct explain *e, const struct topo *t, int endpoint, int nic)
{
    static const char *const layer[] = {"", " (Ethernet)", " (InfiniBand)"};
    const struct nic *n = nic >= 0 ? &t->nic[nic] : NULL;

    if (!n) {
        explain_hop(e, 0, NULL, "a NIC of %s", host_name(t, endpoint));
        explain_say(&e->unseen, "the NIC of %s %s %d: none was seen near it",
                    host_name(t, endpoint), kind(t, endpoint), t->endpoint[endpoint].local);
        return;
    }
    char *facts = rails_nic_text(n);
    explain_hop(e, n->rate_Bps, n->rate_Bps > 0 ? "rate of the port" : NULL, "%s %s%s%s%s%s",
                host_name(t, endpoint), n->name, layer[n->layer], n->up ? "" : ", DOWN",
                *facts ? ", " : "", facts);
    free(facts);
}

static void way_net(struct explain *e, const struct topo *t)
{
    int from = nic_of(t, e->src), to = nic_of(t, e->dst);

    say_pcie(e, t, e->src, " to its NIC");
    say_nic(e, t, e->src, from);
    explain_net(e, t, from, to);
    say_nic(e, t, e->dst, to);
    say_pcie(e, t, e->dst, " from its NIC");
}

void explain_way(struct explain *e, const struct topo *t)
{
    const struct place *x = &t->endpoint[e->src].place, *y = &t->endpoint[e->dst].place;
    bool same = x->at[LEVEL_HOST] == y->at[LEVEL_HOST];

    if (nvlinked(t, e->src, e->dst))
        way_nvlink(e, t);
    else if (same)
        way_inside(e, t);
    else
        way_net(e, t);
}
