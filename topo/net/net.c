/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/net/net.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/convert.h"
#include "base/mem.h"

enum { FULLER = 4 }; /* so many times the adapters, on at least as many cables */

const char *const net_kind_name[NET_KINDS] = {"switch", "hca", "aggregation", "router"};

void net_free(struct net *n)
{
    if (!n)
        return;
    free(n->node);
    free(n->cable);
    free(n);
}

struct net *net_copy(const struct net *n)
{
    struct net *to = n ? mem_calloc(1, sizeof(*to)) : NULL;

    for (int i = 0; n && i < n->nodes; i++)
        MEM_PUSH(to->node, to->nodes) = n->node[i];
    for (int i = 0; n && i < n->cables; i++)
        MEM_PUSH(to->cable, to->cables) = n->cable[i];
    return to;
}

double net_rate(int width, const char *speed)
{
    static const struct {
        const char *name;
        double Gbps; /* of data, a lane */
    } speeds[] = {{"SDR", 2},  {"DDR", 4},  {"QDR", 8},   {"FDR10", 10}, {"FDR", 150.0 / 11},
                  {"EDR", 25}, {"HDR", 50}, {"NDR", 100}, {"XDR", 200}};

    for (size_t i = 0; i < sizeof(speeds) / sizeof(*speeds); i++)
        if (!strcmp(speed, speeds[i].name))
            return width * convert_in(CONVERT_IB_LANE, speeds[i].Gbps);
    return 0;
}

bool net_width(int width)
{
    return width == 1 || width == 2 || width == 4 || width == 8 || width == 12;
}

void net_add_cable(struct net *n, struct net_cable c)
{
    if (c.a > c.b || (c.a == c.b && c.port_a > c.port_b))
        c = (struct net_cable){.a = c.b,
                               .b = c.a,
                               .port_a = c.port_b,
                               .port_b = c.port_a,
                               .guid_a = c.guid_b,
                               .guid_b = c.guid_a,
                               .lid_a = c.lid_b,
                               .lid_b = c.lid_a,
                               .width = c.width,
                               .differ = c.differ,
                               .speed = {c.speed[0], c.speed[1], c.speed[2], c.speed[3], c.speed[4],
                                         c.speed[5], c.speed[6]}};
    c.Bps = net_rate(c.width, c.speed);
    MEM_PUSH(n->cable, n->cables) = c;
}

int net_count(const struct net *n, enum net_kind kind)
{
    int count = 0;

    for (int i = 0; i < n->nodes; i++)
        count += n->node[i].kind == kind;
    return count;
}

/* --- what may be there once only --- */

struct once { /* a key and whose it is */
    uint64_t key;
    int at;
};

static int by_key(const void *x, const void *y)
{
    const struct once *a = x, *b = y;

    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return (a->at > b->at) - (a->at < b->at);
}

/* The first key that is there twice; takes over v. */
static bool twice(struct once *v, int count, int *x, int *y)
{
    bool found = false;

    qsort(v, (size_t)count, sizeof(*v), by_key);
    for (int i = 1; i < count && !found; i++)
        if (v[i].key == v[i - 1].key) {
            *x = v[i - 1].at;
            *y = v[i].at;
            found = true;
        }
    free(v);
    return found;
}

bool net_twins(const struct net *n, int *x, int *y)
{
    struct once *v = mem_calloc((size_t)n->nodes + 1, sizeof(*v));
    int count = 0;

    for (int i = 0; i < n->nodes; i++)
        if (n->node[i].guid)
            v[count++] = (struct once){n->node[i].guid, i};
    return twice(v, count, x, y);
}

static uint64_t port_key(int node, int port)
{
    return (uint64_t)node << 8 | (uint64_t)port;
}

bool net_clash(const struct net *n, int *x, int *y)
{
    struct once *v = mem_calloc(2 * (size_t)n->cables + 1, sizeof(*v));

    for (int i = 0; i < n->cables; i++) {
        v[2 * i] = (struct once){port_key(n->cable[i].a, n->cable[i].port_a), i};
        v[2 * i + 1] = (struct once){port_key(n->cable[i].b, n->cable[i].port_b), i};
    }
    return twice(v, 2 * n->cables, x, y);
}

/* --- structure --- */

/* Adapters of hosts at each node. */
static int *adapters(const struct net *n)
{
    int *at = mem_calloc((size_t)n->nodes + 1, sizeof(*at));

    for (int i = 0; i < n->cables; i++) {
        at[n->cable[i].a] += n->node[n->cable[i].b].kind == NET_HCA;
        at[n->cable[i].b] += n->node[n->cable[i].a].kind == NET_HCA;
    }
    return at;
}

/* Switches with adapters are leaves; but a few of them, as the subnet manager's, on a switch most
 * of whose cables lead to switches with many more make no leaf of a spine. */
static void find_leaves(struct net *n)
{
    int *at = adapters(n), *cables = mem_calloc((size_t)n->nodes + 1, sizeof(*cables)),
        *fuller = mem_calloc((size_t)n->nodes + 1, sizeof(*fuller));

    for (int i = 0; i < n->cables; i++) {
        int a = n->cable[i].a, b = n->cable[i].b;
        if (n->node[a].kind != NET_SWITCH || n->node[b].kind != NET_SWITCH)
            continue;
        cables[a]++;
        cables[b]++;
        fuller[a] += at[b] >= FULLER * at[a];
        fuller[b] += at[a] >= FULLER * at[b];
    }
    for (int i = 0; i < n->nodes; i++) {
        bool spine = fuller[i] >= FULLER && 2 * fuller[i] > cables[i];
        n->node[i].tier = n->node[i].kind == NET_SWITCH && at[i] && !spine ? 0 : -1;
    }
    free(fuller);
    free(cables);
    free(at);
}

void net_tiers(struct net *n)
{
    bool more = true;

    find_leaves(n);
    for (int tier = 1; more; tier++) {
        more = false;
        for (int i = 0; i < n->cables; i++)
            for (int end = 0; end < 2; end++) {
                const struct net_cable *c = &n->cable[i];
                const struct net_node *from = &n->node[end ? c->b : c->a];
                struct net_node *to = &n->node[end ? c->a : c->b];
                if (from->tier != tier - 1 || to->kind != NET_SWITCH || to->tier >= 0)
                    continue;
                to->tier = tier;
                more = true;
            }
    }
}

static int root_of(int *up, int i)
{
    while (up[i] != i)
        i = up[i] = up[up[i]];
    return i;
}

struct part {
    int root, hcas, nodes;
};

static int by_size(const void *x, const void *y)
{
    const struct part *a = x, *b = y;

    if (a->hcas != b->hcas)
        return a->hcas > b->hcas ? -1 : 1;
    if (a->nodes != b->nodes)
        return a->nodes > b->nodes ? -1 : 1;
    return (a->root > b->root) - (a->root < b->root);
}

int *net_parts(const struct net *n, int *count)
{
    size_t room = (size_t)n->nodes + 1;
    int *part = mem_calloc(room, sizeof(*part)), *at = mem_calloc(room, sizeof(*at));
    struct part *p = mem_calloc(room, sizeof(*p));

    for (int i = 0; i < n->nodes; i++)
        part[i] = i;
    for (int i = 0; i < n->cables; i++) {
        int a = root_of(part, n->cable[i].a), b = root_of(part, n->cable[i].b);
        part[a > b ? a : b] = a > b ? b : a;
    }
    *count = 0;
    for (int i = 0; i < n->nodes; i++) { /* the root of a part is its first node */
        int root = part[i] = root_of(part, i);
        if (root == i) {
            at[i] = (*count)++;
            p[at[i]].root = i;
        }
        p[at[root]].nodes++;
        p[at[root]].hcas += n->node[i].kind == NET_HCA;
    }
    qsort(p, (size_t)*count, sizeof(*p), by_size);
    for (int i = 0; i < *count; i++)
        at[p[i].root] = i;
    for (int i = 0; i < n->nodes; i++)
        part[i] = at[part[i]];
    free(p);
    free(at);
    return part;
}
