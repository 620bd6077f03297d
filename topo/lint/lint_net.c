/* SPDX-License-Identifier: BSD-3-Clause */
/* lint_net.c - oddities of a switched network: number of cables between switches, missing
 * neighbours, slow or narrow cables, hosts and NICs compared with their group. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "topo/lint/lint_impl.h"
#include "topo/sources/net/net_view.h"

/* --- cables --- */

struct pair { /* two switches of different tiers that are cabled together */
    int low, high;
    int cable; /* index of one cable */
    int cables;
    int part, tier_low, tier_high;
};

struct cables {
    const struct net_view *v;
    struct pair *pair; /* sorted by ends */
    int pairs;
};

static const char *tier_word(char buf[24], int tier)
{
    static const char *const words[] = {"leaf", "spine", "core"};

    if (tier < 3)
        return words[tier];
    snprintf(buf, 24, "tier %d", tier);
    return buf;
}

static int by_ends(const void *x, const void *y)
{
    const struct pair *a = x, *b = y;

    if (a->low != b->low)
        return a->low < b->low ? -1 : 1;
    return (a->high > b->high) - (a->high < b->high);
}

static struct pair *pairs_of(const struct net_view *v, int *count)
{
    const struct net *n = v->net;
    struct pair *p = mem_calloc((size_t)n->cables + 1, sizeof(*p));
    int all = 0;

    *count = 0;
    for (int i = 0; i < n->cables; i++) {
        int a = n->cable[i].a, b = n->cable[i].b;
        int low = n->node[a].tier < n->node[b].tier ? a : b, high = low == a ? b : a;
        if (n->node[low].tier >= 0 && n->node[low].tier != n->node[high].tier)
            p[all++] =
                (struct pair){low, high, i, 1, v->part[a], n->node[low].tier, n->node[high].tier};
    }
    qsort(p, (size_t)all, sizeof(*p), by_ends);
    for (int i = 0; i < all; i++)
        if (*count && by_ends(&p[*count - 1], &p[i]) == 0)
            p[*count - 1].cables++;
        else
            p[(*count)++] = p[i];
    return p;
}

/* Report missing cables between two switches; names one that exists, "leaf-03[35] -
 * spine-02[32]". */
static void say_fewer(struct lint *l, const struct net_view *v, const struct pair *p, int mode,
                      int times, int pairs)
{
    const struct net_cable *c = &v->net->cable[p->cable];
    char low[24], high[24], a[NET_END], b[NET_END], what[2 * NET_END];

    snprintf(what, sizeof(what), "%.70s - %.70s", v->label[p->low], v->label[p->high]);
    net_end_text(a, v, p->low, c->a == p->low ? c->port_a : c->port_b);
    net_end_text(b, v, p->high, c->a == p->high ? c->port_a : c->port_b);
    lint_add(l, "cables", what,
             "%s: %d cable%s where %d of %d pairs of %s and %s have %d; there is %s to %s%s", what,
             p->cables, p->cables == 1 ? "" : "s", times, pairs, tier_word(low, p->tier_low),
             tier_word(high, p->tier_high), mode, a, b, p->cables > 1 ? " and others" : "");
}

static void say_few(struct lint *l, const struct lint_peer *odd, const struct lint_usual *u,
                    const void *of)
{
    const struct cables *x = of;

    say_fewer(l, x->v, &x->pair[odd->id], u->value, u->times, u->peers);
}

static void few_cables(struct lint *l, const struct cables *x)
{
    struct lint_peer *peer = mem_calloc((size_t)x->pairs + 1, sizeof(*peer));

    for (int i = 0; i < x->pairs; i++) {
        const struct pair *p = &x->pair[i];
        peer[i] = (struct lint_peer){{p->part, p->tier_low, p->tier_high}, p->cables, i};
    }
    lint_fewer(l, peer, x->pairs, say_few, x);
    free(peer);
}

/* --- neighbours --- */

/* Switches that a switch is cabled to, one tier up or down. */
struct steps {
    int *node, nodes;
};

static void free_steps(struct steps *s, int nodes)
{
    for (int i = 0; i < nodes; i++)
        free(s[i].node);
    free(s);
}

/* Report neighbours that a switch lacks and most of its peers have.  Peers share half of the
 * switch's neighbours.  A switch that lacks as many as it has, or more, is of another kind: that of
 * management or storage, which has a few uplinks on purpose.  It is said once, for information. */
static void missing_of(struct lint *l, const struct net_view *v, int x, const struct steps *up,
                       const struct steps *down, int *shared, int *have)
{
    int peers = 0, nodes = v->net->nodes;

    for (int i = 0; i < nodes; i++)
        shared[i] = have[i] = 0;
    for (int i = 0; i < up[x].nodes; i++)
        for (int k = 0; k < down[up[x].node[i]].nodes; k++)
            shared[down[up[x].node[i]].node[k]]++;
    for (int y = 0; y < nodes; y++) {
        if (y == x || 2 * shared[y] < up[x].nodes || !shared[y])
            continue;
        peers++;
        for (int i = 0; i < up[y].nodes; i++)
            have[up[y].node[i]]++;
    }
    for (int i = 0; i < up[x].nodes; i++)
        have[up[x].node[i]] = 0;
    int lacks = 0;
    for (int s = 0; s < nodes; s++)
        lacks += lint_most(have[s], peers);
    if (lacks >= up[x].nodes && lacks > 1) {
        lint_note(l, "uplink", v->label[x],
                  "%.80s: cables to %d switch%s above it, where %d others have %d: of another kind "
                  "(management, storage), or most of its uplinks are gone",
                  v->label[x], up[x].nodes, up[x].nodes == 1 ? "" : "es", peers,
                  up[x].nodes + lacks);
        return;
    }
    for (int s = 0; s < nodes; s++)
        if (lint_most(have[s], peers))
            lint_add(
                l, "uplink", v->label[x],
                "%.80s: no cable to %.80s, to which %d of %d switches with the same neighbours "
                "have one",
                v->label[x], v->label[s], have[s], peers);
}

static void missing(struct lint *l, const struct cables *x)
{
    int nodes = x->v->net->nodes;
    size_t room = (size_t)nodes + 1;
    struct steps *up = mem_calloc(room, sizeof(*up)), *down = mem_calloc(room, sizeof(*down));
    int *shared = mem_calloc(room, sizeof(*shared)), *have = mem_calloc(room, sizeof(*have));

    for (int i = 0; i < x->pairs; i++) {
        const struct pair *p = &x->pair[i];
        if (p->tier_high != p->tier_low + 1)
            continue;
        MEM_PUSH(up[p->low].node, up[p->low].nodes) = p->high;
        MEM_PUSH(down[p->high].node, down[p->high].nodes) = p->low;
    }
    for (int i = 0; i < nodes; i++)
        if (up[i].nodes)
            missing_of(l, x->v, i, up, down, shared, have);
    free_steps(up, nodes);
    free_steps(down, nodes);
    free(have);
    free(shared);
}

/* --- rates --- */

/* Stands for a tier: cables of NICs; peers are the cables on the same leaf. */
enum { ADAPTERS = -1 };

/* All cables with a known rate.  Aggregation engines are left out: they are inside their switch. */
static struct lint_peer *rates_of(const struct net_view *v, int *count)
{
    const struct net *n = v->net;
    struct lint_peer *p = mem_calloc((size_t)n->cables + 1, sizeof(*p));

    *count = 0;
    for (int i = 0; i < n->cables; i++) {
        const struct net_cable *c = &n->cable[i];
        const struct net_node *a = &n->node[c->a], *b = &n->node[c->b];
        bool hca = a->kind == NET_HCA || b->kind == NET_HCA;
        int leaf = a->kind == NET_SWITCH ? c->a : c->b;
        int low = a->tier < b->tier ? a->tier : b->tier, high = low == a->tier ? b->tier : a->tier;
        if (c->Bps <= 0 || (!hca && low < 0))
            continue;
        p[(*count)++] =
            (struct lint_peer){{v->part[c->a], hca ? ADAPTERS : low, hca ? leaf : high},
                               (int)(c->Bps * 8 / 1e6), /* Mb/s: equal rates are equal numbers */
                               i};
    }
    return p;
}

/* "leaf-03[17] - spine-01[3]" */
enum { CABLE = 2 * NET_END + 4 };
static char *cable_text(char buf[CABLE], const struct net_view *v, const struct net_cable *c)
{
    char a[NET_END], b[NET_END];

    snprintf(buf, CABLE, "%s - %s", net_end_text(a, v, c->a, c->port_a),
             net_end_text(b, v, c->b, c->port_b));
    return buf;
}

static void say_slow(struct lint *l, const struct lint_peer *odd, const struct lint_usual *u,
                     const void *of)
{
    const struct cables *x = of;
    const struct net_cable *c = &x->v->net->cable[odd->id], *most = &x->v->net->cable[u->id];
    bool narrow = c->width < most->width;
    char what[CABLE];

    lint_add(l, narrow ? "width" : "speed", cable_text(what, x->v, c),
             "%s: %dx%s where %d of %d %s have %dx%s", what, c->width, c->speed, u->times, u->peers,
             odd->kind[1] == ADAPTERS ? "adapters on that leaf" : "cables between these tiers",
             most->width, most->speed);
}

static void slow_cables(struct lint *l, const struct cables *x)
{
    int count;
    struct lint_peer *peer = rates_of(x->v, &count);

    lint_fewer(l, peer, count, say_slow, x);
    free(peer);
}

/* Report that all cables are SDR: old simulators replace unknown speeds by the first one. */
static void all_first(struct lint *l, const struct net_view *v)
{
    int told = 0;

    for (int i = 0; i < v->net->cables; i++) {
        if (v->net->cable[i].width && strcmp(v->net->cable[i].speed, "SDR") != 0)
            return;
        told += v->net->cable[i].width > 0;
    }
    if (told >= 3)
        lint_note(l, "speed", "all cables",
                  "all %d cables tell SDR, the first speed of InfiniBand: more likely somebody on "
                  "the way does not know the real one; speeds are not judged",
                  told);
}

static void ends_differ(struct lint *l, const struct net_view *v)
{
    for (int i = 0; i < v->net->cables; i++) {
        const struct net_cable *c = &v->net->cable[i];
        char what[CABLE];
        if (c->differ)
            lint_add(l, "ends", cable_text(what, v, c),
                     "%s: its ends tell different rates; the lower one is %dx%s", what, c->width,
                     c->speed);
    }
}

static void lint_cables(struct lint *l, const struct net_view *v)
{
    struct cables x = {.v = v};

    x.pair = pairs_of(v, &x.pairs);
    few_cables(l, &x);
    missing(l, &x);
    slow_cables(l, &x);
    ends_differ(l, v);
    all_first(l, v);
    free(x.pair);
}

/* --- hosts and their NICs --- */

/* Number of NICs of a host in this part of the network. */
static int ports_in(const struct net_view *v, int host, int part)
{
    int n = 0;

    for (int i = 0; i < v->host[host].ports; i++)
        n += v->part[v->port[v->host[host].first + i].leaf] == part;
    return n;
}

static bool sits_on(const struct net_view *v, int host, int leaf)
{
    for (int i = 0; i < v->host[host].ports; i++)
        if (v->port[v->host[host].first + i].leaf == leaf)
            return true;
    return false;
}

/* Number of NICs at each switch that carry no host's name. */
static int *strangers(const struct net_view *v)
{
    const struct net *n = v->net;
    bool *named = mem_calloc((size_t)n->nodes + 1, sizeof(*named));
    int *at = mem_calloc((size_t)n->nodes + 1, sizeof(*at));

    for (int i = 0; i < v->ports; i++)
        named[v->port[i].hca] = true;
    for (int i = 0; i < n->cables; i++) {
        int a = n->cable[i].a, b = n->cable[i].b;
        at[a] += n->node[b].kind == NET_HCA && !named[b];
        at[b] += n->node[a].kind == NET_HCA && !named[a];
    }
    free(named);
    return at;
}

/* Leaves of the group that a host is not attached to, as text; *others: each has an unnamed NIC. */
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

/* True if, numbers aside, the host's name equals that of a host with as many NICs as most. */
static bool same_family(const struct net_view *v, const struct net_group *g, int host, int mode)
{
    char *family = topo_host_family(v->host[host].name);
    bool found = false;

    for (int i = 0; i < g->hosts && !found; i++) {
        char *other = topo_host_family(v->host[g->host[i]].name);
        found = ports_in(v, g->host[i], g->part) >= mode && !strcmp(family, other);
        free(other);
    }
    free(family);
    return found;
}

/* True if a NIC of the host has a name that three hosts of the group have. */
static bool kin(const struct net_view *v, const struct net_group *g, int host)
{
    for (int i = 0; i < v->host[host].ports; i++) {
        const char *device = v->port[v->host[host].first + i].device;
        int n = 0;
        for (int h = 0; h < g->hosts; h++)
            for (int k = 0; k < v->host[g->host[h]].ports; k++)
                n += !strcmp(v->port[v->host[g->host[h]].first + k].device, device);
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
        value[i] = ports_in(v, g->host[i], g->part);
    int mode = lint_mode(value, g->hosts, &times);
    for (int i = 0; i < g->hosts && times >= 3 && 2 * times >= g->hosts; i++) {
        int has = ports_in(v, g->host[i], g->part);
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

/* --- NICs of the same name are on the same leaf --- */

static void say_leaf(struct lint *l, const struct lint_port *odd, int leaf, int times, int n,
                     const void *of)
{
    const struct net_view *v = of;
    const struct net_port *s = &v->port[odd->id];
    char what[128], at[NET_END];

    snprintf(what, sizeof(what), "%.64s %.31s", v->host[s->host].name, s->device);
    lint_add(l, "leaf", what, "%s: cabled to %s where %d of %d hosts have theirs on %.80s", what,
             net_end_text(at, v, s->leaf, s->leaf_port), times, n, v->label[leaf]);
}

static void other_leaf(struct lint *l, const struct net_view *v, const struct net_group *g)
{
    struct lint_port *s = NULL;
    int n = 0;

    for (int i = 0; i < g->hosts; i++)
        for (int k = 0; k < v->host[g->host[i]].ports; k++) {
            int id = v->host[g->host[i]].first + k;
            const struct net_port *x = &v->port[id];
            if (x->device[0] && v->part[x->leaf] == g->part)
                MEM_PUSH(s, n) = (struct lint_port){
                    .device = x->device, .port = x->port, .leaf = x->leaf, .id = id};
        }
    lint_ports(l, s, n, say_leaf, v);
    free(s);
}

static void say_few_leaves(struct lint *l, const struct lint_peer *odd, const struct lint_usual *u,
                           const void *of)
{
    const struct net_view *v = of;
    const struct net_group *g = &v->group[odd->id];

    lint_add(l, "leaves", g->name,
             "%.120s: %d lea%s for its %d hosts where %d of %d groups of hosts have %d", g->name,
             g->leaves, g->leaves == 1 ? "f" : "ves", g->hosts, u->times, u->peers, u->value);
}

/* Report groups with fewer leaves, except groups on spines, such as a manager's host. */
static void few_leaves(struct lint *l, const struct net_view *v)
{
    struct lint_peer *peer = NULL;
    int n = 0;

    for (int i = 0; i < v->groups; i++) {
        const struct net_group *g = &v->group[i];
        if (v->net->node[g->leaf[0]].tier == 0)
            MEM_PUSH(peer, n) = (struct lint_peer){{g->part, 0, 0}, g->leaves, i};
    }
    lint_fewer(l, peer, n, say_few_leaves, v);
    free(peer);
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
