/* SPDX-License-Identifier: BSD-3-Clause */
/* explain_way.c - hops of the path between two endpoints, as far as the topology has them. */
#include "verdict/explain.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"
#include "topo/gpu.h"
#include "topo/net.h"
#include "topo/nic.h"
#include "topo/sources/net/rails.h"

void explain_say(struct texts *t, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    MEM_PUSH(t->text, t->count) = mem_vprintf(fmt, args);
    va_end(args);
}

/* basis NULL: unknown. */
__attribute__((format(printf, 4, 5))) static void
explain_hop(struct explain *e, double Bps, const char *basis, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    MEM_PUSH(e->hop, e->hops) =
        (struct hop){mem_vprintf(fmt, args), Bps, basis ? mem_strdup(basis) : NULL};
    va_end(args);
    if (Bps > 0 && (e->narrowest < 0 || Bps < e->hop[e->narrowest].Bps))
        e->narrowest = e->hops - 1;
}

/* --- from NIC to NIC through the switches --- */

/* Switch and port at the other end of a NIC, as names. */
struct seat {
    char leaf[65], port[32];
};

static struct seat seat_of(const struct topo *t, int nic, int endpoint)
{
    struct seat s = {"", ""};
    int leaf = topo_at(t, endpoint, LEVEL_LEAF);

    if (nic >= 0 && t->nic[nic].leaf[0]) {
        memcpy(s.leaf, t->nic[nic].leaf, sizeof(s.leaf));
        memcpy(s.port, t->nic[nic].leaf_port, sizeof(s.port));
    } else if (leaf >= 0) {
        snprintf(s.leaf, sizeof(s.leaf), "%.64s", t->group[LEVEL_LEAF].name[leaf]);
    }
    return s;
}

static int find_switch(const struct net *n, const char *name)
{
    int at = -1;

    for (int i = 0; i < n->nodes; i++)
        if (n->node[i].kind == NET_SWITCH && !strcmp(n->node[i].name, name)) {
            if (at >= 0)
                return -1; /* ambiguous name */
            at = i;
        }
    return at;
}

/* Returns the number of cables between two switches; *Bps: their total rate. */
static int cables(const struct net *n, int a, int b, double *Bps, const char **speed)
{
    int count = 0;

    for (int i = 0; i < n->cables; i++) {
        const struct net_cable *c = &n->cable[i];
        if ((c->a == a && c->b == b) || (c->a == b && c->b == a)) {
            count++;
            *Bps += c->Bps;
            *speed = c->speed;
        }
    }
    return count;
}

/* Add the switches that both leaves are cabled to. */
static bool by_spines(struct explain *e, const struct net *n, int x, int y)
{
    double up = 0, down = 0;
    int spines = 0, ups = 0, downs = 0;
    const char *speed = "", *other = "", *first = "";

    for (int s = 0; s < n->nodes; s++) {
        double u = 0, d = 0;
        if (s == x || s == y || n->node[s].kind != NET_SWITCH)
            continue;
        int cu = cables(n, x, s, &u, &speed), cd = cu ? cables(n, y, s, &d, &other) : 0;
        if (!cd)
            continue;
        first = spines++ ? first : n->node[s].name;
        ups += cu;
        downs += cd;
        up += u;
        down += d;
    }
    if (!spines)
        return false;
    char *basis =
        mem_printf("%d cables of %s up, %d of %s down, shared by the whole leaf", ups,
                   *speed ? speed : "unknown speed", downs, *other ? other : "unknown speed");
    explain_hop(e, up < down ? up : down, basis, "%s%s", first,
                spines > 1 ? " or another spine" : "");
    free(basis);
    return true;
}

static void say_leaf(struct explain *e, const struct seat *s)
{
    explain_hop(e, 0, NULL, "leaf %s%s%s", s->leaf, *s->port ? " port " : "", s->port);
}

static void cross(struct explain *e, const struct topo *t, const struct seat *a,
                  const struct seat *b)
{
    int x = t->net ? find_switch(t->net, a->leaf) : -1,
        y = t->net ? find_switch(t->net, b->leaf) : -1;

    say_leaf(e, a);
    if (x < 0 || y < 0 || !by_spines(e, t->net, x, y)) {
        int sa = topo_at(t, e->src, LEVEL_SPINE), sb = topo_at(t, e->dst, LEVEL_SPINE);
        explain_hop(e, 0, NULL, "spines%s%s%s",
                    sa < 0 || sb < 0 ? ""
                    : sa == sb       ? " of "
                                     : " and what joins different ones",
                    sa >= 0 && sa == sb ? t->group[LEVEL_SPINE].name[sa] : "", "");
        explain_say(&e->unseen,
                    t->net ? "no second-tier switch that joins both leaves is in the network's text"
                           : "cables between switches: no network was read (--ibnet of discover)");
    }
    say_leaf(e, b);
}

static void way_between_nics(struct explain *e, const struct topo *t, int from_nic, int to_nic)
{
    struct seat a = seat_of(t, from_nic, e->src), b = seat_of(t, to_nic, e->dst);

    if (!*a.leaf || !*b.leaf) {
        explain_hop(e, 0, NULL, "the network between them");
        explain_say(&e->unseen, "switches: no leaf is known of %s",
                    *a.leaf   ? "the second"
                    : *b.leaf ? "the first"
                              : "either");
    } else if (!strcmp(a.leaf, b.leaf)) {
        say_leaf(e, &a);
    } else {
        cross(e, t, &a, &b);
    }
}

/* --- from an endpoint to its NIC, or without one --- */

static const char *host_name(const struct topo *t, int endpoint)
{
    return t->host[topo_at(t, endpoint, LEVEL_HOST)].name;
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

/* Rate per direction after coding: 8 GT/s per lane of PCIe 3.0, doubled with each generation,
 * 128b/130b (PCI Express base specification 3.0; 6.0's flit mode is within 2 % of it). */
static double pcie_Bps(int gen, int width)
{
    if (gen < 1 || width < 1)
        return 0;
    double lane = gen == 1 ? 0.25e9 : gen == 2 ? 0.5e9 : 8e9 / 8 * 128 / 130 * (1 << (gen - 3));
    return lane * width;
}

/* Use the highest generation, because an idle GPU runs at a lower one. */
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
    int domain = topo_at(t, e->src, LEVEL_DOMAIN);
    const struct gpu *g = gpu_of(t, e->src);
    bool switched = !g || !g->remotes || g->remote[0].kind != LINK_END_GPU;

    say_nvlinks(e, t, e->src);
    explain_hop(e, 0, NULL, "%s of NVLink domain %s", switched ? "NVSwitches" : "bridges",
                t->group[LEVEL_DOMAIN].name[domain]);
    say_nvlinks(e, t, e->dst);
}

/* Add the hops inside a host if no NVLink connects the two. */
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
    int host = topo_at(t, endpoint, LEVEL_HOST), only = -1, n = 0;

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
    way_between_nics(e, t, from, to);
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
