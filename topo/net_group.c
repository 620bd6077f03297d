/* SPDX-License-Identifier: BSD-3-Clause */
/* net_group.c - groups of leaves: from the most common set of leaves of hosts to the rarest. */
#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "base/mem.h"
#include "topo/net_view.h"

enum { GROUP_NAME = 63 };

struct leaf_set { /* hosts with the same leaves in one part */
    int part;
    int *leaf, leaves;
    int *host, hosts;
    int group;
};

static int by_number(const void *x, const void *y)
{
    const int *a = x, *b = y;

    return (*a > *b) - (*a < *b);
}

/* Leaves of host h in this part, sorted, each once. */
static int leaves_of(const struct net_view *v, int h, int part, int *leaf)
{
    int n = 0, kept = 0;

    for (int i = 0; i < v->host[h].seats; i++) {
        int l = v->seat[v->host[h].first + i].leaf;
        if (v->part[l] == part)
            leaf[n++] = l;
    }
    qsort(leaf, (size_t)n, sizeof(*leaf), by_number);
    for (int i = 0; i < n; i++)
        if (!kept || leaf[kept - 1] != leaf[i])
            leaf[kept++] = leaf[i];
    return kept;
}

static void add_to_set(struct leaf_set **set, int *sets, struct topo *words, int part, int h,
                       const int *leaf, int leaves)
{
    char *key = mem_printf("%d", part);

    for (int i = 0; i < leaves; i++) {
        char *longer = mem_printf("%s,%d", key, leaf[i]);
        free(key);
        key = longer;
    }
    int at = topo_add_group(words, LEVEL_LEAF, key);
    free(key);
    if (at == *sets) {
        struct leaf_set s = {.part = part, .group = -1};
        for (int i = 0; i < leaves; i++)
            MEM_PUSH(s.leaf, s.leaves) = leaf[i];
        MEM_PUSH(*set, *sets) = s;
    }
    MEM_PUSH((*set)[at].host, (*set)[at].hosts) = h;
}

static struct leaf_set *leaf_sets(const struct net_view *v, int *sets)
{
    struct leaf_set *set = NULL;
    struct topo words;

    *sets = 0;
    topo_init(&words);
    for (int h = 0; h < v->hosts; h++) {
        int *leaf = mem_calloc((size_t)v->host[h].seats + 1, sizeof(*leaf));
        for (int i = 0; i < v->host[h].seats; i++) {
            int part = v->part[v->seat[v->host[h].first + i].leaf], k = 0;
            while (v->part[v->seat[v->host[h].first + k].leaf] != part)
                k++;
            if (k == i) /* its first seat in this part */
                add_to_set(&set, sets, &words, part, h, leaf, leaves_of(v, h, part, leaf));
        }
        free(leaf);
    }
    topo_free(&words);
    return set;
}

static int by_weight(const void *x, const void *y)
{
    const struct leaf_set *a = x, *b = y;

    if (a->hosts != b->hosts)
        return a->hosts > b->hosts ? -1 : 1;
    if (a->leaves != b->leaves)
        return a->leaves > b->leaves ? -1 : 1;
    return (a->leaf[0] > b->leaf[0]) - (a->leaf[0] < b->leaf[0]);
}

/* The group that has most of a set's leaves; -1 when that is less than half and others are free. */
static int fitting(const struct leaf_set *s, const int *owner)
{
    int best = -1, most = 0, spare = 0;

    for (int i = 0; i < s->leaves; i++) {
        int g = owner[s->leaf[i]], n = 0;
        spare += g < 0;
        for (int k = 0; k < s->leaves && g >= 0; k++)
            n += owner[s->leaf[k]] == g;
        if (n > most) {
            most = n;
            best = g;
        }
    }
    return 2 * most >= s->leaves || !spare ? best : -1;
}

/* From the most common set of leaves to the rarest. */
static void make_groups(struct net_view *v, struct leaf_set *set, int sets)
{
    int *owner = mem_calloc((size_t)v->net->nodes + 1, sizeof(*owner));

    for (int i = 0; i < v->net->nodes; i++)
        owner[i] = -1;
    qsort(set, (size_t)sets, sizeof(*set), by_weight);
    for (int i = 0; i < sets; i++) {
        int g = fitting(&set[i], owner);
        if (g < 0) {
            g = v->groups;
            MEM_PUSH(v->group, v->groups) = (struct net_group){.part = set[i].part};
        }
        for (int k = 0; k < set[i].leaves; k++)
            if (owner[set[i].leaf[k]] < 0) {
                owner[set[i].leaf[k]] = g;
                MEM_PUSH(v->group[g].leaf, v->group[g].leaves) = set[i].leaf[k];
            }
        for (int k = 0; k < set[i].hosts; k++)
            MEM_PUSH(v->group[g].host, v->group[g].hosts) = set[i].host[k];
    }
    free(owner);
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

void net_view_group(struct net_view *v)
{
    int sets;
    struct leaf_set *set = leaf_sets(v, &sets);

    if (sets)
        make_groups(v, set, sets);
    for (int i = 0; i < v->groups; i++)
        name_group(v, &v->group[i]);
    if (v->groups)
        qsort(v->group, (size_t)v->groups, sizeof(*v->group), by_part);
    for (int i = 0; i < sets; i++) {
        free(set[i].leaf);
        free(set[i].host);
    }
    free(set);
}
