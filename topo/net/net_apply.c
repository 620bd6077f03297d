/* SPDX-License-Identifier: BSD-3-Clause */
/* net_apply.c - NICs and endpoints learn their leaf from the network. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"
#include "topo/claim.h"
#include "topo/net/net_topo.h"
#include "topo/net/net_view.h"

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

/* The group of leaves of hosts that nobody claimed when the network was read, because GUIDs that
 * were told later give them their adapters; -1: none. */
static int *groups_of(const struct topo *t, const struct net_view *v)
{
    int *of = mem_calloc((size_t)t->hosts + 1, sizeof(*of)), sets;
    bool *claimed = mem_calloc((size_t)t->hosts + 1, sizeof(*claimed));
    struct claim_set *s = claim_sets_at(t, LEVEL_LEAF, &sets);

    for (int i = 0; i < sets; i++) {
        int *by = claim_set_of(&s[i], t);
        for (int h = 0; h < t->hosts && s[i].source == SOURCE_IBNET; h++)
            claimed[h] |= by[h] >= 0;
        free(by);
    }
    for (int h = 0; h < t->hosts; h++)
        of[h] = -1;
    for (int g = 0; g < v->groups; g++)
        for (int i = 0; i < v->group[g].hosts; i++) {
            int h = topo_find_host(t, v->host[v->group[g].host[i]].name);
            if (h >= 0 && of[h] < 0 && !claimed[h])
                of[h] = g;
        }
    claim_sets_free(s, sets);
    free(claimed);
    return of;
}

static void set_leaf(struct topo *t, struct endpoint *e, const char *leaf)
{
    e->place.at[LEVEL_LEAF] = topo_add_group(t, LEVEL_LEAF, leaf);
    e->source[LEVEL_LEAF] = SOURCE_IBNET;
}

/* An endpoint is on the leaf of its NIC; where that is known of none of a host, all are on its
 * group of leaves, as claims_apply() does for those that are claimed. */
static bool tell_endpoints(struct topo *t, const struct net_view *v)
{
    bool *told = mem_calloc((size_t)t->hosts + 1, sizeof(*told)), changed = false;
    int *of = groups_of(t, v);

    for (int i = 0; i < t->endpoints; i++) {
        struct endpoint *e = &t->endpoint[i];
        const struct nic *n = e->nic >= 0 ? &t->nic[e->nic] : NULL;
        if (n && n->leaf_source == SOURCE_IBNET && e->place.at[LEVEL_LEAF] < 0) {
            set_leaf(t, e, n->leaf);
            changed = true;
        }
        told[e->place.at[LEVEL_HOST]] |= e->place.at[LEVEL_LEAF] >= 0;
    }
    for (int i = 0; i < t->endpoints; i++) {
        int h = t->endpoint[i].place.at[LEVEL_HOST];
        if (told[h] || of[h] < 0)
            continue;
        set_leaf(t, &t->endpoint[i], v->group[of[h]].name);
        changed = true;
    }
    free(told);
    free(of);
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
    if (tell_endpoints(t, &v))
        topo_default_tiers(t);
    net_view_free(&v);
}
