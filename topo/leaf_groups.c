/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/groups.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "topo/net.h"

/* Each leaf of a host is paired with this many of the host's next leaves. */
enum { NEXT = 16 };

/* Hosts on a group of leaves, ascending; several: number of hosts with several leaves anywhere. */
struct crowd {
    int *host, hosts, several, leaves;
};

struct pair {
    int a, b, times;
};

/* State while leaves are joined; a group is identified by its first leaf. */
struct work {
    struct leaf_groups *g;
    struct leaf_link *port; /* sorted by host and leaf, without repetition */
    int ports;
    int *leaves; /* number per host */
    int *up;     /* for each leaf: a lower leaf of the group, or the leaf itself */
    struct crowd *crowd;
};

static int by_host(const void *x, const void *y)
{
    const struct leaf_link *a = x, *b = y;

    return a->host != b->host ? (a->host > b->host ? 1 : -1)
                              : (a->leaf > b->leaf) - (a->leaf < b->leaf);
}

static int by_leaves(const void *x, const void *y)
{
    const struct pair *a = x, *b = y;

    return a->a != b->a ? (a->a > b->a ? 1 : -1) : (a->b > b->b) - (a->b < b->b);
}

static int by_times(const void *x, const void *y)
{
    const struct pair *a = x, *b = y;

    return a->times != b->times ? (a->times < b->times ? 1 : -1) : by_leaves(x, y);
}

static void work_open(struct work *w, struct leaf_groups *g, const struct leaf_link *port,
                      int ports)
{
    *w = (struct work){.g = g, .port = mem_calloc((size_t)ports + 1, sizeof(*port))};
    w->leaves = mem_calloc((size_t)g->hosts + 1, sizeof(int));
    w->up = mem_calloc((size_t)g->leaves + 1, sizeof(int));
    w->crowd = mem_calloc((size_t)g->leaves + 1, sizeof(*w->crowd));
    for (int i = 0; i < ports; i++)
        w->port[i] = port[i];
    qsort(w->port, (size_t)ports, sizeof(*port), by_host);
    for (int i = 0; i < ports; i++)
        if (!w->ports || by_host(&w->port[w->ports - 1], &w->port[i]) != 0) {
            w->port[w->ports++] = w->port[i];
            w->leaves[w->port[i].host]++;
        }
    for (int l = 0; l < g->leaves; l++)
        w->up[l] = l;
    for (int i = 0; i < w->ports; i++) {
        struct crowd *c = &w->crowd[w->port[i].leaf];
        MEM_PUSH(c->host, c->hosts) = w->port[i].host;
        c->several += w->leaves[w->port[i].host] > 1;
        c->leaves = 1;
    }
}

static void work_close(struct work *w)
{
    for (int l = 0; l < w->g->leaves; l++)
        free(w->crowd[l].host);
    free(w->crowd);
    free(w->leaves);
    free(w->port);
    free(w->up);
}

/* Pairs of leaves that hosts have in common, the most common pair first. */
static struct pair *pairs_of(const struct work *w, int *count)
{
    const struct leaf_link *s = w->port;
    struct pair *p = NULL;
    int n = 0, kept = 0;

    for (int i = 0; i < w->ports; i++)
        for (int k = i + 1; k < w->ports && k <= i + NEXT && s[k].host == s[i].host; k++)
            MEM_PUSH(p, n) = (struct pair){s[i].leaf, s[k].leaf, 1};
    if (n)
        qsort(p, (size_t)n, sizeof(*p), by_leaves);
    for (int i = 0; i < n; i++)
        if (kept && !by_leaves(&p[kept - 1], &p[i]))
            p[kept - 1].times++;
        else
            p[kept++] = p[i];
    if (kept)
        qsort(p, (size_t)kept, sizeof(*p), by_times);
    *count = kept;
    return p;
}

/* Union of two crowds; *common: hosts in both.  The caller frees .host. */
static struct crowd together(const struct work *w, const struct crowd *a, const struct crowd *b,
                             int *common)
{
    struct crowd all = {.host = mem_calloc((size_t)a->hosts + (size_t)b->hosts + 1, sizeof(int)),
                        .leaves = a->leaves + b->leaves};
    int i = 0, k = 0;

    *common = 0;
    while (i < a->hosts || k < b->hosts) {
        bool left = k == b->hosts || (i < a->hosts && a->host[i] <= b->host[k]);
        bool right = i == a->hosts || (k < b->hosts && b->host[k] <= a->host[i]);
        int host = left ? a->host[i] : b->host[k];
        all.host[all.hosts++] = host;
        all.several += w->leaves[host] > 1;
        *common += left && right;
        i += left;
        k += right;
    }
    return all;
}

/* True if most hosts of x that have several leaves are also on y.  A group of several leaves
 * always accepts a single leaf: its hosts have enough leaves in the group. */
static bool at_home(const struct crowd *x, const struct crowd *y, int common)
{
    return 2 * common > x->several || (x->leaves > 1 && y->leaves == 1);
}

static void join(struct work *w, int a, int b)
{
    struct crowd *x = &w->crowd[a < b ? a : b], *y = &w->crowd[a < b ? b : a], all;
    int common, fewer = x->hosts < y->hosts ? x->hosts : y->hosts;

    all = together(w, x, y, &common);
    if (2 * common < fewer || !at_home(x, y, common) || !at_home(y, x, common)) {
        free(all.host);
        return;
    }
    free(x->host);
    free(y->host);
    *x = all;
    *y = (struct crowd){.host = NULL};
    net_join(w->up, a, b);
}

/* Group with most of a host's leaves, s[0 .. n-1]; ties: the one with fewer hosts. */
static int home(struct work *w, const struct leaf_link *s, int n, int *votes)
{
    int best = -1;

    for (int i = 0; i < n; i++)
        votes[net_root(w->up, s[i].leaf)]++;
    for (int i = 0; i < n; i++) {
        int r = net_root(w->up, s[i].leaf);
        if (best < 0 || votes[r] > votes[best] ||
            (votes[r] == votes[best] && w->crowd[r].hosts < w->crowd[best].hosts))
            best = r;
    }
    for (int i = 0; i < n; i++)
        votes[net_root(w->up, s[i].leaf)] = 0;
    return best;
}

/* Set of_host to the root of each host's group.  Returns hosts per root; the caller frees. */
static int *settle(struct work *w)
{
    int *votes = mem_calloc((size_t)w->g->leaves + 1, sizeof(int));
    int *homes = mem_calloc((size_t)w->g->leaves + 1, sizeof(int));

    for (int i = 0, k; i < w->ports; i = k) {
        for (k = i + 1; k < w->ports && w->port[k].host == w->port[i].host; k++)
            ;
        int root = home(w, w->port + i, k - i, votes);
        w->g->of_host[w->port[i].host] = root;
        homes[root]++;
    }
    free(votes);
    return homes;
}

/* Group for leaves that are home to no host: that of most hosts on them.  Returns root, or -1. */
static int adopted(const struct work *w, const struct crowd *c)
{
    int of = -1, lead = 0, n = 0;

    for (int i = 0; i < c->hosts; i++) { /* majority vote: leaves the only candidate */
        int root = w->g->of_host[c->host[i]];
        of = lead ? of : root;
        lead += of == root ? 1 : -1;
    }
    for (int i = 0; i < c->hosts; i++)
        n += w->g->of_host[c->host[i]] == of;
    return 2 * n > c->hosts ? of : -1;
}

/* Replace roots by consecutive numbers. */
static void number(struct work *w, const int *homes)
{
    struct leaf_groups *g = w->g;
    int *to = mem_calloc((size_t)g->leaves + 1, sizeof(int)); /* root to number + 1 */

    for (int l = 0; l < g->leaves; l++) {
        int root = net_root(w->up, l);
        if (w->crowd[root].hosts && !homes[root])
            root = adopted(w, &w->crowd[root]);
        else if (!w->crowd[root].hosts)
            root = -1;
        if (root >= 0 && !to[root])
            to[root] = ++g->groups;
        g->of_leaf[l] = root < 0 ? -1 : to[root] - 1;
    }
    for (int h = 0; h < g->hosts; h++)
        g->of_host[h] = g->of_host[h] < 0 ? -1 : to[g->of_host[h]] - 1;
    free(to);
}

void leaf_groups_make(struct leaf_groups *g, const struct leaf_link *port, int ports)
{
    struct work w;
    int pairs;

    *g = (struct leaf_groups){.leaves = 0};
    for (int i = 0; i < ports; i++) {
        g->hosts = port[i].host >= g->hosts ? port[i].host + 1 : g->hosts;
        g->leaves = port[i].leaf >= g->leaves ? port[i].leaf + 1 : g->leaves;
    }
    g->of_leaf = mem_ints(g->leaves, 0);
    g->of_host = mem_ints(g->hosts, -1);
    work_open(&w, g, port, ports);
    struct pair *p = pairs_of(&w, &pairs);
    for (int i = 0; i < pairs; i++) {
        int a = net_root(w.up, p[i].a), b = net_root(w.up, p[i].b);
        if (a != b)
            join(&w, a, b);
    }
    int *homes = settle(&w);
    number(&w, homes);
    free(homes);
    free(p);
    work_close(&w);
}

void leaf_groups_free(struct leaf_groups *g)
{
    free(g->of_leaf);
    free(g->of_host);
    *g = (struct leaf_groups){.of_leaf = NULL};
}
