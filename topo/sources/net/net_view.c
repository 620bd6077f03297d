/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/sources/net/net_view.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/mem.h"
#include "topo/groups.h"

enum { GROUP_NAME = 63 };

static bool host_word(const char *s, size_t len)
{
    if (!len || len > 64 || !isalnum((unsigned char)*s))
        return false;
    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)s[i]) && !strchr("-._", s[i]))
            return false;
    if (len >= 9 && !strncmp(s, "localhost", 9))
        return false;
    /* "MT4129 ConnectX7": part numbers */
    return strncmp(s, "MT", 2) != 0 || strspn(s + 2, "0123456789") + 2 != len;
}

bool net_described(const char *name, char host[65], char device[32])
{
    size_t first = strcspn(name, " ");
    const char *rest = name + first + strspn(name + first, " ");
    size_t second = strcspn(rest, " ");

    host[0] = device[0] = '\0';
    if (!host_word(name, first) || rest[second] || second > 31 || !strncmp(rest, "ConnectX", 8))
        return false;
    if (second && !isalpha((unsigned char)*rest))
        return false;
    snprintf(host, 65, "%.*s", (int)first, name);
    snprintf(device, 32, "%.*s", (int)second, rest);
    return true;
}

bool *net_described_again(const struct net *n)
{
    const char **name = mem_calloc((size_t)n->nodes + 1, sizeof(*name));

    for (int i = 0; i < n->nodes; i++)
        name[i] = n->node[i].kind == NET_HCA ? n->node[i].name : NULL;
    bool *again = net_texts_again(name, n->nodes);
    free(name);
    return again;
}

char *net_end_text(char buf[NET_END], const struct net_view *v, int node, int port)
{
    snprintf(buf, NET_END, "%.70s[%d]", v->label[node], port);
    return buf;
}

/* --- ports and hosts --- */

static int by_host(const void *x, const void *y, void *view)
{
    const struct net_port *a = x, *b = y;
    const struct net_view *v = view;
    int order = a->host == b->host ? strverscmp(a->device, b->device)
                                   : strverscmp(v->host[a->host].name, v->host[b->host].name);

    if (order)
        return order;
    return a->hca != b->hca ? (a->hca > b->hca ? 1 : -1)
                            : (a->port > b->port) - (a->port < b->port);
}

/* Index of an HCA's host, added if new; -1: unknown. */
static int hca_host(struct net_view *v, const struct topo *t, struct names *words, int hca,
                    bool again, char device[32])
{
    const struct net_node *n = &v->net->node[hca];
    char host[65];

    if (n->host >= 0 && n->host < t->hosts) {
        snprintf(host, sizeof(host), "%.64s", t->host[n->host].name);
        snprintf(device, 32, "%s", n->device);
    } else if (again || !net_described(n->name, host, device)) {
        return -1;
    }
    int h = names_add(words, host);
    if (h == v->hosts)
        MEM_PUSH(v->host, v->hosts) = (struct net_host){.name = mem_strdup(host)};
    return h;
}

static void find_ports(struct net_view *v, const struct topo *t)
{
    const struct net *n = v->net;
    bool *again = net_described_again(n);
    int *host = mem_calloc((size_t)n->nodes + 1, sizeof(*host));
    char(*device)[32] = mem_calloc((size_t)n->nodes + 1, sizeof(*device));
    struct names words = {0};

    for (int i = 0; i < n->nodes; i++) {
        host[i] = n->node[i].kind == NET_HCA ? hca_host(v, t, &words, i, again[i], device[i]) : -1;
        v->unnamed += n->node[i].kind == NET_HCA && host[i] < 0;
    }
    for (int i = 0; i < n->cables; i++)
        for (int end = 0; end < 2; end++) {
            const struct net_cable *c = &n->cable[i];
            int hca = end ? c->b : c->a, leaf = end ? c->a : c->b;
            if (host[hca] < 0 || n->node[leaf].kind != NET_SWITCH)
                continue;
            struct net_port s = {
                hca,       leaf, end ? c->port_b : c->port_a, end ? c->port_a : c->port_b, i,
                host[hca], ""};
            memcpy(s.device, device[hca], sizeof(s.device));
            MEM_PUSH(v->port, v->ports) = s;
        }
    names_free(&words);
    free(device);
    free(host);
    free(again);
}

/* Sort hosts by name, each with its ports; drop hosts without a cable. */
static void sort_ports(struct net_view *v)
{
    struct net_host *old = v->host;
    int olds = v->hosts;

    if (v->ports)
        qsort_r(v->port, (size_t)v->ports, sizeof(*v->port), by_host, v);
    v->host = NULL;
    v->hosts = 0;
    for (int i = 0, j; i < v->ports; i = j) {
        struct net_host h = {old[v->port[i].host].name, i, 0};
        int was = v->port[i].host;
        old[was].name = NULL;
        for (j = i; j < v->ports && v->port[j].host == was; j++, h.ports++)
            v->port[j].host = v->hosts;
        MEM_PUSH(v->host, v->hosts) = h;
    }
    for (int i = 0; i < olds; i++)
        free(old[i].name);
    free(old);
}

/* --- groups of leaves in each part of the network --- */

static int by_number(const void *x, const void *y)
{
    const int *a = x, *b = y;

    return (*a > *b) - (*a < *b);
}

/* A host in one part of the network; each part places it separately. */
struct member {
    int host, part;
};

static struct leaf_link *links_of(const struct net_view *v, struct member **member, int *members)
{
    struct leaf_link *port = mem_calloc((size_t)v->ports + 1, sizeof(*port));

    *member = NULL;
    *members = 0;
    for (int h = 0; h < v->hosts; h++)
        for (int i = v->host[h].first, first = *members; i < v->host[h].first + v->host[h].ports;
             i++) {
            int leaf = v->port[i].leaf, k = first;
            while (k < *members && (*member)[k].part != v->part[leaf])
                k++;
            if (k == *members)
                MEM_PUSH(*member, *members) = (struct member){h, v->part[leaf]};
            port[i] = (struct leaf_link){k, leaf};
        }
    return port;
}

static void make_groups(struct net_view *v)
{
    struct leaf_groups g;
    struct member *member;
    int members;
    struct leaf_link *port = links_of(v, &member, &members);

    leaf_groups_make(&g, port, v->ports);
    v->group = mem_calloc((size_t)g.groups + 1, sizeof(*v->group));
    v->groups = g.groups;
    for (int l = 0; l < g.leaves; l++)
        if (g.of_leaf[l] >= 0) {
            struct net_group *to = &v->group[g.of_leaf[l]];
            MEM_PUSH(to->leaf, to->leaves) = l;
            to->part = v->part[l];
        }
    for (int i = 0; i < members; i++) {
        struct net_group *to = &v->group[g.of_host[i]];
        MEM_PUSH(to->host, to->hosts) = member[i].host;
    }
    leaf_groups_free(&g);
    free(member);
    free(port);
}

static int by_label(const void *x, const void *y, void *label)
{
    const int *a = x, *b = y;

    return strverscmp(((char **)label)[*a], ((char **)label)[*b]);
}

static int by_part(const void *x, const void *y)
{
    const struct net_group *a = x, *b = y;

    return a->part != b->part ? (a->part > b->part ? 1 : -1) : strverscmp(a->name, b->name);
}

static void name_group(const struct net_view *v, struct net_group *g)
{
    char **names = mem_calloc((size_t)g->leaves + 1, sizeof(*names));

    qsort_r(g->leaf, (size_t)g->leaves, sizeof(*g->leaf), by_label, v->label);
    qsort(g->host, (size_t)g->hosts, sizeof(*g->host), by_number);
    for (int i = 0; i < g->leaves; i++)
        names[i] = v->label[g->leaf[i]];
    g->name = hostlist_fold(names, g->leaves);
    if (strchr(g->name, ',') || strlen(g->name) > GROUP_NAME) {
        free(g->name);
        g->name = mem_printf("%s..%s (%d)", names[0], names[g->leaves - 1], g->leaves);
    }
    free(names);
}

static void find_groups(struct net_view *v)
{
    make_groups(v);
    for (int i = 0; i < v->groups; i++)
        name_group(v, &v->group[i]);
    qsort(v->group, (size_t)v->groups, sizeof(*v->group), by_part);
}

void net_view_make(struct net_view *v, const struct net *n, const struct topo *t)
{
    *v = (struct net_view){.net = n, .label = net_labels(n)};
    v->part = net_parts(n, &v->parts);
    find_ports(v, t);
    sort_ports(v);
    find_groups(v);
}

void net_view_free(struct net_view *v)
{
    for (int i = 0; i < v->groups; i++) {
        free(v->group[i].name);
        free(v->group[i].leaf);
        free(v->group[i].host);
    }
    for (int i = 0; i < v->hosts; i++)
        free(v->host[i].name);
    hostlist_free(v->label, v->net->nodes);
    free(v->group);
    free(v->host);
    free(v->port);
    free(v->part);
    *v = (struct net_view){0};
}
