/* SPDX-License-Identifier: BSD-3-Clause */
/* lint_net.c - hosts and their adapters in a switched network beside those of their group. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "topo/lint/lint_impl.h"
#include "topo/net/net_view.h"

/* How many of its adapters a host has in this part of the network. */
static int seats_in(const struct net_view *v, int host, int part)
{
    int n = 0;

    for (int i = 0; i < v->host[host].seats; i++)
        n += v->part[v->seat[v->host[host].first + i].leaf] == part;
    return n;
}

static bool sits_on(const struct net_view *v, int host, int leaf)
{
    for (int i = 0; i < v->host[host].seats; i++)
        if (v->seat[v->host[host].first + i].leaf == leaf)
            return true;
    return false;
}

/* Adapters at each switch that have no host's name. */
static int *strangers(const struct net_view *v)
{
    const struct net *n = v->net;
    bool *named = mem_calloc((size_t)n->nodes + 1, sizeof(*named));
    int *at = mem_calloc((size_t)n->nodes + 1, sizeof(*at));

    for (int i = 0; i < v->seats; i++)
        named[v->seat[i].hca] = true;
    for (int i = 0; i < n->cables; i++) {
        int a = n->cable[i].a, b = n->cable[i].b;
        at[a] += n->node[b].kind == NET_HCA && !named[b];
        at[b] += n->node[a].kind == NET_HCA && !named[a];
    }
    free(named);
    return at;
}

/* The leaves of its group that a host is not on, as text; *others: on each is a stranger. */
static char *lacking(const struct net_view *v, const struct net_group *g, int host,
                     const int *stranger, bool *others)
{
    char *text = mem_strdup("");

    *others = true;
    for (int i = 0; i < g->leaves; i++) {
        if (sits_on(v, host, g->leaf[i]))
            continue;
        text = mem_append(text, "%s%.70s", *text ? ", " : "", v->label[g->leaf[i]]);
        *others = *others && stranger[g->leaf[i]] > 0;
    }
    return text;
}

/* It is called as one of the hosts that have as many adapters as most, but for numbers. */
static bool same_family(const struct net_view *v, const struct net_group *g, int host, int mode)
{
    char *family = topo_host_family(v->host[host].name);
    bool found = false;

    for (int i = 0; i < g->hosts && !found; i++) {
        char *other = topo_host_family(v->host[g->host[i]].name);
        found = seats_in(v, g->host[i], g->part) >= mode && !strcmp(family, other);
        free(other);
    }
    free(family);
    return found;
}

/* Its adapters are called as those of its peers: three hosts have one of that name. */
static bool kin(const struct net_view *v, const struct net_group *g, int host)
{
    for (int i = 0; i < v->host[host].seats; i++) {
        const char *device = v->seat[v->host[host].first + i].device;
        int n = 0;
        for (int h = 0; h < g->hosts; h++)
            for (int k = 0; k < v->host[g->host[h]].seats; k++)
                n += !strcmp(v->seat[v->host[g->host[h]].first + k].device, device);
        if (n >= 3)
            return true;
    }
    return false;
}

static void few_rails(struct lint *l, const struct net_view *v, const struct net_group *g,
                      const int *stranger)
{
    int *value = mem_calloc((size_t)g->hosts + 1, sizeof(*value)), times;

    for (int i = 0; i < g->hosts; i++)
        value[i] = seats_in(v, g->host[i], g->part);
    int mode = lint_mode(value, g->hosts, &times);
    for (int i = 0; i < g->hosts && times >= 3 && 2 * times >= g->hosts; i++) {
        int has = seats_in(v, g->host[i], g->part);
        bool others;
        if (has >= mode)
            continue;
        char *where = lacking(v, g, g->host[i], stranger, &others);
        const char *name = v->host[g->host[i]].name;
        bool other_kind = !same_family(v, g, g->host[i], mode) || !kin(v, g, g->host[i]),
             maybe = others && *where;
        (maybe || other_kind ? lint_note
                             : lint_add)(l, "rails", name,
                                         "%.64s: %d adapter%s in the network where %d of the %d "
                                         "hosts of %.80s have %d%s%.300s%s",
                                         name, has, has == 1 ? "" : "s", times, g->hosts, g->name,
                                         mode, *where ? "; none on " : "", where,
                                         other_kind ? ": perhaps another kind of host"
                                         : maybe    ? ", where an adapter without a name may be its"
                                                    : "");
        free(where);
    }
    free(value);
}

/* --- the same adapter of every host is on the same leaf --- */

static void say_leaf(struct lint *l, const struct lint_seat *odd, int leaf, int times, int n,
                     const void *of)
{
    const struct net_view *v = of;
    const struct net_seat *s = &v->seat[odd->id];
    char what[128], at[NET_END];

    snprintf(what, sizeof(what), "%.64s %.31s", v->host[s->host].name, s->device);
    lint_add(l, "leaf", what, "%s: cabled to %s where %d of %d hosts have theirs on %.80s", what,
             net_end_text(at, v, s->leaf, s->leaf_port), times, n, v->label[leaf]);
}

static void other_leaf(struct lint *l, const struct net_view *v, const struct net_group *g)
{
    struct lint_seat *s = NULL;
    int n = 0;

    for (int i = 0; i < g->hosts; i++)
        for (int k = 0; k < v->host[g->host[i]].seats; k++) {
            int id = v->host[g->host[i]].first + k;
            const struct net_seat *x = &v->seat[id];
            if (x->device[0] && v->part[x->leaf] == g->part)
                MEM_PUSH(s, n) = (struct lint_seat){
                    .device = x->device, .port = x->port, .leaf = x->leaf, .id = id};
        }
    lint_seats(l, s, n, say_leaf, v);
    free(s);
}

/* Of hosts on leaves: a manager's host on a spine is no group to compare. */
static void few_leaves(struct lint *l, const struct net_view *v)
{
    int *value = mem_calloc((size_t)v->groups + 1, sizeof(*value));

    for (int i = 0, end; i < v->groups; i = end) {
        int times, n = 0;
        for (end = i; end < v->groups && v->group[end].part == v->group[i].part; end++)
            if (v->net->node[v->group[end].leaf[0]].tier == 0)
                value[n++] = v->group[end].leaves;
        int mode = lint_mode(value, n, &times);
        for (int k = i; k < end && lint_most(times, n); k++) {
            const struct net_group *g = &v->group[k];
            if (g->leaves < mode && v->net->node[g->leaf[0]].tier == 0)
                lint_add(l, "leaves", g->name,
                         "%.120s: %d lea%s for its %d hosts where %d of %d groups of hosts have %d",
                         g->name, g->leaves, g->leaves == 1 ? "f" : "ves", g->hosts, times, n,
                         mode);
        }
    }
    free(value);
}

static void lint_adapters(struct lint *l, const struct net_view *v)
{
    int *stranger = strangers(v), hcas = 0;

    for (int g = 0; g < v->groups; g++) {
        few_rails(l, v, &v->group[g], stranger);
        other_leaf(l, v, &v->group[g]);
    }
    few_leaves(l, v);
    for (int i = 0; i < v->net->nodes; i++)
        hcas += v->net->node[i].kind == NET_HCA;
    if (v->unnamed)
        lint_note(
            l, "names", "adapters",
            "%d of %d adapters have no host's name: their description is that of the maker or "
            "shared, and no NIC of a known host has their GUID",
            v->unnamed, hcas);
    free(stranger);
}

int lint_net(struct lint *l, const struct topo *t)
{
    int before = l->findings;
    struct net_view v;

    if (!t->net)
        return 0;
    net_view_make(&v, t->net, t);
    lint_cables(l, &v);
    lint_adapters(l, &v);
    net_view_free(&v);
    return l->findings - before;
}
