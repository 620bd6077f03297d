/* SPDX-License-Identifier: BSD-3-Clause */
/* ibnet_join.c - each cable is there twice in ibnetdiscover's text, once from either end. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "topo/net/ibnet_text.h"

static int by_port(const void *x, const void *y)
{
    const struct ibnet_end *a = x, *b = y;

    if (a->node != b->node)
        return a->node < b->node ? -1 : 1;
    if (a->port != b->port)
        return a->port < b->port ? -1 : 1;
    return (a->line > b->line) - (a->line < b->line);
}

static const char *id_of(const struct ibnet_text *x, int peer)
{
    return x->ids.group[LEVEL_LEAF].name[peer];
}

/* What each line says must be possible by itself. */
static int check_end(const struct ibnet_text *x, const struct ibnet_end *e)
{
    int peer = x->node_of[e->peer] - 1;

    if (peer < 0)
        return err_data(x->err, "%s:%d: \"%s\" has no record of its own: is the file cut short?",
                        x->path, e->line, id_of(x, e->peer));
    if (e->peer_port > x->net->node[peer].ports)
        return err_data(x->err, "%s:%d: port %d of \"%s\", which has %d", x->path, e->line,
                        e->peer_port, id_of(x, e->peer), x->net->node[peer].ports);
    if (peer == e->node && e->peer_port == e->port)
        return err_data(x->err, "%s:%d: port %d is cabled to itself", x->path, e->line, e->port);
    if (e > x->end && e[-1].node == e->node && e[-1].port == e->port)
        return err_data(x->err, "%s:%d: port %d is there twice, first in line %d", x->path, e->line,
                        e->port, e[-1].line);
    return 0;
}

static struct ibnet_end *other_end(const struct ibnet_text *x, const struct ibnet_end *e)
{
    int low = 0, high = x->ends - 1, node = x->node_of[e->peer] - 1;

    while (low <= high) {
        int mid = (low + high) / 2;
        struct ibnet_end *m = &x->end[mid];
        if (m->node == node && m->port == e->peer_port)
            return m;
        if (m->node < node || (m->node == node && m->port < e->peer_port))
            low = mid + 1;
        else
            high = mid - 1;
    }
    return NULL;
}

static int agree(const struct ibnet_text *x, const struct ibnet_end *e, const struct ibnet_end *o)
{
    const struct ibnet_end *first = e->line < o->line ? e : o, *last = first == e ? o : e;

    if (x->node_of[o->peer] - 1 != e->node || o->peer_port != e->port)
        return err_data(x->err,
                        "%s:%d: the cable of line %d ends here, but this line leads to port %d of "
                        "\"%s\"",
                        x->path, last->line, first->line, last->peer_port, id_of(x, last->peer));
    if ((e->guid && o->peer_guid && e->guid != o->peer_guid) ||
        (o->guid && e->peer_guid && o->guid != e->peer_guid))
        return err_data(x->err, "%s:%d: the port GUIDs differ from those in line %d", x->path,
                        last->line, first->line);
    return 0;
}

/* Of the two rates that the ends tell the lower one; one may be silent. */
static void set_rate(struct net_cable *c, const struct ibnet_end *e, const struct ibnet_end *o)
{
    const struct ibnet_end *take = e;

    if (o && o->width && e->width) {
        double mine = net_rate(e->width, e->speed), theirs = net_rate(o->width, o->speed);
        c->differ = e->width != o->width || strcmp(e->speed, o->speed) != 0;
        if (c->differ && theirs < mine)
            take = o;
    } else if (o && o->width) {
        take = o;
    }
    c->width = take->width;
    memcpy(c->speed, take->speed, sizeof(c->speed));
}

static void add_cable(struct ibnet_text *x, const struct ibnet_end *e, const struct ibnet_end *o)
{
    struct net_cable c = {.a = e->node,
                          .port_a = e->port,
                          .b = x->node_of[e->peer] - 1,
                          .port_b = e->peer_port,
                          .guid_a = e->guid ? e->guid
                                    : o     ? o->peer_guid
                                            : 0,
                          .guid_b = e->peer_guid ? e->peer_guid
                                    : o          ? o->guid
                                                 : 0,
                          .lid_a = e->lid ? e->lid
                                   : o    ? o->peer_lid
                                          : 0,
                          .lid_b = e->peer_lid ? e->peer_lid
                                   : o         ? o->lid
                                               : 0};

    set_rate(&c, e, o);
    net_add_cable(x->net, c);
}

int ibnet_join(struct ibnet_text *x)
{
    int a, b;

    if (x->ends)
        qsort(x->end, (size_t)x->ends, sizeof(*x->end), by_port);
    for (int i = 0; i < x->ends; i++)
        if (check_end(x, &x->end[i]) < 0)
            return -1;
    for (int i = 0; i < x->ends; i++) {
        const struct ibnet_end *e = &x->end[i], *o = other_end(x, e);
        if (o && agree(x, e, o) < 0)
            return -1;
        if (!o || e < o)
            add_cable(x, e, o);
    }
    if (net_clash(x->net, &a, &b)) {
        const struct net_cable *c = &x->net->cable[a], *d = &x->net->cable[b];
        bool at_a =
            (c->a == d->a && c->port_a == d->port_a) || (c->a == d->b && c->port_a == d->port_b);
        int node = at_a ? c->a : c->b, port = at_a ? c->port_a : c->port_b;
        return err_data(x->err, "%s:%d: two cables lead to port %d of this node", x->path,
                        x->node_line[node], port);
    }
    return 0;
}
