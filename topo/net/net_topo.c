/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/net/net_topo.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "topo/claim.h"
#include "topo/net/net_view.h"

/* --- which host an HCA is in --- */

struct guid_of { /* NICs by GUID */
    uint64_t guid;
    int nic;
};

static int by_guid(const void *x, const void *y)
{
    const struct guid_of *a = x, *b = y;

    return (a->guid > b->guid) - (a->guid < b->guid);
}

static struct guid_of *nic_guids(const struct topo *t, int *count)
{
    struct guid_of *g = mem_calloc((size_t)t->nics + 1, sizeof(*g));

    *count = 0;
    for (int i = 0; i < t->nics; i++) {
        uint64_t guid = strtoull(t->nic[i].guid, NULL, 16);
        if (guid)
            g[(*count)++] = (struct guid_of){guid, i};
    }
    qsort(g, (size_t)*count, sizeof(*g), by_guid);
    return g;
}

static int nic_of_guid(const struct guid_of *g, int count, uint64_t guid)
{
    const struct guid_of *at =
        guid ? bsearch(&(struct guid_of){guid, 0}, g, (size_t)count, sizeof(*g), by_guid) : NULL;

    return at ? at->nic : -1;
}

static void give(struct net_node *n, int host, const char *device)
{
    n->host = host;
    snprintf(n->device, sizeof(n->device), "%.*s", (int)strcspn(device, ":"), device);
}

/* "node01" for "node01.cluster.example" */
static int find_short(const struct topo *names, const int *of, const char *name)
{
    char text[65];

    snprintf(text, sizeof(text), "%.*s", (int)strcspn(name, "."), name);
    int h = topo_find_host(names, text);
    return h >= 0 ? of[h] : -1;
}

/* Hosts by the part of their names before the first dot; an address has none. */
static int *short_names(struct topo *names, const struct topo *t)
{
    int *of = mem_calloc((size_t)t->hosts + 1, sizeof(*of));

    topo_init(names);
    for (int h = 0; h < t->hosts; h++) {
        const char *name = t->host[h].name;
        char *text = mem_printf("%.*s", (int)strcspn(name, "."), name);
        int at = names->hosts, i = topo_add_host(names, text);
        of[i] = i == at ? h : -1; /* two hosts of one name: neither */
        free(text);
    }
    return of;
}

static void give_described(struct net *n, const struct topo *t)
{
    int *times = net_described_times(n);
    struct topo names;
    int *of = short_names(&names, t);

    for (int i = 0; i < n->nodes; i++) {
        char host[65], device[32];
        if (n->node[i].kind != NET_HCA || n->node[i].host >= 0 || times[i] > 1 ||
            !net_described(n->node[i].name, host, device))
            continue;
        int h = topo_find_host(t, host);
        h = h >= 0 ? h : find_short(&names, of, host);
        if (h >= 0)
            give(&n->node[i], h, device);
    }
    topo_free(&names);
    free(of);
    free(times);
}

void net_hosts(struct net *n, const struct topo *t)
{
    int count;
    struct guid_of *g = nic_guids(t, &count);

    for (int i = 0; i < n->nodes; i++) {
        int nic = n->node[i].kind == NET_HCA ? nic_of_guid(g, count, n->node[i].guid) : -1;
        n->node[i].host = -1;
        n->node[i].device[0] = '\0';
        if (nic >= 0)
            give(&n->node[i], t->nic[nic].host, t->nic[nic].name);
    }
    for (int i = 0; i < n->cables; i++)
        for (int end = 0; end < 2; end++) {
            const struct net_cable *c = &n->cable[i];
            struct net_node *x = &n->node[end ? c->b : c->a];
            int nic = nic_of_guid(g, count, end ? c->guid_b : c->guid_a);
            if (x->kind == NET_HCA && x->host < 0 && nic >= 0)
                give(x, t->nic[nic].host, t->nic[nic].name);
        }
    free(g);
    give_described(n, t);
}

/* --- claims --- */

static char *part_name(const char *origin, int part)
{
    return part ? mem_printf("%s subnet %d", origin, part + 1) : mem_strdup(origin);
}

static void claim_leaves(struct topo *t, const struct net_view *v, const char *origin)
{
    for (int g = 0; g < v->groups; g++) {
        const struct net_group *x = &v->group[g];
        char **names = mem_calloc((size_t)x->hosts + 1, sizeof(*names));
        char *from = part_name(origin, x->part);
        for (int i = 0; i < x->hosts; i++)
            names[i] = v->host[x->host[i]].name;
        claim_add(t, SOURCE_IBNET, LEVEL_LEAF, from, x->name, names, x->hosts);
        free(from);
        free(names);
    }
}

static int root_of(int *up, int i)
{
    while (up[i] != i)
        i = up[i] = up[up[i]];
    return i;
}

/* Leaves and switches that are joined without going higher than a tier. */
static int *pods(const struct net *n, int tier)
{
    int *up = mem_calloc((size_t)n->nodes + 1, sizeof(*up));

    for (int i = 0; i < n->nodes; i++)
        up[i] = i;
    for (int i = 0; i < n->cables; i++) {
        int a = n->cable[i].a, b = n->cable[i].b;
        if (n->node[a].tier < 0 || n->node[b].tier < 0 || n->node[a].tier > tier ||
            n->node[b].tier > tier)
            continue;
        a = root_of(up, a);
        b = root_of(up, b);
        up[a > b ? a : b] = a > b ? b : a;
    }
    for (int i = 0; i < n->nodes; i++)
        up[i] = root_of(up, i);
    return up;
}

/* A group's pods as text to compare, and the labels of their highest switches as a name. */
static char *pods_of(const struct net_view *v, const struct net_group *g, const int *pod, int tier,
                     char **name)
{
    char **label = mem_calloc((size_t)v->net->nodes + 1, sizeof(*label)), *key = mem_strdup("");
    bool *in = mem_calloc((size_t)v->net->nodes + 1, sizeof(*in));
    int labels = 0;

    for (int i = 0; i < g->leaves; i++)
        in[pod[g->leaf[i]]] = true;
    for (int i = 0; i < v->net->nodes; i++) {
        if (in[i]) {
            char *longer = mem_printf("%s,%d", key, i);
            free(key);
            key = longer;
        }
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

/* Groups of hosts by what joins them up to a tier; false: in each part it joins all. */
static bool claim_tier(struct topo *t, const struct net_view *v, const char *origin, int tier)
{
    int *pod = pods(v->net, tier), *of = mem_calloc((size_t)v->groups + 1, sizeof(*of)), first = 0;
    char **name = mem_calloc((size_t)v->groups + 1, sizeof(*name));
    bool any = false;
    struct topo words;

    topo_init(&words);
    for (int g = 0; g < v->groups; g++) {
        char *key = pods_of(v, &v->group[g], pod, tier, &name[g]);
        of[g] = topo_add_group(&words, LEVEL_LEAF, key);
        free(key);
    }
    for (int g = 0, end; g < v->groups; g = end) { /* part by part */
        bool several = false;
        for (end = first = g; end < v->groups && v->group[end].part == v->group[g].part; end++)
            several = several || of[end] != of[first];
        char *from = part_name(origin, v->group[g].part);
        for (int i = g; i < end && several; i++) {
            int k = g;
            while (of[k] != of[i])
                k++;
            for (int h = 0; h < v->group[i].hosts; h++) {
                const char *host = v->host[v->group[i].host[h]].name;
                if (tier == 1)
                    claim_host(t, SOURCE_IBNET, LEVEL_SPINE, from, name[k], host);
                else
                    claim_above(t, SOURCE_IBNET, tier - 1, from, name[k], host);
            }
        }
        any = any || several;
        free(from);
    }
    for (int g = 0; g < v->groups; g++)
        free(name[g]);
    topo_free(&words);
    free(name);
    free(of);
    free(pod);
    return any;
}

void net_claim(struct topo *t, const struct net *n, const char *origin)
{
    struct net_view v;

    net_view_make(&v, n, t);
    claim_leaves(t, &v, origin);
    for (int tier = 1; tier <= 1 + CLAIM_ABOVE && claim_tier(t, &v, origin, tier); tier++)
        ;
    net_view_free(&v);
}
