/* SPDX-License-Identifier: BSD-3-Clause */
/* net_rows.c - the tables "net_nodes" and "cables" of topology.json.  A cable is one row; what
 * follows from others (tiers, bytes per second) is not written. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "topo/net/net.h"
#include "topo/topo_impl.h"

enum { GUID_TEXT = 18, LID_MAX = 65536, RATE_TEXT = 12 };

const char *const net_node_columns[NET_NODE_COLUMNS] = {"kind",  "guid", "name",
                                                        "ports", "host", "device"};
const char *const cable_columns[CABLE_COLUMNS] = {"a",      "port_a", "b",      "port_b", "rate",
                                                  "differ", "guid_a", "guid_b", "lid_a",  "lid_b"};

static json_t *guid_json(uint64_t guid)
{
    return guid ? json_sprintf("0x%016" PRIx64, guid) : json_null();
}

static json_t *text_json(const char *text)
{
    return *text ? json_string(text) : json_null();
}

static json_t *lid_json(int lid)
{
    return lid ? json_integer(lid) : json_null();
}

json_t *net_node_row(const struct net_node *n)
{
    return json_pack("[s, o, o, i, o, o]", net_kind_name[n->kind], guid_json(n->guid),
                     text_json(n->name), n->ports,
                     n->host < 0 ? json_null() : json_integer(n->host), text_json(n->device));
}

json_t *cable_row(const struct net_cable *c)
{
    return json_pack("[i, i, i, i, o, b, o, o, o, o]", c->a, c->port_a, c->b, c->port_b,
                     c->width ? json_sprintf("%dx%s", c->width, c->speed) : json_null(), c->differ,
                     guid_json(c->guid_a), guid_json(c->guid_b), lid_json(c->lid_a),
                     lid_json(c->lid_b));
}

static int cell_guid(const struct topo_table *b, int col, uint64_t *out)
{
    const char *text;

    *out = 0;
    if (cell_text(b, col, GUID_TEXT, true, &text) < 0)
        return -1;
    if (!text)
        return 0;
    if (strlen(text) != GUID_TEXT || strncmp(text, "0x", 2) != 0 ||
        strspn(text + 2, "0123456789abcdef") != GUID_TEXT - 2)
        return cell_bad(b, col, "not a GUID of 16 hexadecimal digits behind 0x");
    *out = strtoull(text, NULL, 16);
    return *out ? 0 : cell_bad(b, col, "which no GUID is");
}

static int cell_lid(const struct topo_table *b, int col, int *out)
{
    if (cell_index(b, col, LID_MAX, true, out) < 0)
        return -1;
    *out = *out < 0 ? 0 : *out;
    return 0;
}

/* "4xNDR" */
static int cell_rate(const struct topo_table *b, int col, struct net_cable *c)
{
    const char *text;
    char *speed;

    if (cell_text(b, col, RATE_TEXT, true, &text) < 0)
        return -1;
    if (!text)
        return 0;
    c->width = (int)strtol(text, &speed, 10);
    if (!net_width(c->width) || *speed != 'x' || strlen(speed) < 2 ||
        strlen(speed) > sizeof(c->speed) ||
        strspn(speed + 1, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") != strlen(speed) - 1)
        return cell_bad(b, col, "not a width and speed as \"4xNDR\"");
    snprintf(c->speed, sizeof(c->speed), "%s", speed + 1);
    return 0;
}

static int load_node(struct topo *t, const struct topo_table *b)
{
    struct net_node n = {.tier = -1};
    int kind;

    if (cell_name(b, 0, net_kind_name, NET_KINDS, &kind) < 0 || cell_guid(b, 1, &n.guid) < 0 ||
        cell_copy(b, 2, true, n.name, sizeof(n.name)) < 0 ||
        cell_index(b, 3, NET_PORTS + 1, false, &n.ports) < 0 ||
        cell_index(b, 4, t->hosts, true, &n.host) < 0 ||
        cell_copy(b, 5, true, n.device, sizeof(n.device)) < 0)
        return -1;
    n.kind = (enum net_kind)kind;
    if (n.kind != NET_HCA && n.host >= 0)
        return cell_bad(b, 4, "which only an hca has");
    if (n.host < 0 && *n.device)
        return cell_bad(b, 5, "without a host");
    MEM_PUSH(t->net->node, t->net->nodes) = n;
    return 0;
}

static int cell_port(const struct topo_table *b, int col, const struct net_node *n, int *out)
{
    if (cell_index(b, col, n->ports + 1, false, out) < 0)
        return -1;
    return *out ? 0 : cell_bad(b, col, "but ports count from 1");
}

static int load_cable(struct net *n, const struct topo_table *b)
{
    struct net_cable c = {0};

    if (cell_index(b, 0, n->nodes, false, &c.a) < 0 ||
        cell_port(b, 1, &n->node[c.a], &c.port_a) < 0 ||
        cell_index(b, 2, n->nodes, false, &c.b) < 0 ||
        cell_port(b, 3, &n->node[c.b], &c.port_b) < 0 || cell_rate(b, 4, &c) < 0 ||
        cell_flag(b, 5, &c.differ) < 0 || cell_guid(b, 6, &c.guid_a) < 0 ||
        cell_guid(b, 7, &c.guid_b) < 0 || cell_lid(b, 8, &c.lid_a) < 0 ||
        cell_lid(b, 9, &c.lid_b) < 0)
        return -1;
    if (c.a > c.b || (c.a == c.b && c.port_a >= c.port_b))
        return cell_bad(b, 0, "not before the other end of the cable");
    net_add_cable(n, c);
    return 0;
}

int net_rows_load(struct topo *t, json_t *nodes, json_t *cables, const char *path, struct err *err)
{
    struct topo_table b;
    int rc = 0, x, y;

    if (!nodes || !cables)
        return nodes || cables
                   ? err_data(err, "%s: \"%s\" without \"%s\"", path,
                              nodes ? "net_nodes" : "cables", nodes ? "cables" : "net_nodes")
                   : 0;
    t->net = mem_calloc(1, sizeof(*t->net));
    if (topo_table_open(&b, path, "net_nodes", nodes, net_node_columns, NET_NODE_COLUMNS, err) < 0)
        return -1;
    while (topo_table_next(&b, NET_NODE_COLUMNS, &rc))
        rc = load_node(t, &b);
    if (rc < 0)
        return -1;
    if (net_twins(t->net, &x, &y))
        return err_data(err, "%s: net_nodes.rows[%d]: the GUID of rows[%d] again", path, y, x);
    if (topo_table_open(&b, path, "cables", cables, cable_columns, CABLE_COLUMNS, err) < 0)
        return -1;
    while (topo_table_next(&b, CABLE_COLUMNS, &rc))
        rc = load_cable(t->net, &b);
    if (rc < 0)
        return -1;
    if (net_clash(t->net, &x, &y))
        return err_data(err, "%s: cables.rows[%d]: a port of rows[%d] again", path, y, x);
    net_tiers(t->net);
    return 0;
}
