/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/nic.h"

#include <string.h>

#include "topo/topo_impl.h"

const char *const nic_layer_text[3] = {"unknown link", "Ethernet", "InfiniBand"};
const char *const nic_use_name[NIC_USES] = {"unknown", "compute", "storage", "management"};

void nic_init(struct nic *n, int host)
{
    memset(n, 0, sizeof(*n));
    n->host = host;
    n->numa = n->rail = n->plane = n->gid_index = -1;
}

enum source nic_teller(const struct nic *n)
{
    return n->source == SOURCE_NONE ? SOURCE_USER : n->source;
}

/* --- "verbs" of topology.json --- */

struct row {
    int nic;
    struct nic_verbs is;
};
static const char *const layer_name[] = {"unknown", "ethernet", "infiniband"};
#define VERBS(cell, member, max) TOPO_COLUMN(#member, cell, struct row, is.member, max)
static const struct topo_column verbs_columns[] = {
    TOPO_COLUMN("nic", CELL_PARENT, struct row, nic, OF_NIC),
    VERBS(CELL_FLAG, up, 0),
    TOPO_COLUMN_WORD("link_layer", struct row, is.layer, layer_name),
    VERBS(CELL_AMOUNT, rate_Bps, 1e15),
    TOPO_COLUMN_TEXT("firmware", struct row, is.firmware),
    TOPO_COLUMN_TEXT("gid", struct row, is.gid),
    VERBS(CELL_COUNT, mtu, TOPO_NUMBER_MAX),
    VERBS(CELL_COUNT, mtu_max, TOPO_NUMBER_MAX),
    VERBS(CELL_COUNT, gids, NIC_COUNT_MAX),
    VERBS(CELL_COUNT, qps, NIC_COUNT_MAX),
    VERBS(CELL_COUNT, wrs, NIC_COUNT_MAX),
    VERBS(CELL_COUNT, sges, NIC_COUNT_MAX),
    VERBS(CELL_COUNT, reads, NIC_COUNT_MAX),
    VERBS(CELL_AMOUNT, message_bytes, 1e15),
    VERBS(CELL_AMOUNT, region_bytes, 2e18),
};

static bool verbs_row(struct topo_writer *w, int nic)
{
    const struct row r = {nic, w->t->nic[nic].verbs};

    return r.is.told && topo_writer_row(w, verbs_columns, nic_verbs_rows.columns, &r);
}

static int load_verbs(struct topo_reader *r, struct topo_table *b)
{
    struct row row = {.is.told = true};

    if (topo_row_load(b, r->rows, &row) < 0 ||
        topo_table_rises(b, row.nic, "but the rows count up") < 0)
        return -1;
    r->t->nic[row.nic].verbs = row.is;
    return 0;
}

const struct topo_rows nic_verbs_rows = {
    TOPO_ROWS("verbs", verbs_columns, struct topo, nic, nics),
    .row = verbs_row,
    .load = load_verbs,
};
