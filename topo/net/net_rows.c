/* SPDX-License-Identifier: BSD-3-Clause */
/* net_rows.c - tables of topology.json: "ports" and "gpudirect", what sysfs, switches and others tell
 * of NICs beyond the table "nics" and how NICs reach the memory of GPUs; "net_nodes" and "cables".  A
 * cable is one row; what follows from others (tiers, bytes per second) is not written. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "topo/host/nic.h"
#include "topo/net/net.h"
#include "topo/topo_impl.h"

enum { NIC_PORT_COLUMNS = 17, GPUDIRECT_COLUMNS = 2, NET_NODE_COLUMNS = 6, CABLE_COLUMNS = 10 };
enum { NUMBER_MAX = 65535, LID_MAX = 65536, RATE_TEXT = 12 };

/* --- ports --- */

struct port_row {
    int nic;
    struct nic is;
};
#define PORT(cell, member, max) TOPO_COLUMN(#member, cell, struct port_row, is.member, max)
#define PORT_TEXT(member) TOPO_COLUMN_TEXT(#member, struct port_row, is.member)
#define PORT_WORD(member, words) TOPO_COLUMN_WORD(#member, struct port_row, is.member, words)

enum { LEAF_SOURCE = 9, RAIL_SOURCE = 14, PLANE_SOURCE, USE_SOURCE };
/* Files of 0.1.0 and before end there; to be read for one release. */
enum { COLUMNS_BEFORE = RAIL_SOURCE };
static const struct topo_column port_columns[NIC_PORT_COLUMNS] = {
    TOPO_COLUMN("nic", CELL_PARENT, struct port_row, nic, 0),
    PORT_TEXT(guid),
    PORT_TEXT(gid),
    PORT_TEXT(gid_type),
    PORT(CELL_INDEX_OR_NULL, gid_index, NUMBER_MAX),
    PORT_TEXT(board),
    PORT_TEXT(netdev),
    PORT_TEXT(leaf),
    PORT_TEXT(leaf_port),
    PORT_WORD(leaf_source, source_name),
    PORT(CELL_INDEX_OR_NULL, rail, NUMBER_MAX),
    PORT(CELL_INDEX_OR_NULL, plane, NUMBER_MAX),
    PORT_WORD(use, nic_use_name),
    PORT_TEXT(why),
    PORT_WORD(rail_source, source_name),
    PORT_WORD(plane_source, source_name),
    PORT_WORD(use_source, source_name),
};

static bool port_told(const struct nic *n)
{
    return n->gid_index >= 0 || n->rail >= 0 || n->plane >= 0 || n->use != NIC_UNKNOWN ||
           n->leaf_source != SOURCE_NONE || n->guid[0] || n->gid[0] || n->gid_type[0] ||
           n->board[0] || n->netdev[0] || n->leaf[0] || n->leaf_port[0] || n->why[0];
}

static json_t *port_row(struct topo_writer *w, int nic)
{
    const struct port_row r = {nic, w->t->nic[nic]};

    return port_told(&r.is) ? topo_row(port_columns, NIC_PORT_COLUMNS, &r) : NULL;
}

/* What a file of before does not say: a rail or plane followed from the leaf where one is known,
 * a use from what was told of the NIC. */
static void sources_before(struct nic *n)
{
    enum source place = n->leaf_source != SOURCE_NONE ? n->leaf_source : nic_teller(n);

    n->rail_source = n->rail < 0 ? SOURCE_NONE : place;
    n->plane_source = n->plane < 0 ? SOURCE_NONE : place;
    n->use_source = n->use == NIC_UNKNOWN ? SOURCE_NONE : nic_teller(n);
}

/* A fact and its source are both there, or neither. */
static int check_sources(const struct topo_table *b, const struct nic *n)
{
    const struct {
        int column;
        enum source source;
        bool told;
        const char *unfit;
    } facts[] = {{LEAF_SOURCE, n->leaf_source, n->leaf[0],
                  "which does not fit its leaf: null goes with \"none\""},
                 {RAIL_SOURCE, n->rail_source, n->rail >= 0,
                  "which does not fit its rail: null goes with \"none\""},
                 {PLANE_SOURCE, n->plane_source, n->plane >= 0,
                  "which does not fit its plane: null goes with \"none\""},
                 {USE_SOURCE, n->use_source, n->use != NIC_UNKNOWN,
                  "which does not fit its use: \"unknown\" goes with \"none\""}};

    for (size_t i = 0; i < sizeof(facts) / sizeof(*facts); i++)
        if ((facts[i].source != SOURCE_NONE) != facts[i].told)
            return cell_bad(b, facts[i].column, facts[i].unfit);
    return 0;
}

static int load_ports(struct topo *t, json_t *table, const char *path, struct err *err)
{
    bool before = json_array_size(json_object_get(table, "columns")) == COLUMNS_BEFORE;
    int columns = before ? COLUMNS_BEFORE : NIC_PORT_COLUMNS, rc = 0, last = -1, nic;
    struct topo_table b;

    if (topo_table_open(&b, path, "ports", table, port_columns, columns, err) < 0)
        return -1;
    while (topo_table_next(&b, &rc)) {
        if (cell_index(&b, 0, t->nics, false, &nic) < 0)
            return -1;
        if (nic <= last)
            return cell_bad(&b, 0, "but the rows count up");
        struct port_row r = {.is = t->nic[last = nic]};
        if (topo_row_load(&b, t->nics, &r) < 0)
            return -1;
        if (before)
            sources_before(&r.is);
        if (check_sources(&b, &r.is) < 0)
            return -1;
        t->nic[nic] = r.is;
    }
    return rc;
}

const struct topo_rows port_rows = {
    "ports",  port_columns, NIC_PORT_COLUMNS, false, offsetof(struct topo, nics),
    port_row, load_ports};

/* --- GPUDirect --- */

static const struct topo_column gpudirect_columns[GPUDIRECT_COLUMNS] = {
    {"host", CELL_PARENT, 0, 0, NULL}, {"gdr", CELL_OTHER, 0, 0, NULL}};

static json_t *gpudirect_row(struct topo_writer *w, int host)
{
    const char *gdr = w->t->host[host].gdr;

    return *gdr ? json_pack("[i, s]", host, gdr) : NULL;
}

static int load_gpudirect(struct topo *t, json_t *table, const char *path, struct err *err)
{
    struct topo_table b;
    int rc = 0, before = -1;

    if (topo_table_open(&b, path, "gpudirect", table, gpudirect_columns, GPUDIRECT_COLUMNS, err) <
        0)
        return -1;
    while (topo_table_next(&b, &rc)) {
        int host;
        if (cell_index(&b, 0, t->hosts, false, &host) < 0)
            return -1;
        if (host <= before)
            return cell_bad(&b, 0, "but the rows count up");
        before = host;
        if (cell_copy(&b, 1, false, t->host[host].gdr, sizeof(t->host->gdr)) < 0)
            return -1;
    }
    return rc;
}

const struct topo_rows gpudirect_rows = {
    "gpudirect",   gpudirect_columns, GPUDIRECT_COLUMNS, false, offsetof(struct topo, hosts),
    gpudirect_row, load_gpudirect};

/* --- switches, adapters and cables --- */

enum { NODE_HOST = 4, NODE_DEVICE };
/* "switch", "hca", "aggregation" (SHARP) ... */
static const char *const net_kind_name[NET_KINDS] = {"switch", "hca", "aggregation", "router"};

static const struct topo_column net_node_columns[NET_NODE_COLUMNS] = {
    TOPO_COLUMN_WORD("kind", struct net_node, kind, net_kind_name),
    TOPO_COLUMN("guid", CELL_GUID, struct net_node, guid, 0),
    TOPO_COLUMN_TEXT("name", struct net_node, name),
    TOPO_COLUMN("ports", CELL_INDEX, struct net_node, ports, NET_PORTS + 1),
    [NODE_HOST] = TOPO_COLUMN("host", CELL_PARENT_OR_NULL, struct net_node, host, 0),
    [NODE_DEVICE] = TOPO_COLUMN_TEXT("device", struct net_node, device),
};
enum { CABLE_A, CABLE_PORT_A, CABLE_B, CABLE_PORT_B, CABLE_RATE };
static const struct topo_column cable_columns[CABLE_COLUMNS] = {
    TOPO_COLUMN("a", CELL_PARENT, struct net_cable, a, 0),
    TOPO_COLUMN("port_a", CELL_INDEX, struct net_cable, port_a, NET_PORTS + 1),
    TOPO_COLUMN("b", CELL_PARENT, struct net_cable, b, 0),
    TOPO_COLUMN("port_b", CELL_INDEX, struct net_cable, port_b, NET_PORTS + 1),
    [CABLE_RATE] = {"rate", CELL_OTHER, 0, 0, NULL},
    TOPO_COLUMN("differ", CELL_FLAG, struct net_cable, differ, 0),
    TOPO_COLUMN("guid_a", CELL_GUID, struct net_cable, guid_a, 0),
    TOPO_COLUMN("guid_b", CELL_GUID, struct net_cable, guid_b, 0),
    TOPO_COLUMN("lid_a", CELL_COUNT, struct net_cable, lid_a, LID_MAX),
    TOPO_COLUMN("lid_b", CELL_COUNT, struct net_cable, lid_b, LID_MAX),
};

static json_t *net_node_row(struct topo_writer *w, int i)
{
    return topo_row(net_node_columns, NET_NODE_COLUMNS, &w->t->net->node[i]);
}

static json_t *cable_row(struct topo_writer *w, int i)
{
    const struct net_cable *c = &w->t->net->cable[i];
    json_t *row = topo_row(cable_columns, CABLE_COLUMNS, c);

    if (c->width)
        json_array_set_new(row, CABLE_RATE, json_sprintf("%dx%s", c->width, c->speed));
    return row;
}

const struct topo_rows net_node_rows = {
    "net_nodes", net_node_columns, NET_NODE_COLUMNS, true, 0, net_node_row, NULL};
const struct topo_rows cable_rows = {"cables", cable_columns, CABLE_COLUMNS, true,
                                     0,        cable_row,     NULL};

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

    if (topo_row_load(b, t->hosts, &n) < 0)
        return -1;
    if (n.kind != NET_HCA && n.host >= 0)
        return cell_bad(b, NODE_HOST, "which only an hca has");
    if (n.host < 0 && *n.device)
        return cell_bad(b, NODE_DEVICE, "without a host");
    MEM_PUSH(t->net->node, t->net->nodes) = n;
    return 0;
}

static int check_port(const struct topo_table *b, int col, const struct net_node *n)
{
    int port;

    if (cell_index(b, col, n->ports + 1, false, &port) < 0)
        return -1;
    return port ? 0 : cell_bad(b, col, "but ports count from 1");
}

static int load_cable(struct net *n, const struct topo_table *b)
{
    struct net_cable c = {0};

    if (topo_row_load(b, n->nodes, &c) < 0 || check_port(b, CABLE_PORT_A, &n->node[c.a]) < 0 ||
        check_port(b, CABLE_PORT_B, &n->node[c.b]) < 0 || cell_rate(b, CABLE_RATE, &c) < 0)
        return -1;
    if (c.a > c.b || (c.a == c.b && c.port_a >= c.port_b))
        return cell_bad(b, CABLE_A, "not before the other end of the cable");
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
    while (topo_table_next(&b, &rc))
        rc = load_node(t, &b);
    if (rc < 0)
        return -1;
    if (net_twins(t->net, &x, &y))
        return err_data(err, "%s: net_nodes.rows[%d]: the GUID of rows[%d] again", path, y, x);
    if (topo_table_open(&b, path, "cables", cables, cable_columns, CABLE_COLUMNS, err) < 0)
        return -1;
    while (topo_table_next(&b, &rc))
        rc = load_cable(t->net, &b);
    if (rc < 0)
        return -1;
    if (net_clash(t->net, &x, &y))
        return err_data(err, "%s: cables.rows[%d]: a port of rows[%d] again", path, y, x);
    net_tiers(t->net);
    return 0;
}
