/* SPDX-License-Identifier: BSD-3-Clause */
/* net_apply.c - NICs and endpoints learn their leaf from the network. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"
#include "topo/net_topo.h"
#include "topo/net_view.h"

/* NICs of each host: nic[first[h]] .. nic[first[h + 1] - 1]. */
struct by_host {
    int *first, *nic;
};

static struct by_host host_nics(const struct topo *t)
{
    struct by_host b = {mem_calloc((size_t)t->hosts + 2, sizeof(int)),
                        mem_calloc((size_t)t->nics + 1, sizeof(int))};
    int *at = mem_calloc((size_t)t->hosts + 1, sizeof(*at));

    for (int i = 0; i < t->nics; i++)
        b.first[t->nic[i].host + 1]++;
    for (int h = 0; h < t->hosts; h++)
        b.first[h + 1] += b.first[h];
    for (int i = 0; i < t->nics; i++)
        b.nic[b.first[t->nic[i].host] + at[t->nic[i].host]++] = i;
    free(at);
    return b;
}

static bool has_guid(const struct nic *n, uint64_t guid)
{
    return guid && strtoull(n->guid, NULL, 16) == guid;
}

/* openibd of OFED describes adapters as "HCA-1", "HCA-2" ... in the order in which the shell lists
 * /sys/class/infiniband. */
static int by_position(const struct topo *t, const int *nic, int count, const char *device)
{
    int wanted = 0;

    if (strncmp(device, "HCA-", 4) != 0 || units_int(&wanted, device + 4, 1, count, NULL) < 0)
        return -1;
    for (int i = 0; i < count; i++) {
        const struct nic *n = &t->nic[nic[i]];
        int before = 0;
        for (int k = 0; k < count; k++)
            before += t->nic[nic[k]].rdma && t->nic[nic[k]].source != SOURCE_IBNET &&
                      !strchr(t->nic[nic[k]].name, ':') && strcmp(t->nic[nic[k]].name, n->name) < 0;
        if (n->rdma && n->source != SOURCE_IBNET && !n->guid[0] && !strchr(n->name, ':') &&
            before == wanted - 1)
            return nic[i];
    }
    return -1;
}

/* The NIC that a port of an HCA is; -1: its host has no row of it; -2: of that name it has one with
 * another GUID: the description is that of a machine where the HCA was before. */
static int find_nic(const struct topo *t, const struct by_host *b, const struct net_node *hca,
                    const char *name, uint64_t guid)
{
    const int *nic = &b->nic[b->first[hca->host]];
    int count = b->first[hca->host + 1] - b->first[hca->host];

    for (int i = 0; i < count; i++)
        if (has_guid(&t->nic[nic[i]], guid))
            return nic[i];
    for (int i = 0; i < count; i++)
        if (!strcmp(t->nic[nic[i]].name, name))
            return guid && strtoull(t->nic[nic[i]].guid, NULL, 16) ? -2 : nic[i];
    return by_position(t, nic, count, name);
}

static void tell_nic(struct nic *n, int leaf_port, uint64_t guid, double Bps, const char *label)
{
    if (n->leaf_source == SOURCE_NONE || n->leaf_source == SOURCE_IBNET) {
        snprintf(n->leaf, sizeof(n->leaf), "%s", label);
        snprintf(n->leaf_port, sizeof(n->leaf_port), "%d", leaf_port);
        n->leaf_source = SOURCE_IBNET;
    }
    if (!n->guid[0] && guid)
        snprintf(n->guid, sizeof(n->guid), "0x%016" PRIx64, guid);
    if (n->rate_Bps <= 0)
        n->rate_Bps = Bps;
    if (n->layer == LINK_UNKNOWN)
        n->layer = LINK_INFINIBAND;
}

static void tell_seat(struct topo *t, const struct by_host *b, const struct net_view *v,
                      const struct net_seat *s)
{
    const struct net_node *hca = &t->net->node[s->hca];
    const struct net_cable *c = &t->net->cable[s->cable];
    uint64_t guid = c->a == s->hca ? c->guid_a : c->guid_b;
    char name[32];
    struct nic n;

    if (s->port > 1)
        snprintf(name, sizeof(name), "%.27s:%hhu", hca->device, (unsigned char)s->port);
    else
        snprintf(name, sizeof(name), "%s", hca->device);
    int at = find_nic(t, b, hca, name, guid);
    if (at == -2 || (at < 0 && !*name))
        return; /* which one it is cannot be said */
    if (at < 0) {
        nic_init(&n, hca->host);
        n.layer = LINK_INFINIBAND;
        n.up = n.rdma = true;
        n.source = SOURCE_IBNET;
        snprintf(n.name, sizeof(n.name), "%s", name);
        at = t->nics;
        MEM_PUSH(t->nic, t->nics) = n;
    }
    tell_nic(&t->nic[at], s->leaf_port, guid, c->Bps, v->label[s->leaf]);
}

/* The only leaf of each host's NICs as index into t->nic; -1: none, -2: several. */
static int *only_leaf(const struct topo *t)
{
    int *only = mem_calloc((size_t)t->hosts + 1, sizeof(*only));

    for (int h = 0; h < t->hosts; h++)
        only[h] = -1;
    for (int i = 0; i < t->nics; i++) {
        const struct nic *n = &t->nic[i];
        if (n->leaf_source != SOURCE_IBNET)
            continue;
        if (only[n->host] == -1)
            only[n->host] = i;
        else if (only[n->host] < 0 || strcmp(t->nic[only[n->host]].leaf, n->leaf) != 0)
            only[n->host] = -2;
    }
    return only;
}

static bool tell_endpoints(struct topo *t)
{
    int *only = only_leaf(t);
    bool changed = false;

    for (int i = 0; i < t->endpoints; i++) {
        struct endpoint *e = &t->endpoint[i];
        int nic = e->nic >= 0 ? e->nic : only[e->place.at[LEVEL_HOST]];
        if (nic < 0 || t->nic[nic].leaf_source != SOURCE_IBNET || e->place.at[LEVEL_LEAF] >= 0)
            continue;
        e->place.at[LEVEL_LEAF] = topo_add_group(t, LEVEL_LEAF, t->nic[nic].leaf);
        e->source[LEVEL_LEAF] = SOURCE_IBNET;
        changed = true;
    }
    free(only);
    return changed;
}

void net_apply(struct topo *t)
{
    struct net_view v;

    if (!t->net)
        return;
    net_hosts(t->net, t);
    net_view_make(&v, t->net, t);
    struct by_host b = host_nics(t);
    for (int i = 0; i < v.seats; i++)
        if (t->net->node[v.seat[i].hca].host >= 0)
            tell_seat(t, &b, &v, &v.seat[i]);
    free(b.first);
    free(b.nic);
    net_view_free(&v);
    if (tell_endpoints(t))
        topo_default_tiers(t);
}
