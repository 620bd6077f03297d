/* SPDX-License-Identifier: BSD-3-Clause */
/* net_group.c - groups of leaves in each part of the network. */
#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "base/mem.h"
#include "topo/net/leaf_groups.h"
#include "topo/net/net_view.h"

enum { GROUP_NAME = 63 };

static int by_number(const void *x, const void *y)
{
    const int *a = x, *b = y;

    return (*a > *b) - (*a < *b);
}

/* A host in one part of the network; in each it belongs somewhere. */
struct member {
    int host, part;
};

static struct leaf_seat *seats_of(const struct net_view *v, struct member **member, int *members)
{
    struct leaf_seat *seat = mem_calloc((size_t)v->seats + 1, sizeof(*seat));

    *member = NULL;
    *members = 0;
    for (int h = 0; h < v->hosts; h++)
        for (int i = v->host[h].first, first = *members; i < v->host[h].first + v->host[h].seats;
             i++) {
            int leaf = v->seat[i].leaf, k = first;
            while (k < *members && (*member)[k].part != v->part[leaf])
                k++;
            if (k == *members)
                MEM_PUSH(*member, *members) = (struct member){h, v->part[leaf]};
            seat[i] = (struct leaf_seat){k, leaf};
        }
    return seat;
}

static void make_groups(struct net_view *v)
{
    struct leaf_groups g;
    struct member *member;
    int members;
    struct leaf_seat *seat = seats_of(v, &member, &members);

    leaf_groups_make(&g, seat, v->seats);
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
    free(seat);
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
    make_groups(v);
    for (int i = 0; i < v->groups; i++)
        name_group(v, &v->group[i]);
    qsort(v->group, (size_t)v->groups, sizeof(*v->group), by_part);
}
