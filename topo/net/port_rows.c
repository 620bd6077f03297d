/* SPDX-License-Identifier: BSD-3-Clause */
/* port_rows.c - the tables "ports" and "gpudirect" of topology.json: what sysfs, switches and
 * others tell of NICs beyond the table "nics", and how NICs reach the memory of GPUs. */
#include <stdio.h>
#include <string.h>

#include "topo/host/nic.h"
#include "topo/topo_impl.h"

enum { NUMBER_MAX = 65535 };

const char *const port_columns[NIC_PORT_COLUMNS] = {
    "nic",    "guid", "gid",         "gid_type",     "gid_index", "board",
    "netdev", "leaf", "leaf_port",   "leaf_source",  "rail",      "plane",
    "use",    "why",  "rail_source", "plane_source", "use_source"};
/* Files of 0.1.0 and before end there; to be read for one release. */
enum { COLUMNS_BEFORE = 14 };
const char *const gpudirect_columns[GPUDIRECT_COLUMNS] = {"host", "gdr"};

/* The texts of a row, by column. */
struct text_cell {
    int column;
    char *text;
    size_t size;
};
enum { TEXTS = 8 };

static void text_cells(struct text_cell c[TEXTS], struct nic *n)
{
    const struct text_cell all[TEXTS] = {
        {1, n->guid, sizeof(n->guid)},           {2, n->gid, sizeof(n->gid)},
        {3, n->gid_type, sizeof(n->gid_type)},   {5, n->board, sizeof(n->board)},
        {6, n->netdev, sizeof(n->netdev)},       {7, n->leaf, sizeof(n->leaf)},
        {8, n->leaf_port, sizeof(n->leaf_port)}, {13, n->why, sizeof(n->why)}};

    memcpy(c, all, sizeof(all));
}

/* The facts of a row whose source it names, by column. */
struct source_cell {
    int column;
    enum source *source;
    bool told;
    const char *unfit;
};
enum { SOURCES = 4 };

static void source_cells(struct source_cell c[SOURCES], struct nic *n)
{
    const struct source_cell all[SOURCES] = {
        {9, &n->leaf_source, n->leaf[0], "which does not fit its leaf: null goes with \"none\""},
        {14, &n->rail_source, n->rail >= 0, "which does not fit its rail: null goes with \"none\""},
        {15, &n->plane_source, n->plane >= 0,
         "which does not fit its plane: null goes with \"none\""},
        {16, &n->use_source, n->use != NIC_UNKNOWN,
         "which does not fit its use: \"unknown\" goes with \"none\""}};

    memcpy(c, all, sizeof(all));
}

bool port_told(const struct nic *n)
{
    struct nic copy = *n;
    struct text_cell c[TEXTS];
    bool told = n->gid_index >= 0 || n->rail >= 0 || n->plane >= 0 || n->use != NIC_UNKNOWN ||
                n->leaf_source != SOURCE_NONE;

    text_cells(c, &copy);
    for (int i = 0; i < TEXTS; i++)
        told = told || c[i].text[0];
    return told;
}

static json_t *number_json(int number)
{
    return number < 0 ? json_null() : json_integer(number);
}

json_t *port_row(const struct topo *t, int nic)
{
    struct nic n = t->nic[nic];
    struct text_cell c[TEXTS];
    struct source_cell from[SOURCES];
    json_t *row = json_array();

    for (int i = 0; i < NIC_PORT_COLUMNS; i++)
        json_array_append_new(row, json_null());
    text_cells(c, &n);
    for (int i = 0; i < TEXTS; i++)
        if (c[i].text[0])
            json_array_set_new(row, (size_t)c[i].column, json_string(c[i].text));
    json_array_set_new(row, 0, json_integer(nic));
    json_array_set_new(row, 4, number_json(n.gid_index));
    source_cells(from, &n);
    for (int i = 0; i < SOURCES; i++)
        json_array_set_new(row, (size_t)from[i].column, json_string(source_name[*from[i].source]));
    json_array_set_new(row, 10, number_json(n.rail));
    json_array_set_new(row, 11, number_json(n.plane));
    json_array_set_new(row, 12, json_string(nic_use_name[n.use]));
    return row;
}

json_t *gpudirect_row(const struct topo *t, int host)
{
    return json_pack("[i, s]", host, t->host[host].gdr);
}

static int load_texts(struct nic *n, const struct topo_table *b)
{
    struct text_cell c[TEXTS];

    text_cells(c, n);
    for (int i = 0; i < TEXTS; i++)
        if (cell_copy(b, c[i].column, true, c[i].text, c[i].size) < 0)
            return -1;
    return 0;
}

/* What a file of before does not say: a rail or plane followed from the leaf where one is known,
 * a use from what was told of the NIC. */
static enum source source_before(const struct nic *n, const struct source_cell *c)
{
    if (!c->told)
        return SOURCE_NONE;
    return c->source != &n->use_source && n->leaf_source != SOURCE_NONE ? n->leaf_source
                                                                        : nic_teller(n);
}

/* After the facts themselves, the leaf's first. */
static int load_sources(struct nic *n, const struct topo_table *b, int columns)
{
    struct source_cell c[SOURCES];
    int source;

    source_cells(c, n);
    for (int i = 0; i < SOURCES; i++) {
        if (c[i].column >= columns) {
            *c[i].source = source_before(n, &c[i]);
            continue;
        }
        if (cell_name(b, c[i].column, source_name, SOURCE_COUNT, &source) < 0)
            return -1;
        if ((source != SOURCE_NONE) != c[i].told)
            return cell_bad(b, c[i].column, c[i].unfit);
        *c[i].source = (enum source)source;
    }
    return 0;
}

int port_rows_load(struct topo *t, json_t *table, const char *path, struct err *err)
{
    bool before = json_array_size(json_object_get(table, "columns")) == COLUMNS_BEFORE;
    int columns = before ? COLUMNS_BEFORE : NIC_PORT_COLUMNS, rc = 0, last = -1;
    struct topo_table b;

    if (topo_table_open(&b, path, "ports", table, port_columns, columns, err) < 0)
        return -1;
    while (topo_table_next(&b, columns, &rc)) {
        int nic, use;
        if (cell_index(&b, 0, t->nics, false, &nic) < 0)
            return -1;
        if (nic <= last)
            return cell_bad(&b, 0, "but the rows count up");
        struct nic *n = &t->nic[last = nic];
        if (load_texts(n, &b) < 0 || cell_index(&b, 4, NUMBER_MAX, true, &n->gid_index) < 0 ||
            cell_index(&b, 10, NUMBER_MAX, true, &n->rail) < 0 ||
            cell_index(&b, 11, NUMBER_MAX, true, &n->plane) < 0 ||
            cell_name(&b, 12, nic_use_name, NIC_USES, &use) < 0)
            return -1;
        n->use = (enum nic_use)use;
        if (load_sources(n, &b, columns) < 0)
            return -1;
    }
    return rc;
}

int gpudirect_rows_load(struct topo *t, json_t *table, const char *path, struct err *err)
{
    struct topo_table b;
    int rc = 0, before = -1;

    if (topo_table_open(&b, path, "gpudirect", table, gpudirect_columns, GPUDIRECT_COLUMNS, err) <
        0)
        return -1;
    while (topo_table_next(&b, GPUDIRECT_COLUMNS, &rc)) {
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
