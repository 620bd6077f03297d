/* SPDX-License-Identifier: BSD-3-Clause */
/* net_merge.c - several networks as one, and what to call their nodes. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "base/mem.h"
#include "topo/net/net.h"

/* The part of a switch's description that its owner chose: between "MF0;" and ":MODEL/U1". */
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

/* How many nodes have this label, by its index in `words`. */
static int *shared(struct topo *words, char *const *label, int count)
{
    int *times = mem_calloc((size_t)count + 1, sizeof(*times));

    topo_init(words);
    for (int i = 0; i < count; i++)
        times[topo_add_group(words, LEVEL_LEAF, label[i])]++;
    return times;
}

char **net_labels(const struct net *n)
{
    char **label = mem_calloc((size_t)n->nodes + 1, sizeof(*label));
    struct topo words;

    for (int i = 0; i < n->nodes; i++)
        label[i] = short_name(&n->node[i]);
    for (int step = 0; step < 2; step++) { /* the whole description, then the GUID */
        int *times = shared(&words, label, n->nodes);
        for (int i = 0; i < n->nodes; i++) {
            const struct net_node *x = &n->node[i];
            if (*label[i] && times[topo_add_group(&words, LEVEL_LEAF, label[i])] == 1)
                continue;
            free(label[i]);
            label[i] = step == 0 ? mem_strdup(x->name)
                       : x->guid ? mem_printf("%c-%016" PRIx64, "SHHR"[x->kind], x -> guid)
                                 : mem_printf("%s#%d", *x->name ? x->name : "node", i);
        }
        free(times);
        topo_free(&words);
    }
    return label;
}

/* Index in `to` of each node of `from`, which are added where they are new. */
static int *merge_nodes(struct net *to, const struct net *from)
{
    int *at = mem_calloc((size_t)from->nodes + 1, sizeof(*at));
    struct topo words;
    char key[24];
    int *of = mem_calloc((size_t)to->nodes + 1, sizeof(*of)), guids = 0;

    topo_init(&words);
    for (int i = 0; i < to->nodes; i++) {
        snprintf(key, sizeof(key), "%" PRIx64, to->node[i].guid);
        if (to->node[i].guid && topo_add_group(&words, LEVEL_LEAF, key) == guids)
            of[guids++] = i;
    }
    for (int i = 0; i < from->nodes; i++) {
        snprintf(key, sizeof(key), "%" PRIx64, from->node[i].guid);
        int g = from->node[i].guid ? topo_add_group(&words, LEVEL_LEAF, key) : guids;
        at[i] = g < guids ? of[g] : to->nodes;
        if (at[i] == to->nodes)
            MEM_PUSH(to->node, to->nodes) = from->node[i];
    }
    topo_free(&words);
    free(of);
    return at;
}

static bool same_ends(const struct net_cable *x, const struct net_cable *y)
{
    return x->a == y->a && x->b == y->b && x->port_a == y->port_a && x->port_b == y->port_b;
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

/* Cables that both told stay once. */
static void drop_repeated(struct net *n)
{
    int kept = 0;

    if (n->cables)
        qsort(n->cable, (size_t)n->cables, sizeof(*n->cable), by_ends);
    for (int i = 0; i < n->cables; i++)
        if (!kept || !same_ends(&n->cable[kept - 1], &n->cable[i]))
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
