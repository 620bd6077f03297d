/* SPDX-License-Identifier: BSD-3-Clause */
/* net_rows.c - tables of topology.json about networks: "ports", "nic_versions" and "gpudirect"
 * (facts about NICs beyond the table "nics", and access of NICs to GPU memory), "net_nodes" and
 * "cables".  A cable is one row; derived values (tiers, bytes per second) are not written. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "topo/net.h"
#include "topo/nic.h"
#include "topo/topo_impl.h"

enum { LID_MAX = 65536, RATE_TEXT = 12 };

/* --- ports --- */

struct port_row {
    int nic;
    struct nic is;
};
#define PORT(cell, member, max) TOPO_COLUMN(#member, cell, struct port_row, is.member, max)
#define PORT_TEXT(member) TOPO_COLUMN_TEXT(#member, struct port_row, is.member)
#define PORT_WORD(member, words) TOPO_COLUMN_WORD(#member, struct port_row, is.member, words)

enum { LEAF_SOURCE = 9, RAIL_SOURCE = 14, PLANE_SOURCE, USE_SOURCE };
static const struct topo_column port_columns[] = {
    TOPO_COLUMN("nic", CELL_PARENT, struct port_row, nic, OF_NIC),
    PORT_TEXT(guid),
    PORT_TEXT(gid),
    PORT_TEXT(gid_type),
    PORT(CELL_INDEX_OR_NULL, gid_index, TOPO_NUMBER_MAX),
    PORT_TEXT(board),
    PORT_TEXT(netdev),
    PORT_TEXT(leaf),
    PORT_TEXT(leaf_port),
    PORT_WORD(leaf_source, source_name),
    PORT(CELL_INDEX_OR_NULL, rail, TOPO_NUMBER_MAX),
    PORT(CELL_INDEX_OR_NULL, plane, TOPO_NUMBER_MAX),
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

static bool port_row(struct topo_writer *w, int nic)
{
    const struct port_row r = {nic, w->t->nic[nic]};

    return port_told(&r.is) && topo_writer_row(w, port_columns, port_rows.columns, &r);
}

/* Sources that older files lack: a rail or plane came with the leaf where one is known, a use from
 * the source of the NIC. */
static void sources_before(struct nic *n)
{
    enum source place = n->leaf_source != SOURCE_NONE ? n->leaf_source : nic_teller(n);

    n->rail_source = n->rail < 0 ? SOURCE_NONE : place;
    n->plane_source = n->plane < 0 ? SOURCE_NONE : place;
    n->use_source = n->use == NIC_UNKNOWN ? SOURCE_NONE : nic_teller(n);
}

/* Check that a fact and its source are both present, or neither. */
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

/* Read a row; facts of the NIC that it does not contain keep the values read before. */
static int read_row(struct port_row *row, struct topo_reader *r, struct topo_table *b)
{
    if (cell_index(b, 0, r->t->nics, false, &row->nic) < 0 ||
        topo_table_rises(b, row->nic, "but the rows count up") < 0)
        return -1;
    row->is = r->t->nic[row->nic];
    return topo_row_load(b, r->rows, row);
}

static int load_port(struct topo_reader *r, struct topo_table *b)
{
    struct port_row row;

    if (read_row(&row, r, b) < 0)
        return -1;
    if (b->columns == port_rows.before)
        sources_before(&row.is);
    if (check_sources(b, &row.is) < 0)
        return -1;
    r->t->nic[row.nic] = row.is;
    return 0;
}

const struct topo_rows port_rows = {
    TOPO_ROWS("ports", port_columns, struct topo, nic, nics),
    .before = RAIL_SOURCE,
    .row = port_row,
    .load = load_port,
};

/* --- versions --- */

static const struct topo_column version_columns[] = {
    TOPO_COLUMN("nic", CELL_PARENT, struct port_row, nic, OF_NIC),
    PORT_TEXT(firmware),
    PORT_TEXT(driver),
};

static bool version_row(struct topo_writer *w, int nic)
{
    const struct port_row r = {nic, w->t->nic[nic]};

    return (*r.is.firmware || *r.is.driver) &&
           topo_writer_row(w, version_columns, nic_version_rows.columns, &r);
}

static int load_version(struct topo_reader *r, struct topo_table *b)
{
    struct port_row row;

    if (read_row(&row, r, b) < 0)
        return -1;
    r->t->nic[row.nic] = row.is;
    return 0;
}

const struct topo_rows nic_version_rows = {
    TOPO_ROWS("nic_versions", version_columns, struct topo, nic, nics),
    .row = version_row,
    .load = load_version,
};

/* --- GPUDirect --- */

struct gpudirect_row {
    int host;
    char gdr[sizeof(((struct host *)0)->gdr)];
};
static const struct topo_column gpudirect_columns[] = {
    TOPO_COLUMN("host", CELL_PARENT, struct gpudirect_row, host, LEVEL_HOST),
    TOPO_COLUMN("gdr", CELL_NAME, struct gpudirect_row, gdr, sizeof(((struct host *)0)->gdr))};

static bool gpudirect_row(struct topo_writer *w, int host)
{
    struct gpudirect_row row = {.host = host};

    memcpy(row.gdr, w->t->host[host].gdr, sizeof(row.gdr));
    return *row.gdr && topo_writer_row(w, gpudirect_columns, gpudirect_rows.columns, &row);
}

static int load_gpudirect(struct topo_reader *r, struct topo_table *b)
{
    struct gpudirect_row row;

    if (topo_row_load(b, r->rows, &row) < 0 ||
        topo_table_rises(b, row.host, "but the rows count up") < 0)
        return -1;
    memcpy(r->t->host[row.host].gdr, row.gdr, sizeof(row.gdr));
    return 0;
}

const struct topo_rows gpudirect_rows = {
    TOPO_ROWS("gpudirect", gpudirect_columns, struct topo, host, hosts),
    .row = gpudirect_row,
    .load = load_gpudirect,
};

/* --- switches, HCAs and cables --- */

enum { NODE_HOST = 4, NODE_DEVICE };
/* "switch", "hca", "aggregation" (SHARP) ... */
static const char *const net_kind_name[NET_KINDS] = {"switch", "hca", "aggregation", "router"};

static const struct topo_column net_node_columns[] = {
    TOPO_COLUMN_WORD("kind", struct net_node, kind, net_kind_name),
    TOPO_COLUMN("guid", CELL_GUID, struct net_node, guid, 0),
    TOPO_COLUMN_TEXT("name", struct net_node, name),
    TOPO_COLUMN("ports", CELL_INDEX, struct net_node, ports, NET_PORTS + 1),
    [NODE_HOST] = TOPO_COLUMN("host", CELL_PARENT_OR_NULL, struct net_node, host, LEVEL_HOST),
    [NODE_DEVICE] = TOPO_COLUMN_TEXT("device", struct net_node, device),
};

static int load_node(struct topo_reader *r, struct topo_table *b)
{
    struct net_node n = {.tier = -1};

    if (topo_row_load(b, r->rows, &n) < 0)
        return -1;
    if (n.kind != NET_HCA && n.host >= 0)
        return cell_bad(b, NODE_HOST, "which only an hca has");
    if (n.host < 0 && *n.device)
        return cell_bad(b, NODE_DEVICE, "without a host");
    MEM_PUSH(r->t->net->node, r->t->net->nodes) = n;
    return 0;
}

static int end_nodes(struct topo_reader *r, struct topo_table *b)
{
    int x, y;

    return net_twins(r->t->net, &x, &y)
               ? err_data(b->err, "%s: net_nodes.rows[%d]: the GUID of rows[%d] again", b->path, y,
                          x)
               : 0;
}

const struct topo_rows net_node_rows = {
    TOPO_ROWS("net_nodes", net_node_columns, struct net, node, nodes),
    .always = true,
    .net = true,
    .load = load_node,
    .end = end_nodes,
};

/* "4xNDR" */
static json_t *rate_json(const void *cable)
{
    const struct net_cable *c = cable;

    return c->width ? json_sprintf("%dx%s", c->width, c->speed) : NULL;
}

static int load_rate(const struct topo_table *b, int col, void *cable)
{
    struct net_cable *c = cable;
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

#define CABLE(member, cell, max) TOPO_COLUMN(#member, cell, struct net_cable, member, max)
enum { CABLE_A, CABLE_PORT_A, CABLE_B, CABLE_PORT_B };
static const struct topo_column cable_columns[] = {
    [CABLE_A] = CABLE(a, CELL_PARENT, OF_NODE),
    [CABLE_PORT_A] = CABLE(port_a, CELL_INDEX, NET_PORTS + 1),
    [CABLE_B] = CABLE(b, CELL_PARENT, OF_NODE),
    [CABLE_PORT_B] = CABLE(port_b, CELL_INDEX, NET_PORTS + 1),
    TOPO_COLUMN_OTHER("rate", rate_json, load_rate),
    CABLE(differ, CELL_FLAG, 0),
    CABLE(guid_a, CELL_GUID, 0),
    CABLE(guid_b, CELL_GUID, 0),
    CABLE(lid_a, CELL_COUNT, LID_MAX),
    CABLE(lid_b, CELL_COUNT, LID_MAX),
};

static int check_port(const struct topo_table *b, int col, const struct net_node *n)
{
    int port;

    if (cell_index(b, col, n->ports + 1, false, &port) < 0)
        return -1;
    return port ? 0 : cell_bad(b, col, "but ports count from 1");
}

static int load_cable(struct topo_reader *r, struct topo_table *b)
{
    struct net *n = r->t->net;
    struct net_cable c = {0};

    if (topo_row_load(b, r->rows, &c) < 0 || check_port(b, CABLE_PORT_A, &n->node[c.a]) < 0 ||
        check_port(b, CABLE_PORT_B, &n->node[c.b]) < 0)
        return -1;
    if (c.a > c.b || (c.a == c.b && c.port_a >= c.port_b))
        return cell_bad(b, CABLE_A, "not before the other end of the cable");
    net_add_cable(n, c);
    return 0;
}

static int end_cables(struct topo_reader *r, struct topo_table *b)
{
    int x, y;

    if (net_clash(r->t->net, &x, &y))
        return err_data(b->err, "%s: cables.rows[%d]: a port of rows[%d] again", b->path, y, x);
    net_tiers(r->t->net);
    return 0;
}

const struct topo_rows cable_rows = {
    TOPO_ROWS("cables", cable_columns, struct net, cable, cables),
    .always = true,
    .net = true,
    .load = load_cable,
    .end = end_cables,
};
