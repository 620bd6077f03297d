/* SPDX-License-Identifier: BSD-3-Clause */
/* explain_net.c - from one NIC to another through the switches. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"
#include "topo/host/nic.h"
#include "topo/net/net.h"
#include "verdict/explain_parts.h"

/* The switch and port at the other end of a NIC, as names. */
struct seat {
    char leaf[65], port[32];
};

static struct seat seat_of(const struct explain *e, const struct topo *t, int nic, int endpoint)
{
    struct seat s = {"", ""};
    int leaf = t->endpoint[endpoint].place.at[LEVEL_LEAF];

    (void)e;
    if (nic >= 0 && t->nic[nic].leaf[0]) {
        memcpy(s.leaf, t->nic[nic].leaf, sizeof(s.leaf));
        memcpy(s.port, t->nic[nic].leaf_port, sizeof(s.port));
    } else if (leaf >= 0) {
        snprintf(s.leaf, sizeof(s.leaf), "%.64s", t->group[LEVEL_LEAF].name[leaf]);
    }
    return s;
}

static int find_switch(const struct net *n, const char *name)
{
    int at = -1;

    for (int i = 0; i < n->nodes; i++)
        if (n->node[i].kind == NET_SWITCH && !strcmp(n->node[i].name, name)) {
            if (at >= 0)
                return -1; /* two of that name */
            at = i;
        }
    return at;
}

/* Cables between two switches: how many, and their rate together. */
static int cables(const struct net *n, int a, int b, double *Bps, const char **speed)
{
    int count = 0;

    for (int i = 0; i < n->cables; i++) {
        const struct net_cable *c = &n->cable[i];
        if ((c->a == a && c->b == b) || (c->a == b && c->b == a)) {
            count++;
            *Bps += c->Bps;
            *speed = c->speed;
        }
    }
    return count;
}

/* The switches that both leaves are cabled to. */
static bool by_spines(struct explain *e, const struct net *n, int x, int y)
{
    double up = 0, down = 0;
    int spines = 0, ups = 0, downs = 0;
    const char *speed = "", *other = "", *first = "";

    for (int s = 0; s < n->nodes; s++) {
        double u = 0, d = 0;
        if (s == x || s == y || n->node[s].kind != NET_SWITCH)
            continue;
        int cu = cables(n, x, s, &u, &speed), cd = cu ? cables(n, y, s, &d, &other) : 0;
        if (!cd)
            continue;
        first = spines++ ? first : n->node[s].name;
        ups += cu;
        downs += cd;
        up += u;
        down += d;
    }
    if (!spines)
        return false;
    char *basis =
        mem_printf("%d cables of %s up, %d of %s down, shared by the whole leaf", ups,
                   *speed ? speed : "unknown speed", downs, *other ? other : "unknown speed");
    explain_hop(e, up < down ? up : down, basis, "%s%s", first,
                spines > 1 ? " or another spine" : "");
    free(basis);
    return true;
}

static void say_leaf(struct explain *e, const struct seat *s)
{
    explain_hop(e, 0, NULL, "leaf %s%s%s", s->leaf, *s->port ? " port " : "", s->port);
}

static void cross(struct explain *e, const struct topo *t, const struct seat *a,
                  const struct seat *b)
{
    int x = t->net ? find_switch(t->net, a->leaf) : -1,
        y = t->net ? find_switch(t->net, b->leaf) : -1;

    say_leaf(e, a);
    if (x < 0 || y < 0 || !by_spines(e, t->net, x, y)) {
        int sa = t->endpoint[e->src].place.at[LEVEL_SPINE],
            sb = t->endpoint[e->dst].place.at[LEVEL_SPINE];
        explain_hop(e, 0, NULL, "spines%s%s%s",
                    sa < 0 || sb < 0 ? ""
                    : sa == sb       ? " of "
                                     : " and what joins different ones",
                    sa >= 0 && sa == sb ? t->group[LEVEL_SPINE].name[sa] : "", "");
        explain_say(&e->unseen,
                    t->net ? "no second-tier switch that joins both leaves is in the network's text"
                           : "cables between switches: no network was read (--ibnet of discover)");
    }
    say_leaf(e, b);
}

void explain_net(struct explain *e, const struct topo *t, int from_nic, int to_nic)
{
    struct seat a = seat_of(e, t, from_nic, e->src), b = seat_of(e, t, to_nic, e->dst);

    if (!*a.leaf || !*b.leaf) {
        explain_hop(e, 0, NULL, "the network between them");
        explain_say(&e->unseen, "switches: no leaf is known of %s",
                    *a.leaf   ? "the second"
                    : *b.leaf ? "the first"
                              : "either");
    } else if (!strcmp(a.leaf, b.leaf)) {
        say_leaf(e, &a);
    } else {
        cross(e, t, &a, &b);
    }
}
