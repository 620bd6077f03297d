/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/net.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/units.h"

/* A switch is "fuller" with this many times the NICs, on at least as many cables. */
enum { FULLER = 4 };

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
        double Gbps; /* data rate of a lane */
    } speeds[] = {{"SDR", 2},  {"DDR", 4},  {"QDR", 8},   {"FDR10", 10}, {"FDR", 150.0 / 11},
                  {"EDR", 25}, {"HDR", 50}, {"NDR", 100}, {"XDR", 200}};

    for (size_t i = 0; i < sizeof(speeds) / sizeof(*speeds); i++)
        if (!strcmp(speed, speeds[i].name))
            return width * units_in(FOREIGN_IB_LANE, speeds[i].Gbps);
    return 0;
}

bool net_width(int width)
{
    return width == 1 || width == 2 || width == 4 || width == 8 || width == 12;
}

void net_add_cable(struct net *n, struct net_cable c)
{
    const struct net_cable from = c;

    if (c.a > c.b || (c.a == c.b && c.port_a > c.port_b)) {
        c.a = from.b;
        c.b = from.a;
        c.port_a = from.port_b;
        c.port_b = from.port_a;
        c.guid_a = from.guid_b;
        c.guid_b = from.guid_a;
        c.lid_a = from.lid_b;
        c.lid_b = from.lid_a;
    }
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

/* --- uniqueness --- */

struct once { /* key and index of its owner */
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

/* Find the first duplicate key; takes ownership of v. */
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

/* Number of host NICs at each node. */
static int *adapters(const struct net *n)
{
    int *at = mem_calloc((size_t)n->nodes + 1, sizeof(*at));

    for (int i = 0; i < n->cables; i++) {
        at[n->cable[i].a] += n->node[n->cable[i].b].kind == NET_HCA;
        at[n->cable[i].b] += n->node[n->cable[i].a].kind == NET_HCA;
    }
    return at;
}

/* Switches with NICs are leaves.  Exception: a few NICs, such as the subnet manager's, do not make
 * a leaf of a spine: most of its cables lead to switches with many more NICs. */
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

int net_root(int *up, int i)
{
    while (up[i] != i)
        i = up[i] = up[up[i]];
    return i;
}

void net_join(int *up, int a, int b)
{
    a = net_root(up, a);
    b = net_root(up, b);
    up[a > b ? a : b] = a > b ? b : a;
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
    for (int i = 0; i < n->cables; i++)
        net_join(part, n->cable[i].a, n->cable[i].b);
    *count = 0;
    for (int i = 0; i < n->nodes; i++) { /* the root of a part is its first node */
        int root = part[i] = net_root(part, i);
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

/* --- labels, and merging of networks --- */

/* Part of a switch's description that its owner chose: between "MF0;" and ":MODEL/U1". */
static char *short_name(const struct net_node *n)
{
    const char *start = n->name, *colon;

    if (n->kind != NET_SWITCH || strncmp(start, "MF0;", 4) != 0)
        return mem_strdup(start);
    start += 4;
    colon = strchr(start, ':');
    return colon && colon > start ? mem_printf("%.*s", (int)(colon - start), start)
                                  : mem_strdup(n->name);
}

bool *net_texts_again(const char *const *text, int count)
{
    bool *again = mem_calloc((size_t)count + 1, sizeof(*again));
    int *first = mem_calloc((size_t)count + 1, sizeof(*first)); /* first node with each name */
    struct names names = {0};

    for (int i = 0; i < count; i++) {
        int had = names.count, n = text[i] ? names_add(&names, text[i]) : -1;
        if (n == had)
            first[n] = i;
        else if (n >= 0)
            again[i] = again[first[n]] = true;
    }
    names_free(&names);
    free(first);
    return again;
}

char **net_labels(const struct net *n)
{
    char **label = mem_calloc((size_t)n->nodes + 1, sizeof(*label));

    for (int i = 0; i < n->nodes; i++)
        label[i] = short_name(&n->node[i]);
    for (int step = 0; step < 2; step++) { /* the whole description, then the GUID */
        bool *again = net_texts_again((const char *const *)label, n->nodes);
        for (int i = 0; i < n->nodes; i++) {
            const struct net_node *x = &n->node[i];
            if (*label[i] && !again[i])
                continue;
            free(label[i]);
            label[i] = step == 0 ? mem_strdup(x->name)
                       : x->guid ? mem_printf("%c-%016" PRIx64, "SHHR"[x->kind], x -> guid)
                                 : mem_printf("%s#%d", *x->name ? x->name : "node", i);
        }
        free(again);
    }
    return label;
}

/* Add the new nodes of `from` to `to`.  Returns the index in `to` of each node of `from`. */
static int *merge_nodes(struct net *to, const struct net *from)
{
    int *at = mem_calloc((size_t)from->nodes + 1, sizeof(*at));
    struct map by_guid = {0};

    for (int i = to->nodes - 1; i >= 0; i--)
        if (to->node[i].guid)
            *map_at(&by_guid, to->node[i].guid, NULL, NULL) = i;
    for (int i = 0; i < from->nodes; i++) {
        uint64_t guid = from->node[i].guid;
        at[i] = guid ? map_find(&by_guid, guid, NULL, NULL) : MAP_NONE;
        if (at[i] == MAP_NONE) {
            at[i] = to->nodes;
            MEM_PUSH(to->node, to->nodes) = from->node[i];
        }
    }
    map_free(&by_guid);
    return at;
}

static int by_ends(const void *x, const void *y)
{
    const struct net_cable *a = x, *b = y;
    const int of_a[] = {a->a, a->port_a, a->b, a->port_b},
              of_b[] = {b->a, b->port_a, b->b, b->port_b};

    for (int i = 0; i < 4; i++)
        if (of_a[i] != of_b[i])
            return of_a[i] < of_b[i] ? -1 : 1;
    return 0;
}

/* Remove duplicates of cables that both networks contain. */
static void drop_repeated(struct net *n)
{
    int kept = 0;

    if (n->cables)
        qsort(n->cable, (size_t)n->cables, sizeof(*n->cable), by_ends);
    for (int i = 0; i < n->cables; i++)
        if (!kept || by_ends(&n->cable[kept - 1], &n->cable[i]) != 0)
            n->cable[kept++] = n->cable[i];
    n->cables = kept;
}

static int clash(const struct net *n, int x, int y, const char *path, struct err *err)
{
    const struct net_cable *p = &n->cable[x], *q = &n->cable[y];
    bool at_a =
        (q->a == p->a && q->port_a == p->port_a) || (q->b == p->a && q->port_b == p->port_a);
    char **label = net_labels(n);
    int node = at_a ? p->a : p->b, port = at_a ? p->port_a : p->port_b;
    int there = node == p->a && port == p->port_a ? p->b : p->a;
    int here = node == q->a && port == q->port_a ? q->b : q->a;

    err_data(err, "%s: port %d of %.80s is cabled to %.80s, and elsewhere to %.80s", path, port,
             label[node], label[here], label[there]);
    hostlist_free(label, n->nodes);
    return -1;
}

int net_merge(struct net *to, const struct net *from, const char *path, struct err *err)
{
    struct net *both = net_copy(to);
    int *at = merge_nodes(both, from), x, y;

    for (int i = 0; i < from->cables; i++) {
        struct net_cable c = from->cable[i];
        c.a = at[c.a];
        c.b = at[c.b];
        net_add_cable(both, c);
    }
    free(at);
    drop_repeated(both);
    if (net_clash(both, &x, &y)) {
        clash(both, x, y, path, err);
        net_free(both);
        return -1;
    }
    net_tiers(both);
    struct net old = *to;
    *to = *both;
    *both = old;
    net_free(both);
    return 0;
}
