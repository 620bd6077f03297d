/* SPDX-License-Identifier: BSD-3-Clause */
/* trial_rows.c - the table "trials" of topology.json: FABRIC handles tried, bandwidth measured. */
#include "base/mem.h"
#include "topo/topo_impl.h"

const struct topo_column trial_columns[TRIAL_COLUMNS] = {
    TOPO_COLUMN("host", CELL_PARENT, struct mnnvl_trial, host, 0),
    TOPO_COLUMN("allocate", CELL_MAYBE, struct mnnvl_trial, allocate, 0),
    TOPO_COLUMN("export", CELL_MAYBE, struct mnnvl_trial, export, 0),
    TOPO_COLUMN("import", CELL_MAYBE, struct mnnvl_trial, import, 0),
    TOPO_COLUMN("Bps", CELL_NUMBER, struct mnnvl_trial, Bps, 1e15),
    TOPO_COLUMN_TEXT("why", struct mnnvl_trial, why),
};

int trial_rows_load(struct topo *t, json_t *table, const char *path, struct err *err)
{
    struct topo_table b;
    int rc = 0;

    if (topo_columns_open(&b, path, "trials", table, trial_columns, TRIAL_COLUMNS, err) < 0)
        return -1;
    while (topo_table_next(&b, TRIAL_COLUMNS, &rc)) {
        struct mnnvl_trial r = {.host = 0};
        if (topo_row_load(&b, trial_columns, TRIAL_COLUMNS, t->hosts, &r) < 0)
            return -1;
        if (t->trials && t->trial[t->trials - 1].host >= r.host)
            return cell_bad(&b, 0, "not after the host of the row before");
        MEM_PUSH(t->trial, t->trials) = r;
    }
    return rc;
}
