/* SPDX-License-Identifier: BSD-3-Clause */
/* net_topo.c - hosts of HCAs, groups that a network declares, leaves of NICs and endpoints. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/units.h"
#include "topo/groups.h"
#include "topo/nic.h"
#include "topo/sources/net/net_view.h"

/* --- NICs by host --- */

static int by_host_and_name(const void *x, const void *y, void *of)
{
    const struct topo *t = of;
    int i = *(const int *)x, k = *(const int *)y;
    const struct nic *a = &t->nic[i], *b = &t->nic[k];

    if (a->host != b->host)
        return a->host < b->host ? -1 : 1;
    int names = strverscmp(a->name, b->name);
    return names ? names : (i > k) - (i < k);
}

struct net_nics net_nics_of(const struct topo *t, bool by_name)
{
    struct net_nics n = {mem_calloc((size_t)t->hosts + 3, sizeof(int)),
                         mem_calloc((size_t)t->nics + 1, sizeof(int))};

    for (int i = 0; i < t->nics; i++)
        n.first[t->nic[i].host + 2]++;
    for (int h = 2; h <= t->hosts; h++)
        n.first[h] += n.first[h - 1];
    for (int i = 0; i < t->nics; i++) /* moves first[h + 1] from the start of host h to its end */
        n.nic[n.first[t->nic[i].host + 1]++] = i;
    if (by_name)
        qsort_r(n.nic, (size_t)t->nics, sizeof(int), by_host_and_name, (void *)t);
    return n;
}

void net_nics_free(struct net_nics *n)
{
    free(n->first);
    free(n->nic);
}

/* --- hosts of HCAs --- */

/* Index of NICs by GUID. */
static struct map nic_guids(const struct topo *t)
{
    struct map by_guid = {0};

    for (int i = t->nics - 1; i >= 0; i--) { /* duplicates: the first wins */
        uint64_t guid = strtoull(t->nic[i].guid, NULL, 16);
        if (guid)
            *map_at(&by_guid, guid, NULL, NULL) = i;
    }
    return by_guid;
}

static void give(struct net_node *n, int host, const char *device)
{
    n->host = host;
    snprintf(n->device, sizeof(n->device), "%.*s", (int)strcspn(device, ":"), device);
}

/* Find "node01" for "node01.cluster.example". */
static int find_short(const struct names *names, const int *of, const char *name)
{
    char text[65];

    snprintf(text, sizeof(text), "%.*s", (int)strcspn(name, "."), name);
    int h = names_find(names, text);
    return h >= 0 ? of[h] : -1;
}

/* Index of hosts by the part of their name before the first dot. */
static int *short_names(struct names *names, const struct topo *t)
{
    int *of = mem_calloc((size_t)t->hosts + 1, sizeof(*of));

    for (int h = 0; h < t->hosts; h++) {
        const char *name = t->host[h].name;
        char *text = mem_printf("%.*s", (int)strcspn(name, "."), name);
        int at = names->count, i = names_add(names, text);
        of[i] = i == at ? h : -1; /* ambiguous if two hosts share it */
        free(text);
    }
    return of;
}

static void give_described(struct net *n, const struct topo *t)
{
    bool *again = net_described_again(n);
    struct names names = {0};
    int *of = short_names(&names, t);

    for (int i = 0; i < n->nodes; i++) {
        char host[65], device[32];
        if (n->node[i].kind != NET_HCA || n->node[i].host >= 0 || again[i] ||
            !net_described(n->node[i].name, host, device))
            continue;
        int h = topo_find_host(t, host);
        h = h >= 0 ? h : find_short(&names, of, host);
        if (h >= 0)
            give(&n->node[i], h, device);
    }
    names_free(&names);
    free(of);
    free(again);
}

void net_hosts(struct net *n, const struct topo *t)
{
    struct map by_guid = nic_guids(t);

    for (int i = 0; i < n->nodes; i++) {
        int nic =
            n->node[i].kind == NET_HCA ? map_find(&by_guid, n->node[i].guid, NULL, NULL) : MAP_NONE;
        n->node[i].host = -1;
        n->node[i].device[0] = '\0';
        if (nic >= 0)
            give(&n->node[i], t->nic[nic].host, t->nic[nic].name);
    }
    for (int i = 0; i < n->cables; i++)
        for (int end = 0; end < 2; end++) {
            const struct net_cable *c = &n->cable[i];
            struct net_node *x = &n->node[end ? c->b : c->a];
            int nic = map_find(&by_guid, end ? c->guid_b : c->guid_a, NULL, NULL);
            if (x->kind == NET_HCA && x->host < 0 && nic >= 0)
                give(x, t->nic[nic].host, t->nic[nic].name);
        }
    map_free(&by_guid);
    give_described(n, t);
}

/* --- declared groups --- */

static char *subnet_name(const char *origin, int part)
{
    return part ? mem_printf("%s subnet %d", origin, part + 1) : mem_strdup(origin);
}

static void declare_leaves(struct topo *t, const struct net_view *v, const char *origin)
{
    for (int g = 0; g < v->groups; g++) {
        const struct net_group *x = &v->group[g];
        char **names = mem_calloc((size_t)x->hosts + 1, sizeof(*names));
        char *from = subnet_name(origin, x->part);
        for (int i = 0; i < x->hosts; i++)
            names[i] = v->host[x->host[i]].name;
        group_add(t, SOURCE_IBNET, LEVEL_LEAF, from, x->name, names, x->hosts);
        free(from);
        free(names);
    }
}

/* Pods: leaves and switches that are joined below or at a tier.  Cables between switches of one tier
 * join groups, not leaves: spines of a dragonfly+ are cabled to the spines of other groups. */
static int *pods(const struct net *n, int tier)
{
    int *up = mem_calloc((size_t)n->nodes + 1, sizeof(*up));

    for (int i = 0; i < n->nodes; i++)
        up[i] = i;
    for (int i = 0; i < n->cables; i++) {
        int a = n->cable[i].a, b = n->cable[i].b;
        if (n->node[a].tier < 0 || n->node[b].tier < 0 || n->node[a].tier > tier ||
            n->node[b].tier > tier || n->node[a].tier == n->node[b].tier)
            continue;
        net_join(up, a, b);
    }
    for (int i = 0; i < n->nodes; i++)
        up[i] = net_root(up, i);
    return up;
}

/* Pods of a group as text for comparison; *name: labels of their highest switches. */
static char *pods_of(const struct net_view *v, const struct net_group *g, const int *pod, int tier,
                     char **name)
{
    char **label = mem_calloc((size_t)v->net->nodes + 1, sizeof(*label)), *key = mem_strdup("");
    bool *in = mem_calloc((size_t)v->net->nodes + 1, sizeof(*in));
    int labels = 0;

    for (int i = 0; i < g->leaves; i++)
        in[pod[g->leaf[i]]] = true;
    for (int i = 0; i < v->net->nodes; i++) {
        if (in[i])
            key = mem_append(key, ",%d", i);
        if (v->net->node[i].tier == tier && in[pod[i]])
            label[labels++] = v->label[i];
    }
    *name = labels ? mem_printf("%s%s%s", label[0], labels > 1 ? ".." : "",
                                labels > 1 ? label[labels - 1] : "")
                   : mem_strdup(g->name);
    free(in);
    free(label);
    return key;
}

/* Declare groups of hosts joined up to a tier; false: in each part all hosts are one group. */
static bool declare_tier(struct topo *t, const struct net_view *v, const char *origin, int tier)
{
    int *pod = pods(v->net, tier), *of = mem_calloc((size_t)v->groups + 1, sizeof(*of)), first = 0;
    char **name = mem_calloc((size_t)v->groups + 1, sizeof(*name));
    bool any = false;
    struct names words = {0};

    for (int g = 0; g < v->groups; g++) {
        char *key = pods_of(v, &v->group[g], pod, tier, &name[g]);
        of[g] = names_add(&words, key);
        free(key);
    }
    for (int g = 0, end; g < v->groups; g = end) { /* one part at a time */
        bool several = false;
        for (end = first = g; end < v->groups && v->group[end].part == v->group[g].part; end++)
            several = several || of[end] != of[first];
        char *from = subnet_name(origin, v->group[g].part);
        for (int i = g; i < end && several; i++) {
            int k = g;
            while (of[k] != of[i])
                k++;
            for (int h = 0; h < v->group[i].hosts; h++) {
                const char *host = v->host[v->group[i].host[h]].name;
                group_add_above(t, SOURCE_IBNET, tier - 1, from, name[k], host);
            }
        }
        any = any || several;
        free(from);
    }
    for (int g = 0; g < v->groups; g++)
        free(name[g]);
    names_free(&words);
    free(name);
    free(of);
    free(pod);
    return any;
}

void net_declare(struct topo *t, const struct net *n, const char *origin)
{
    struct net_view v;
    int top = 0;

    for (int i = 0; i < n->nodes; i++)
        top = n->node[i].tier > top ? n->node[i].tier : top;
    top = top < 1 + GROUP_ABOVE_MAX ? top : 1 + GROUP_ABOVE_MAX;
    net_view_make(&v, n, t);
    declare_leaves(t, &v, origin);
    for (int tier = 1; tier <= top && declare_tier(t, &v, origin, tier); tier++)
        ;
    net_view_free(&v);
}

/* --- leaves of NICs and endpoints --- */

static bool has_guid(const struct nic *n, uint64_t guid)
{
    return guid && strtoull(n->guid, NULL, 16) == guid;
}

/* Find the NIC "HCA-1", "HCA-2" ...: openibd of OFED numbers NICs in the order in which the shell
 * lists /sys/class/infiniband. */
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

/* Find the NIC of an HCA's port.  -1: its host lists no such NIC; -2: the NIC of that name has
 * another GUID, so the description belongs to a machine where the HCA was before. */
static int find_nic(const struct topo *t, const struct net_nics *b, const struct net_node *hca,
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

static void tell_port(struct topo *t, const struct net_nics *b, const struct net_view *v,
                      const struct net_port *s)
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
        return; /* cannot be identified */
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

/* Group of leaves of hosts that were not declared when the network was read, because their HCAs
 * became known later through GUIDs; -1: none. */
static int *groups_of(const struct topo *t, const struct net_view *v)
{
    int *of = mem_ints(t->hosts, -1), sets;
    bool *declared = mem_calloc((size_t)t->hosts + 1, sizeof(*declared));
    struct group_set *s = group_sets_at(t, LEVEL_LEAF, &sets);

    for (int i = 0; i < sets; i++) {
        int *by = group_set_of(&s[i], t);
        for (int h = 0; h < t->hosts && s[i].source == SOURCE_IBNET; h++)
            declared[h] |= by[h] >= 0;
        free(by);
    }
    for (int g = 0; g < v->groups; g++)
        for (int i = 0; i < v->group[g].hosts; i++) {
            int h = topo_find_host(t, v->host[v->group[g].host[i]].name);
            if (h >= 0 && of[h] < 0 && !declared[h])
                of[h] = g;
        }
    group_sets_free(s, sets);
    free(declared);
    return of;
}

/* Set the leaf of each endpoint from the nearest NIC.  If no endpoint of a host gets a leaf, all
 * get the host's group of leaves, like declared groups in groups_apply(). */
static bool tell_endpoints(struct topo *t, const struct net_view *v)
{
    bool *told = mem_calloc((size_t)t->hosts + 1, sizeof(*told)), changed = false;
    int *of = groups_of(t, v);

    for (int i = 0; i < t->endpoints; i++) {
        struct endpoint *e = &t->endpoint[i];
        const struct nic *n = e->nic >= 0 ? &t->nic[e->nic] : NULL;
        if (n && n->leaf_source == SOURCE_IBNET && e->place.at[LEVEL_LEAF] < 0) {
            topo_place(t, e, LEVEL_LEAF, n->leaf, SOURCE_IBNET);
            changed = true;
        }
        told[e->place.at[LEVEL_HOST]] |= e->place.at[LEVEL_LEAF] >= 0;
    }
    for (int i = 0; i < t->endpoints; i++) {
        int h = t->endpoint[i].place.at[LEVEL_HOST];
        if (told[h] || of[h] < 0)
            continue;
        topo_place(t, &t->endpoint[i], LEVEL_LEAF, v->group[of[h]].name, SOURCE_IBNET);
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
    struct net_nics b = net_nics_of(t, false);
    for (int i = 0; i < v.ports; i++)
        if (t->net->node[v.port[i].hca].host >= 0)
            tell_port(t, &b, &v, &v.port[i]);
    net_nics_free(&b);
    if (tell_endpoints(t, &v))
        topo_default_tiers(t);
    net_view_free(&v);
}
